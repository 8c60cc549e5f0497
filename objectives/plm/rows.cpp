// Rows of plm: separate texts, or a running text whose rows carry mems or are segment pairs.
#include <algorithm>

#include "core/error.h"
#include "objectives/plm/permutation.h"
#include "objectives/plm/plm.h"
#include "objectives/rows.h"

namespace cloze {

namespace {

/// A running text of rows that carry mems or are segment pairs.
struct Running {
  RunningText forward, backward;
  RunningOrder order{};
  uint64_t stride = 0;      ///< offset between the starts of consecutive chunks
  int64_t reuse_len = 0;    ///< number of tokens at the start of a row that go into the mems; 0 = no mems
  uint64_t first_item = 0;  ///< of its chunks, in a mixture of texts
  double fraction = 1;      ///< of the tokens of the mixture
};

class PermutedRows final : public RowMaker {
 public:
  PermutedRows(const RowContext& context, const PlmConfig& config)
      : in_(context), config_(config), streams_(streams_of(context.model)) {
    if (carries_mems(in_.model) || in_.data.packing == RowPacking::segment_pair)
      run_through_texts();
    else
      sampler_.emplace(in_.sampler({.packing = packing_of(in_.data.packing),
                                    .length = static_cast<uint64_t>(in_.data.max_seq_length - 2),
                                    .short_seq_prob = in_.data.short_seq_prob}));
  }

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const override {
    Drawn drawn;
    const auto sequences = sampler_ ? in_.sequences(*sampler_, first, count) : consecutive(first, count);
    for (const uint64_t sequence : sequences) {
      if (!sampler_)
        add_running(sequence, drawn);
      else
        add_single(sequence, drawn, draws);
    }
    std::vector<PlmExample> examples;
    auto batch =
        permutation_batch(drawn.rows, drawn.streams, config_, running_.empty() ? 0 : running_.front().reuse_len,
                          in_.vocabulary, draws ? &examples : nullptr);
    for (size_t r = 0; r < examples.size(); ++r) {
      auto& of_row = (*draws)[r];
      of_row.lengths = std::move(examples[r].drawn);
      of_row.query_rank = std::move(examples[r].query_rank);
      of_row.key_rank = std::move(examples[r].key_rank);
    }
    batch.continues = drawn.continues;
    return batch;
  }

  uint64_t size() const override { return sampler_ ? sampler_->size() : mixture_->size(); }

  double text_fraction() const override {
    if (sampler_) return 1;
    double covered = 0;
    for (const auto& text : running_) {
      const auto& order = text.order;
      const uint64_t chunks = order.batch_size == 0 ? order.chunks : order.steps() * order.parts();
      const uint64_t last = static_cast<uint64_t>(in_.data.max_seq_length) - text.stride;  // a row is longer than that
      const auto size = text.forward.size(), read = std::min(size, chunks * text.stride + last);
      covered += text.fraction * static_cast<double>(read) / static_cast<double>(size);
    }
    return covered;
  }

 private:
  struct Drawn {
    std::vector<PlmRow> rows{};
    std::vector<Stream> streams{};
    bool continues = false;
  };

  /// The two-stream config of the model; for other families the default: no reversed texts, no mems.
  static TwoStreamConfig streams_of(const ModelConfig& model) {
    const auto* streams = as<TwoStreamConfig>(model);
    return streams ? *streams : TwoStreamConfig{};
  }

  static std::vector<uint64_t> consecutive(uint64_t first, int64_t count) {
    std::vector<uint64_t> numbers;
    for (int64_t row = 0; row < count; ++row) numbers.push_back(first + static_cast<uint64_t>(row));
    return numbers;
  }

  /// With mems the second half of the rows of a step has reversed text (RunningOrder), otherwise every other sequence.
  bool backward(uint64_t sequence) const {
    const uint64_t together = running_.empty() ? 0 : running_.front().order.batch_size;
    if (!streams_.bi_data) return false;
    return together > 0 ? 2 * (sequence % together) >= together : sequence % 2 == 1;
  }

