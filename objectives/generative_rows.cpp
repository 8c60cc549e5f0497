#include "objectives/generative_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"

namespace cloze {

const ObjectiveConfig* generative_of(const Objectives& objectives) {
  for (const auto& objective : objectives)
    if (is_generative(objective)) return &objective;
  return nullptr;
}

namespace {

int64_t decoder_start_id(DecoderStart kind, const SpecialIds& special) {
  switch (kind) {
    case DecoderStart::padding:
      return special.filler();
    case DecoderStart::beginning_of_text:
      return special.cls >= 0 ? special.cls : special.sep;
    case DecoderStart::end_of_text:
      return special.sep;
  }
  return special.sep;
}

}  // namespace

void take_special_ids(ModelConfig& model, const SpecialIds& special) {
  auto& m = backbone_of(model);
  m.pad_token_id = special.filler();
  m.eos_token_id = special.sep;
  if (auto* both = as<EncoderDecoderConfig>(model))
    both->decoder_start_token_id = decoder_start_id(both->decoder_start, special);
}

std::unique_ptr<SourceTargetBuilder> make_source_target_builder(const ObjectiveConfig& objective,
                                                                const RowContext& context) {
  return std::visit(
      [&](const auto& o) -> std::unique_ptr<SourceTargetBuilder> {
        if constexpr (is_generative_kind<std::decay_t<decltype(o)>>)
          return make_builder(o, context);
        else
          fail<ConfigError>("objective '", o.kind, "' is not generative");
      },
      objective);
}

SourceTargetBuilder::SourceTargetBuilder(const RowContext& context)
    : context_(context),
      data_(context.data),
      model_(backbone_of(context.model)),
      decoding_(decoding_ids_of(context.model)),
      store_(context.store),
      vocabulary_(context.vocabulary),
      eos_(context.vocabulary.special.sep) {
  const auto& sentinels = store_.tokenizer().sentinels();
  ids_ = {.mask = vocabulary_.special.mask, .vocabulary = vocabulary_.size, .first_random = 0};
  if (!sentinels.empty() && sentinels.back() > vocabulary_.size / 2)
    ids_.vocabulary = std::min(sentinels.back(), sentinels.front());  // they are last
  while (ids_.first_random + 1 < ids_.vocabulary && vocabulary_.is_special[static_cast<size_t>(ids_.first_random)])
    ++ids_.first_random;
}

Packing SourceTargetBuilder::packing() const { return packing_of(data_.packing); }

void SourceTargetBuilder::read_text(const Example& example) {
  auto& [tokens, offsets, sentence_lengths] = text_;
  tokens.clear();
  offsets.clear();
  sentence_lengths.clear();
  uint64_t left = example.target_length;
  for (const auto& span : example.spans) {
    if (left == 0) break;
    if (!tokens.empty()) {
      offsets.push_back(-1);
      tokens.push_back(eos_);
      --left;  // a separator takes the position that the sampler left free
      if (!sentence_lengths.empty()) ++sentence_lengths.back();
    }
    const uint64_t count = std::min(span.count, left), at = tokens.size();
    tokens.resize(at + count);
    store_.read(span.first, count, tokens.data() + at);
    offsets.resize(at + count);
    std::iota(offsets.begin() + static_cast<std::ptrdiff_t>(at), offsets.end(), static_cast<int64_t>(span.first));
    for (uint64_t token = span.first, sentence = store_.sentence_of(span.first); token < span.first + count;
         ++sentence) {
      const uint64_t end = std::min(store_.first_token(sentence + 1), span.first + count);
      sentence_lengths.push_back(static_cast<int64_t>(end - token));
      token = end;
    }
    left -= count;
  }
  context_.check_ids(tokens.data(), tokens.size());
}

void SourceTargetBuilder::add_bos_and_truncate(SourceTarget& row) const {
  const auto max_length = static_cast<size_t>(data_.max_seq_length - (model_.prepend_bos ? 1 : 0));
  for (auto* side : {&row.source, &row.target}) {
    if (side->size() > max_length) side->resize(max_length), side->back() = eos_;
    if (model_.prepend_bos) side->insert(side->begin(), vocabulary_.special.cls);
  }
  auto& offsets = row.target_offsets;
  if (offsets.size() > max_length) offsets.resize(max_length), offsets.back() = -1;
  if (model_.prepend_bos) offsets.insert(offsets.begin(), -1);
  // A decoder-only model reads both concatenated; the last token is a label only.
  const auto room = static_cast<size_t>(data_.max_seq_length) + 1;
  if (model_.is_encoder_decoder() || row.source.size() + row.target.size() <= room) return;
  const auto last = row.source.back();  // its end token, if it has one
  row.source.resize(std::min(row.source.size(), std::max(room / 2, room - std::min(room, row.target.size()))));
  if (last == eos_) row.source.back() = eos_;
  row.target.resize(std::min(row.target.size(), room - row.source.size()));
  row.target.back() = eos_;
  offsets.resize(row.target.size());
  offsets.back() = -1;
}

double CorruptionBuilder::total_length(const Lengths& lengths) const {
  return model_.is_encoder_decoder() ? std::max(lengths.source, lengths.target) : lengths.source + lengths.target;
}

bool CorruptionBuilder::fits(double length) const {
  const int64_t begin = model_.prepend_bos ? 1 : 0;
  return length <= static_cast<double>(model_.is_encoder_decoder()
                                           ? data_.max_seq_length - begin
                                           : data_.max_seq_length + 1 - 2 * begin);  // the last label is no input
}

uint64_t CorruptionBuilder::length() const {
  const int64_t begin = model_.prepend_bos ? 1 : 0;
  int64_t tokens = max_text_length(data_.max_seq_length - begin);
  while (tokens > 1 && !fits(total_length(expected_lengths(tokens)))) --tokens;
  return static_cast<uint64_t>(std::max<int64_t>(1, tokens));
}

void CorruptionBuilder::shorten(double length) {
  auto& [tokens, offsets, sentence_lengths] = text_;
  const auto share = static_cast<double>(data_.max_seq_length) / length;
  auto kept = std::clamp<size_t>(static_cast<size_t>(share * static_cast<double>(tokens.size())), 1, tokens.size() - 1);
  size_t sentences = 0, whole = 0;  // of the kept text
  while (sentences < sentence_lengths.size() && whole + static_cast<size_t>(sentence_lengths[sentences]) <= kept)
    whole += static_cast<size_t>(sentence_lengths[sentences++]);
  if (keeps_sentences() && whole > 0) kept = whole;
  tokens.resize(kept);
  offsets.resize(kept);
  sentence_lengths.resize(sentences);
  if (kept > whole) sentence_lengths.push_back(static_cast<int64_t>(kept - whole));
}

void CorruptionBuilder::build(const Example& example, Stream stream, SourceTarget& row, Infilled* infilled) {
  read_text(example);
  const auto n = static_cast<int64_t>(text_.tokens.size());
  const auto separators = static_cast<int64_t>(example.spans.size()) - 1;
  used_tokens_ = n - separators;
  for (;;) {
    row.source.clear();
    row.target.clear();
    row.target_offsets.clear();
    if (infilled) *infilled = {};
    corrupt(stream, row, infilled);
    const auto length = total_length({static_cast<double>(row.source.size()), static_cast<double>(row.target.size())});
    if (fits(length) || text_.tokens.size() < 2) break;
    shorten(length);  // the noise inserted more than expected
  }
  used_tokens_ -= n - static_cast<int64_t>(text_.tokens.size());
  add_bos_and_truncate(row);
}

Batch SourceTargetBuilder::batch(const std::vector<SourceTarget>& rows) const {
  const auto count = static_cast<int64_t>(rows.size());
  const bool two = model_.is_encoder_decoder();
  Batch batch;
  std::vector<int64_t> positions, labels;
  // A tensor of ids, padded on the right; `fill` appends the ids of row r to a vector.
  const auto padded = [&](const auto& fill, Tensor* mask) {
    std::vector<std::vector<int64_t>> lines(rows.size());
    int64_t longest = 1, total = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      fill(r, lines[r]);
      longest = std::max(longest, static_cast<int64_t>(lines[r].size())),
      total += static_cast<int64_t>(lines[r].size());
    }
    auto ids = at::full({count, longest}, vocabulary_.special.filler(), at::kLong);
    for (size_t r = 0; r < rows.size(); ++r)
      std::copy(lines[r].begin(), lines[r].end(), ids.data_ptr<int64_t>() + static_cast<int64_t>(r) * longest);
    if (mask && total < count * longest) {
      *mask = at::zeros({count, longest}, at::kBool);
      for (size_t r = 0; r < rows.size(); ++r)
        std::fill_n(mask->data_ptr<bool>() + static_cast<int64_t>(r) * longest, lines[r].size(), true);
    }
    batch.tokens += total;
    return ids;
  };
  if (two) {
    batch.input_ids = padded([&](size_t r, auto& out) { out = rows[r].source; }, &batch.attention_mask);
    batch.decoder_input_ids = padded(
        [&](size_t r, auto& out) {
          const auto& target = rows[r].target;
          out.push_back(decoding_.decoder_starts_with_last_target ? target.back() : decoding_.decoder_start_token_id);
          out.insert(out.end(), target.begin(), target.end() - 1);
        },
        nullptr);
  } else {
    batch.input_ids = padded(
        [&](size_t r, auto& out) {
          out = rows[r].source;
          out.insert(out.end(), rows[r].target.begin(), rows[r].target.end());
          out.pop_back();  // the last token is a label only
        },
        &batch.attention_mask);
    if (model_.prefix_lm) {  // the last source token predicts the first target token
      batch.prefix = at::zeros({count}, at::kLong);
      for (size_t r = 0; r < rows.size(); ++r)
        batch.prefix.data_ptr<int64_t>()[r] = std::max<int64_t>(0, static_cast<int64_t>(rows[r].source.size()) - 1);
    }
  }
  const int64_t width = two ? batch.decoder_input_ids.size(1) : batch.input_ids.size(1);
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto &source = rows[r].source, &target = rows[r].target;
    // Position p predicts the next token. A decoder-only model has no input before its first token.
    const int64_t before = two ? 0 : static_cast<int64_t>(source.size()) - 1;
    for (int64_t k = before < 0 ? 1 : 0; k < static_cast<int64_t>(target.size()); ++k) {
      positions.push_back(static_cast<int64_t>(r) * width + before + k);
      labels.push_back(target[static_cast<size_t>(k)]);
    }
  }
  batch.positions = at::tensor(positions, at::kLong);
  batch.labels = at::tensor(labels, at::kLong);
  return batch;
}

