#include "objectives/collator.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "objectives/masking.h"
#include "objectives/pairs.h"
#include "objectives/permutation.h"
#include "objectives/special_tokens.h"
#include "objectives/writing.h"

namespace cloze {

namespace {

template <class Kind>
std::optional<Kind> only(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (const auto* found = std::get_if<Kind>(&objective)) return *found;
  return std::nullopt;
}

std::optional<PairRule> pairs_of(const Objectives& objectives, const DataConfig& data) {
  const bool single = data.packing == "sentence_pair";
  if (only<PlmConfig>(objectives)) return std::nullopt;  // makes its own
  if (only<NspConfig>(objectives)) return PairRule{.single_sentences = single};
  if (const auto sop = only<SopConfig>(objectives))
    return PairRule{.swap_prob = sop->swap_prob, .single_sentences = single};
  if (single || data.packing == "segment_pair") return PairRule{.single_sentences = single};
  return std::nullopt;
}

/// The packing that the objectives need: pairs are made of sentences.
Packing packing_of(const DataConfig& data, bool pairs) {
  if (pairs) return data.packing == "sentence_pair" ? Packing::two_sentences : Packing::sentences;
  if (data.packing == "doc_sentences") return Packing::doc_sentences;
  if (data.packing == "full_sentences") return Packing::full_sentences;
  return data.packing == "full" ? Packing::full : Packing::document;
}

Tensor to_tensor(const std::vector<int64_t>& values) {
  auto tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

/// What rows of plm are cut from that carry a memory or are pairs.
struct Running {
  RunningText forward, backward;
  RunningOrder order{};
  uint64_t stride = 0;    ///< places from the beginning of one piece to that of the next
  int64_t reuse_len = 0;  ///< first tokens of a row, which become memory; 0 = it carries none
};

}  // namespace

struct Collator::Impl {
  Impl(TokenStore tokens, const Objectives& objectives, const DataConfig& data_config, const Rng& rng,
       const std::string& stage, const EncoderConfig& model_config, StepRows rows)
      : store(std::move(tokens)),
        data(data_config),
        model(model_config),
        writing(writing_of(objectives) ? std::optional(*writing_of(objectives)) : std::nullopt),
        maskings(masking_of(objectives) ? maskings_of(*masking_of(objectives)) : std::vector<MaskingPart>()),
        permuting(only<PlmConfig>(objectives)),
        pairs(pairs_of(objectives, data)),
        step(rows),
        max_length(data.max_seq_length),
        budget(data.max_seq_length - (pairs ? 3 : 2)),
        vocabulary(store.tokenizer(), store.train_counts()),
        mask_key(Rng(rng.key(stage)).key("mask")),
        mixture_key(Rng(rng.key(stage)).key("mixture")),
        pair_key(Rng(rng.key(stage)).key("pair")) {
    require_special_tokens(objectives, model, store.tokenizer(), data.tokens);
    if (permuting && (model.carries_memory() || data.packing == "segment_pair"))
      running = run_through_text(rows, stage);
    else
      sampler.emplace(store, sampling(objectives), Rng(rng.key(stage)));
    if (pairs) require_documents(stage);
  }

  SamplerOptions sampling(const Objectives& objectives) const {
    if (writing) return {.packing = writer().packing(), .length = writer().length()};
    const auto nsp = only<NspConfig>(objectives);
    return {.packing = packing_of(data, pairs.has_value()),
            .length = budget,
            .short_seq_prob = data.short_seq_prob,
            .random_next_prob = nsp ? nsp->random_next_prob : 0};
  }

  /// A random B comes from another document.
  void require_documents(const std::string& stage) const {
    require<DataError>(store.num_documents() >= 2 || stage != "train",
                       "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the text has "
                       "one; separate documents by a blank "
                       "line, remove that objective, or choose another packing");
    require<DataError>(store.num_documents() >= 2,
                       "sentence pairs (nsp, sop, data.packing of pairs) need at least two documents, the held-out "
                       "text has one; prepare the text again "
                       "with more of it held out (--held-out, --valid), or remove that objective");
  }