  void add_running(uint64_t sequence, Drawn& drawn) const {
    const bool reversed = backward(sequence);
    const auto [part, row] = mixture_->at(sequence);
    const auto& text = running_[part];
    const auto location = text.order.at(row);
    // Each chunk has separate draws in either direction.
    const uint64_t item = text.first_item + location.chunk + (reversed ? text.order.chunks : 0);
    drawn.rows.push_back(running_row(reversed ? text.backward : text.forward, location.chunk * text.stride,
                                     in_.data.max_seq_length, text.reuse_len,
                                     in_.data.packing == RowPacking::segment_pair, in_.vocabulary.special,
                                     Stream(in_.pair_key, location.epoch, item)));
    in_.check_ids(drawn.rows.back().ids.data(), drawn.rows.back().ids.size());
    drawn.streams.emplace_back(in_.mask_key, location.epoch, item);
    drawn.continues = location.continues;
  }

  void add_single(uint64_t sequence, Drawn& drawn, std::vector<RowDraws>* draws) const {
    Example example;
    std::vector<int64_t> ids(static_cast<size_t>(in_.data.max_seq_length) + 2);
    sampler_->sample(sequence, example);
    const auto row = fill_text_row(in_, example, ids.data());
    if (draws) record_text_usage(example, row, (*draws)[drawn.rows.size()]);
    std::vector<int64_t> text(ids.begin() + 1, ids.begin() + row.length - 1);
    drawn.rows.push_back(plm_row(std::move(text), backward(sequence), in_.vocabulary.special));
    drawn.streams.emplace_back(in_.mask_key, example.epoch, example.item);
  }

  /// Fills in the running texts and their order.
  void run_through_texts() {
    const auto parts = in_.store.parts();
    std::vector<double> rows;
    uint64_t items = 0;
    for (const auto& part : parts) {
      const auto which = parts.size() > 1 ? concat("text of ", part.text.folder()) : in_.stage + " text";
      auto& made = running_.emplace_back(run_through(part.text, which));
      made.first_item = items;
      made.fraction = part.fraction;
      items += 2 * made.order.chunks;
      rows.push_back(part.passes * static_cast<double>(made.order.size()));
    }
    mixture_.emplace(rows, in_.order_rng.key("mixture"));
  }

  /// `which`: the text in messages.
  Running run_through(const TokenStore& text, const std::string& which) const {
    const auto& special = in_.vocabulary.special;
    const int64_t max_length = in_.data.max_seq_length;
    Running made{.forward = {text, special.sep, false},
                 .backward = {text, special.sep, true},
                 .reuse_len = streams_.carries_mems() ? streams_.reuse_len : 0};
    const auto length = static_cast<uint64_t>(max_length), size = made.forward.size();
    require<DataError>(size >= length, "the ", which, " has ", size,
                       " tokens and separators, but a row of plm has data.max_seq_length ", length,
                       " tokens; prepare more text, or train with shorter rows");
    made.stride = static_cast<uint64_t>(made.reuse_len > 0 ? made.reuse_len : max_length - 3);
    made.order = {.chunks = (size - length) / made.stride + 1,
                  .shuffle_key = Rng(in_.order_rng.key("mask")).key("order"),
                  .bidirectional = streams_.bi_data};
    if (made.reuse_len == 0 || in_.step.batch_size == 0) return made;
    made.order.batch_size = static_cast<uint64_t>(in_.step.batch_size);
    made.order.accumulation = static_cast<uint64_t>(in_.step.accumulation);
    require<DataError>(made.order.steps() > 0, "the ", which, " has ", made.order.chunks, " chunks of model.reuse_len ",
                       made.stride, " tokens, too few for the ", made.order.parts(),
                       " rows of a step that read it in parallel; prepare more text, or lower train.batch_size "
                       "or train.accumulation");
    return made;
  }

  const RowContext& in_;
  const PlmConfig& config_;
  TwoStreamConfig streams_;
  std::optional<MixedSampler> sampler_{};  // of rows of separate texts; else those below
  std::vector<Running> running_{};
  std::optional<MixtureOrder> mixture_{};
};

}  // namespace

std::unique_ptr<RowMaker> make_rows(const PlmConfig& config, const RowContext& context) {
  return std::make_unique<PermutedRows>(context, config);
}

}  // namespace cloze
