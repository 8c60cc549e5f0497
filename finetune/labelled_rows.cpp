#include "finetune/labelled_rows.h"

#include <algorithm>
#include <span>

#include "core/error.h"
#include "models/attention/kinds.h"
#include "objectives/special_tokens.h"
#include "run/training_rows.h"
#include "tasks/rows/epoch_order.h"
#include "tasks/rows/like_lengths.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

namespace {

/// The positions of padding before a row's first token in a batch of this length.
int64_t padding_before(const LabelledSetting& in, const TaskRow& row, int64_t length) {
  return in.pads_left ? length - static_cast<int64_t>(row.ids.size()) : 0;
}

/// Ids, mask and segments.
void add_text(Batch& batch, const BatchRows& rows, int64_t filler, const LabelledSetting& in) {
  const auto count = static_cast<int64_t>(rows.size());
  int64_t longest = 0;
  for (const auto* row : rows) {
    longest = std::max(longest, static_cast<int64_t>(row->ids.size()));
    batch.tokens += static_cast<int64_t>(row->ids.size());
  }
  batch.input_ids = at::full({count, longest}, filler, at::kLong);
  if (batch.tokens < count * longest) batch.attention_mask = at::zeros({count, longest}, at::kBool);
  const bool segments = in.segments && !rows[0]->segments.empty();
  if (segments) batch.token_type_ids = at::zeros({count, longest}, at::kLong);
  for (int64_t r = 0; r < count; ++r) {
    const auto& row = *rows[static_cast<size_t>(r)];
    const auto begin = r * longest + padding_before(in, row, longest);
    std::copy(row.ids.begin(), row.ids.end(), batch.input_ids.data_ptr<int64_t>() + begin);
    if (segments) std::copy(row.segments.begin(), row.segments.end(), batch.token_type_ids.data_ptr<int64_t>() + begin);
    if (batch.attention_mask.defined())
      std::fill_n(batch.attention_mask.data_ptr<bool>() + begin, row.ids.size(), true);
  }
}

void add_global_tokens(Batch& batch, const BatchRows& rows, const LabelledSetting& in) {
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto range = in.kind->global_tokens(*rows[r]);
    if (!range) return;
    if (r == 0) batch.global_attention_mask = at::zeros_like(batch.input_ids, at::kBool);
    const auto before = padding_before(in, *rows[r], batch.input_ids.size(1));
    batch.global_attention_mask[static_cast<int64_t>(r)]
        .narrow(0, before + range->begin, range->end - range->begin)
        .fill_(true);
  }
}

class LabelledRows final : public RowMaker {
 public:
  LabelledRows(const LabelledSetting& setting, std::vector<TaskRow> rows, const Rng& order, const StepBatches& step,
               bool drop_last)
      : in_(setting), rows_(std::move(rows)), batches_(step), order_(order) {
    require<DataError>(!rows_.empty(), "the task has no rows to train on; look at them with `cloze inspect task`");
    for (size_t r = 0; r < rows_.size(); ++r) {
      require<DataError>(!rows_[r].ids.empty(), "item ", rows_[r].item,
                         " of the task has a row without tokens; leave it out");
      in_.kind->check(rows_[r], in_.labels);
      states_before_.push_back(states_before_.back() + in_.kind->trained_states(rows_[r]));
      const bool goes_on = in_.kind->joins_rows() && r > 0 && rows_[r].item == rows_[r - 1].item;
      if (!goes_on) begins_.push_back(r);
    }
    examples_ = begins_.size();
    begins_.push_back(rows_.size());
    step_ = std::max<uint64_t>(step.rows(), 1);
    size_ = (examples_ + (drop_last ? 0 : step_ - 1)) / step_ * step_;
    require<DataError>(size_ > 0, "the task has ", examples_, " items to train on, and data.drop_last leaves out a ",
                       "batch of fewer than ", step_, "; lower train.batch_size, or set data.drop_last=false");
  }

  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>*) const override {
    const auto chosen = examples_at(first, static_cast<uint64_t>(count));
    return chosen.empty() ? Batch() : batch_of(chosen);
  }

  /// Of the examples of the step, from the shortest to the longest, those at the places of the numbers.
  std::vector<Batch> step_batches(uint64_t first, int64_t count) const override {
    const auto own = examples_by_length(first, static_cast<uint64_t>(count));
    std::vector<RowsSize> sizes;
    for (const auto example : own) sizes.push_back(size_of(example));
    std::vector<Batch> batches;
    size_t at = 0;
    for (const auto next : in_.unpads ? ends_of_unpadded_batches(sizes) : ends_of_batches(sizes)) {
      auto batch = batch_of(std::span(own).subspan(at, next - at));
      at = next;
      const bool has_loss = !batch.labels.defined() || batch.labels.numel() > 0;
      if (has_loss) batches.push_back(std::move(batch));  // rows of words without a token have no tag to learn
    }
    return batches;
  }

  uint64_t size() const override { return size_; }

 private:
  /// The examples of these sequence numbers, up to the end of their epoch.
  std::vector<uint64_t> examples_at(uint64_t first, uint64_t count) const {
    const uint64_t epoch = first / size_, begin = first % size_, end = std::min({begin + count, examples_, size_});
    std::vector<uint64_t> chosen;
    for (uint64_t i = begin; i < end; ++i) chosen.push_back(item_at(order_, examples_, epoch * examples_ + i));
    return chosen;
  }

  /// Of the examples of the step, from the shortest to the longest, those at the places of the numbers; of a step in
  /// parts those that the batch of the number is dealt.
  std::vector<uint64_t> examples_by_length(uint64_t first, uint64_t count) const {
    const auto row = first % step_;  // of the step
    auto all = examples_at(first - row, std::max(step_, row + count));
    std::ranges::stable_sort(all, {}, [&](uint64_t example) { return size_of(example).length; });
    std::vector<uint64_t> own;
    if (batches_.parts > 1) {
      const auto dealt =
          dealt_by_length(std::min<uint64_t>(all.size(), step_), batches_, mix(order_.key("deal"), first - row));
      for (const auto i : dealt[row / batches_.batch_size]) own.push_back(all[i]);
    } else {
      for (auto i = row; i < std::min<uint64_t>(row + count, all.size()); ++i) own.push_back(all[i]);
    }
    return own;
  }

  RowsSize size_of(uint64_t example) const {
    RowsSize size{.rows = static_cast<int64_t>(begins_[example + 1] - begins_[example])};
    for (auto r = begins_[example]; r < begins_[example + 1]; ++r)
      size.length = std::max(size.length, in_.kind->length(rows_[r]));
    return size;
  }

  Batch batch_of(std::span<const uint64_t> examples) const {
    BatchRows chosen;
    for (const auto example : examples)
      for (auto r = begins_[example]; r < begins_[example + 1]; ++r) chosen.push_back(&rows_[r]);
    auto batch = labelled_batch(in_, chosen);
    if (in_.probes) batch.states_at = states_at(examples);
    return batch;
  }

  /// The numbers of the states of these examples among those of the part.
  Tensor states_at(std::span<const uint64_t> examples) const {
    std::vector<int64_t> numbers;
    for (const auto example : examples)
      for (auto s = states_before_[begins_[example]]; s < states_before_[begins_[example + 1]]; ++s)
        numbers.push_back(s);
    return to_tensor(numbers);
  }

  LabelledSetting in_;
  std::vector<TaskRow> rows_;
  std::vector<size_t> begins_{};           // of the rows of each example, and their end
  std::vector<int64_t> states_before_{0};  // each row, and their number
  uint64_t examples_ = 0, size_ = 0;
  StepBatches batches_;
  uint64_t step_ = 1;  // examples of a training step
  Rng order_;
};

}  // namespace