namespace {

class GenerativeRowMaker final : public RowMaker {
 public:
  GenerativeRowMaker(const RowContext& context, const ObjectiveConfig& objective)
      : in_(context), objective_(objective), sampler_(context.sampler(sampling())) {}

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const override {
    const auto sequences = in_.sequences(sampler_, first, count);
    const auto builder = make_row_builder();
    std::vector<SourceTarget> rows(static_cast<size_t>(count));
    Example example;
    for (size_t r = 0; r < rows.size(); ++r) {
      sampler_.sample(sequences[r], example);
      Infilled infilled;
      const Stream stream(in_.mask_key, example.epoch, example.item);
      builder->build(example, stream, rows[r], draws ? &infilled : nullptr);
      if (!draws) continue;
      auto& drawn = (*draws)[r];
      drawn.lengths = std::move(infilled.words);
      drawn.corrupted = infilled.corrupted;
      for (const auto& span : example.spans) drawn.example_tokens += static_cast<int64_t>(span.count);
      drawn.used_tokens = builder->used_tokens();
      drawn.label_offsets = rows[r].target_offsets;
      // A decoder-only model has no input before its first token, which is therefore no label.
      const bool starts = !backbone_of(in_.model).is_encoder_decoder() && rows[r].source.empty();
      if (starts && !drawn.label_offsets.empty()) drawn.label_offsets.erase(drawn.label_offsets.begin());
    }
    return builder->batch(rows);
  }

  uint64_t size() const override { return sampler_.size(); }
  double random_next_share() const override { return sampler_.random_next_share(); }

 private:
  std::unique_ptr<SourceTargetBuilder> make_row_builder() const { return make_source_target_builder(objective_, in_); }
  SamplerOptions sampling() const {
    const auto builder = make_row_builder();
    return {.packing = builder->packing(), .length = builder->length()};
  }

  const RowContext& in_;
  const ObjectiveConfig& objective_;
  Sampler sampler_;
};

}  // namespace

std::unique_ptr<RowMaker> make_generative_row_maker(const RowContext& context, const ObjectiveConfig& objective) {
  return std::make_unique<GenerativeRowMaker>(context, objective);
}

}  // namespace cloze