  /// The sequence of each row of the batch at `first`.
  std::vector<uint64_t> sequences(uint64_t first, int64_t count) const {
    if (sampler && step.batch_size > 0)
      return sampler->by_length(first, static_cast<uint64_t>(count), static_cast<uint64_t>(step.batch_size),
                                static_cast<uint64_t>(step.accumulation));
    std::vector<uint64_t> numbers(static_cast<size_t>(count));
    std::iota(numbers.begin(), numbers.end(), first);
    return numbers;
  }

  Writer writer() const { return Writer(*writing, data, model, store, vocabulary); }

  TokenStore store;
  DataConfig data;
  EncoderConfig model;
  std::optional<ObjectiveConfig> writing;
  std::vector<MaskingPart> maskings;  // empty: nothing is masked
  std::optional<PlmConfig> permuting;
  std::optional<PairRule> pairs;
  StepRows step;
  int64_t max_length;
  uint64_t budget;  // tokens without special ones
  Vocabulary vocabulary;
  std::optional<Sampler> sampler;  // where rows do not run through the text
  uint64_t mask_key, mixture_key, pair_key;
  std::optional<Running> running;

  Running run_through_text(StepRows rows, const std::string& split) const {
    Running made{.forward = {store, vocabulary.special.sep, false},
                 .backward = {store, vocabulary.special.sep, true},
                 .reuse_len = model.carries_memory() ? model.reuse_len : 0};
    const auto length = static_cast<uint64_t>(max_length), places = made.forward.size();
    require<DataError>(places >= length, "the ", split, " text has ", places,
                       " tokens and separators, a row of plm is data.max_seq_length ", length,
                       " long; prepare more text, or train with shorter rows");
    made.stride = static_cast<uint64_t>(made.reuse_len > 0 ? made.reuse_len : max_length - 3);
    made.order = {.pieces = (places - length) / made.stride + 1,
                  .shuffle_key = Rng(mask_key).key("order"),
                  .both_ways = model.bi_data};
    if (made.reuse_len == 0 || rows.batch_size == 0) return made;
    made.order.batch_size = static_cast<uint64_t>(rows.batch_size),
    made.order.accumulation = static_cast<uint64_t>(rows.accumulation);
    require<DataError>(made.order.steps() > 0, "the ", split, " text has ", made.order.pieces,
                       " pieces of model.reuse_len ", made.stride, " tokens, too few for the ", made.order.parts(),
                       " rows of a step that go through it side by side; prepare more text, or lower train.batch_size "
                       "or train.accumulation");
    return made;
  }

  void check_ids(const int64_t* ids, uint64_t count) const {
    const int64_t largest = count ? *std::max_element(ids, ids + count) : 0;
    require<DataError>(
        largest < vocabulary.size, "the token store holds id ", largest, ", its tokenizer has ", vocabulary.size,
        " pieces; the files are damaged: check them with `cloze verify data`, then prepare the text again");
  }

  /// Rows of permutation language modelling.
  Batch permuted(const std::vector<uint64_t>& sequences, std::vector<RowDraws>* draws) const {
    std::vector<PlmRow> rows;
    std::vector<Stream> streams;
    Example example;
    std::vector<int64_t> line(static_cast<size_t>(max_length) + 2);
    bool continues = false;
    for (const uint64_t sequence : sequences) {
      // Along the rows of a step the second half reads the reversed text (RunningOrder), elsewhere every other sequence
      // does.
      const uint64_t together = running ? running->order.batch_size : 0;
      const bool backward = model.bi_data && (together > 0 ? 2 * (sequence % together) >= together : sequence % 2 == 1);
      if (running) {
        const auto place = running->order.at(sequence);
        const uint64_t item =
            place.piece + (backward ? running->order.pieces : 0);  // a piece has draws of its own in either direction
        rows.push_back(running_row(backward ? running->backward : running->forward, place.piece * running->stride,
                                   max_length, running->reuse_len, data.packing == "segment_pair", vocabulary.special,
                                   Stream(pair_key, place.epoch, item)));
        check_ids(rows.back().ids.data(), rows.back().ids.size());
        streams.emplace_back(mask_key, place.epoch, item);
        continues = place.continues;
      } else {
        sampler->sample(sequence, example);
        const auto row = write_row(example, line.data());
        rows.push_back(plm_row({line.begin() + 1, line.begin() + row.length - 1}, backward, vocabulary.special));
        if (draws) note_reading(example, row, (*draws)[rows.size() - 1]);
        streams.emplace_back(mask_key, example.epoch, example.item);
      }
    }
    std::vector<std::vector<int64_t>> drawn;
    auto batch = permutation_batch(rows, streams, *permuting, running ? running->reuse_len : 0, vocabulary, &drawn);
    for (size_t r = 0; draws && r < drawn.size(); ++r) (*draws)[r].lengths = std::move(drawn[r]);
    batch.continues = continues;
    return batch;
  }