LabelledSetting labelled_setting(const ModelConfig& model, const Objectives& objectives) {
  for (const auto& objective : objectives) {
    if (as_kind(objective).is_generative())
      return {.kind = &target_rows(), .model = model, .labels = backbone_of(model).vocab_size};
    if (const auto* terms = task_head_of(objective)) {
      LabelledSetting setting{.kind = &row_kind_of(*terms), .use = terms->use(), .model = model};
      setting.labels = static_cast<int64_t>(terms->labels.size());
      setting.segments = !is_of_babylm(terms->head);
      setting.pads_left = terms->head == HeadDesign::babylm_left;
      setting.probes = !terms->layer.empty();
      const auto& network = transformer_of(model);
      const bool single_stack = network.is_encoder() || network.is_decoder();
      setting.unpads = single_stack && !setting.pads_left && !setting.probes &&
                       takes_unpadded_rows(network.attention, network.positions.relative);
      return setting;
    }
  }
  fail<ConfigError>("the run has no head of a task; fine-tune it on one first");
}

Tensor shifted_right(const Tensor& ids, const ModelConfig& config) {
  const auto& model = backbone_of(config);
  const auto decoding = decoding_ids_of(config);
  const auto clean = ids.masked_fill(ids.eq(no_label), model.pad_token_id);
  auto start = at::full_like(clean.narrow(1, 0, 1), decoding.decoder_start_token_id);
  if (decoding.decoder_starts_with_last_target)
    start = clean.gather(1, (clean.ne(model.pad_token_id).sum(1, /*keepdim=*/true) - 1));
  return at::cat({start, clean.slice(1, 0, -1)}, 1);
}

Batch labelled_batch(const LabelledSetting& in, const BatchRows& rows, bool with_targets) {
  if (auto batch = in.kind->own_batch(in, rows)) return std::move(*batch);
  const auto& model = transformer_of(in.model);
  Batch batch;
  add_text(batch, rows, model.pad_token_id, in);
  if (model.is_encoder_decoder()) batch.decoder_input_ids = shifted_right(batch.input_ids, in.model);
  const bool windows = std::holds_alternative<WindowAttention>(*model.attention);
  if (windows) add_global_tokens(batch, rows, in);
  in.kind->add_facts(batch, rows);
  if (with_targets) in.kind->add_labels(batch, rows, in.labels);
  return batch;
}

std::unique_ptr<RowMaker> make_labelled_rows(const LabelledSetting& setting, std::vector<TaskRow> rows,
                                             const Rng& order, const StepBatches& step, bool drop_last) {
  return std::make_unique<LabelledRows>(setting, std::move(rows), order, step, drop_last);
}

Collator rows_of_run(const RunConfig& config, const TokenStore& store, const RowsStart& start) {
  const auto& folder = config.data.tokens;
  const bool has_head = !config.objectives.empty() && learns_task(config.objectives[0]);
  if (!has_head || !is_prepared_task(folder)) return text_rows(config, store, start);
  auto context = row_context(config, store, start);
  require_special_tokens(config.objectives, backbone_of(config.model), store.tokenizer(), folder);
  const auto setting = labelled_setting(config.model, config.objectives);
  auto rows = make_labelled_rows(setting, read_prepared_split(folder, context.stage).rows, context.order_rng,
                                 context.step.batches(), config.data.drop_last);
  return {std::move(context), std::move(rows)};
}

}  // namespace cloze