  /// A line of ids that was written.
  struct Row {
    int64_t length = 0;
    int64_t second = 0;  ///< where segment B starts
    int64_t label = 0;
    bool forced = false;  ///< the label was not drawn
    int64_t read = 0;     ///< tokens of the example's own text
  };

  /// Writes [CLS] A [SEP] (B [SEP]).
  Row write_row(const Example& example, int64_t* ids) const {
    Row row;
    int64_t& n = row.length;
    const auto put = [&](Span span) {
      store.read(span.first, span.count, ids + n);
      check_ids(ids + n, span.count);
      n += static_cast<int64_t>(span.count);
      ids[n++] = vocabulary.special.sep;
    };
    ids[n++] = vocabulary.special.cls;
    if (pairs) {
      const Pair pair = arrange_pair(*pairs, store, example, budget, Stream(pair_key, example.epoch, example.item));
      row.label = pair.label;
      row.forced = pair.forced;
      row.read = static_cast<int64_t>(pair.a.count + (example.random_next ? 0 : pair.b.count));
      put(pair.a);
      row.second = n;
      put(pair.b);
      return row;
    }
    uint64_t left = example.target_length;
    for (const auto& span : example.spans) {
      if (left == 0) break;
      const uint64_t count = std::min(span.count, left);
      put({span.first, count});
      row.read += static_cast<int64_t>(count);
      left -= std::min(left, count + 1);  // a separator takes the position that the sampler left free
    }
    row.second = n;
    return row;
  }

  static void note_reading(const Example& example, const Row& row, RowDraws& draws) {
    for (const auto& span : example.spans) draws.text += static_cast<int64_t>(span.count);
    draws.read = row.read;
  }
};

Collator::Collator(TokenStore store, const Objectives& objectives, const DataConfig& data, const Rng& rng,
                   const std::string& stage, const EncoderConfig& model, StepRows rows)
    : impl_(std::make_shared<Impl>(std::move(store), objectives, data, rng, stage, model, rows)) {}

bool needs_documents(const Objectives& objectives, const DataConfig& data) {
  return pairs_of(objectives, data).has_value();
}

uint64_t Collator::size() const { return impl_->running ? impl_->running->order.size() : impl_->sampler->size(); }
double Collator::text_share() const {
  if (!impl_->running) return 1;
  const auto& [forward, backward, order, stride, reuse_len] = *impl_->running;
  const uint64_t pieces = order.batch_size == 0 ? order.pieces : order.steps() * order.parts();
  const uint64_t last = static_cast<uint64_t>(impl_->max_length) - stride;  // a row reads on behind its piece
  return static_cast<double>(std::min(forward.size(), pieces * stride + last)) / static_cast<double>(forward.size());
}

double Collator::random_next_share() const { return impl_->sampler ? impl_->sampler->random_next_share() : 0; }

const TokenStore& Collator::store() const { return impl_->store; }

Batch Collator::batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const {
  const auto& in = *impl_;
  const auto sequences = in.sequences(first, count);
  if (draws) draws->assign(static_cast<size_t>(count), {});
  const auto lengths_of = [&](int64_t row) { return draws ? &(*draws)[static_cast<size_t>(row)].lengths : nullptr; };
  if (in.writing) {
    auto writer = in.writer();
    std::vector<SourceTarget> rows(static_cast<size_t>(count));
    Example written;
    for (int64_t row = 0; row < count; ++row) {
      in.sampler->sample(sequences[static_cast<size_t>(row)], written);
      Infilled infilled;
      writer.write(written, Stream(in.mask_key, written.epoch, written.item), rows[static_cast<size_t>(row)],
                   draws ? &infilled : nullptr);
      if (!draws) continue;
      auto& drawn = (*draws)[static_cast<size_t>(row)];
      drawn.lengths = std::move(infilled.words);
      drawn.hidden = infilled.hidden;
      for (const auto& span : written.spans) drawn.text += static_cast<int64_t>(span.count);
      drawn.read = writer.read();
      const auto& written_row = rows[static_cast<size_t>(row)];
      drawn.label_tokens = written_row.target_tokens;
      // A decoder alone has nothing before its first token, which is therefore no label.
      if (!in.model.is_encoder_decoder && written_row.source.empty() && !drawn.label_tokens.empty())
        drawn.label_tokens.erase(drawn.label_tokens.begin());
    }
    return writer.batch(rows);
  }
  if (in.permuting) return in.permuted(sequences, draws);
  const int64_t stride = in.max_length;
  std::vector<int64_t> ids(count * stride), lengths(count), seconds(count), labels(count), positions, tokens;
  positions.reserve(count * stride / 4);
  tokens.reserve(count * stride / 4);
  Example example;
  std::vector<Masker> maskers;
  for (const auto& masking : in.maskings) maskers.emplace_back(masking, in.vocabulary);
  int64_t longest = 0, total = 0, forced = 0;
  for (int64_t row = 0; row < count; ++row) {
    in.sampler->sample(sequences[static_cast<size_t>(row)], example);
    int64_t* out = ids.data() + row * stride;
    const auto written = in.write_row(example, out);
    lengths[row] = written.length;
    seconds[row] = written.second;
    labels[row] = written.label;
    forced += written.forced;
    if (draws) in.note_reading(example, written, (*draws)[static_cast<size_t>(row)]);
    // Places are numbered at full width here and moved once the longest row is known.
    if (!maskers.empty()) {
      const auto drawn = draw_masking(in.maskings, Stream(in.mixture_key, example.epoch, example.item));
      if (draws) (*draws)[static_cast<size_t>(row)].masking = drawn;
      maskers[drawn].corrupt(out, lengths[row], row * stride, Stream(in.mask_key, example.epoch, example.item),
                             positions, tokens, lengths_of(row));
    }
    longest = std::max(longest, lengths[row]);
    total += lengths[row];
  }
  Batch batch;
  batch.tokens = total, batch.forced_pairs = forced;
  batch.input_ids = at::empty({count, longest}, at::kLong);
  batch.token_type_ids = at::empty({count, longest}, at::kLong);
  auto* out_ids = batch.input_ids.data_ptr<int64_t>();
  auto* out_types = batch.token_type_ids.data_ptr<int64_t>();
  bool* out_mask = nullptr;
  if (total < count * longest) {
    batch.attention_mask = at::empty({count, longest}, at::kBool);
    out_mask = batch.attention_mask.data_ptr<bool>();
  }
  for (int64_t row = 0; row < count; ++row) {
    const int64_t n = lengths[row], at = row * longest;
    std::copy_n(ids.data() + row * stride, n, out_ids + at);
    std::fill(out_ids + at + n, out_ids + at + longest, in.vocabulary.special.filler());
    std::fill(out_types + at, out_types + at + seconds[row], 0);
    std::fill(out_types + at + seconds[row], out_types + at + n, 1);
    std::fill(out_types + at + n, out_types + at + longest, 0);
    if (out_mask) {
      std::fill(out_mask + at, out_mask + at + n, true);
      std::fill(out_mask + at + n, out_mask + at + longest, false);
    }
  }
  if (longest < stride)
    for (auto& position : positions) position -= position / stride * (stride - longest);
  batch.positions = to_tensor(positions);
  batch.labels = to_tensor(tokens);
  if (in.pairs) batch.pair_label = to_tensor(labels);
  return batch;
}

}  // namespace cloze
