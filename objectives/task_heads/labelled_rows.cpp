#include "objectives/task_heads/labelled_rows.h"

#include <algorithm>
#include <span>

#include "core/error.h"
#include "models/attention/config.h"
#include "tasks/rows/epoch_order.h"
#include "tasks/rows/like_lengths.h"
#include "tasks/rows/prepared_task.h"

namespace cloze {

namespace {

/// A tensor of one number for each row.
template <class F>
Tensor of_each(const std::vector<const TaskRow*>& rows, const F& value) {
  std::vector<int64_t> all;
  for (const auto* row : rows) all.push_back(value(*row));
  return to_tensor(all);
}

/// The positions of padding before a row's first token in a batch of this length.
int64_t padding_before(const LabelledSetting& in, const TaskRow& row, int64_t length) {
  return in.pads_left ? length - static_cast<int64_t>(row.ids.size()) : 0;
}

/// Ids, mask and segments.
void add_text(Batch& batch, const std::vector<const TaskRow*>& rows, int64_t filler, const LabelledSetting& in) {
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

/// The tokens [begin, end) of a row that are global in window attention.
std::pair<int64_t, int64_t> global_tokens_of(TaskKind task, const TaskRow& row) {
  if (task == TaskKind::spans) return {0, row.first_end};
  if (task == TaskKind::choice && row.second_end > row.second_begin)
    return {row.second_begin, static_cast<int64_t>(row.ids.size())};
  return {row.class_token, row.class_token + 1};
}

void add_global_tokens(Batch& batch, const std::vector<const TaskRow*>& rows, const LabelledSetting& in) {
  batch.global_attention_mask = at::zeros_like(batch.input_ids, at::kBool);
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto [begin, end] = global_tokens_of(in.task, *rows[r]);
    const auto before = padding_before(in, *rows[r], batch.input_ids.size(1));
    batch.global_attention_mask[static_cast<int64_t>(r)].narrow(0, before + begin, end - begin).fill_(true);
  }
}

/// The rows of each item, which stand together.
void add_candidates(Batch& batch, const std::vector<const TaskRow*>& rows, bool with_targets) {
  std::vector<std::vector<int64_t>> items;
  std::vector<int64_t> right;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (r == 0 || rows[r]->item != rows[r - 1]->item) {
      items.emplace_back();
      right.push_back(no_label);
    }
    if (rows[r]->label == 1) right.back() = static_cast<int64_t>(items.back().size());
    items.back().push_back(static_cast<int64_t>(r));
  }
  size_t most = 0;
  for (const auto& item : items) most = std::max(most, item.size());
  batch.candidates = at::full({static_cast<int64_t>(items.size()), static_cast<int64_t>(most)}, -1, at::kLong);
  for (size_t i = 0; i < items.size(); ++i)
    std::copy(items[i].begin(), items[i].end(), batch.candidates.data_ptr<int64_t>() + i * most);
  if (with_targets) batch.labels = to_tensor(right);
}

/// The tokens that carry a tag.
void add_tags(Batch& batch, const std::vector<const TaskRow*>& rows) {
  const int64_t width = batch.input_ids.size(1);
  std::vector<int64_t> positions, labels;
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t t = 0; t < rows[r]->labels.size(); ++t) {
      if (rows[r]->labels[t] == no_label) continue;
      positions.push_back(static_cast<int64_t>(r) * width + static_cast<int64_t>(t));
      labels.push_back(rows[r]->labels[t]);
    }
  batch.positions = to_tensor(positions);
  batch.labels = to_tensor(labels);
}

void add_targets(Batch& batch, const std::vector<const TaskRow*>& rows, const LabelledSetting& in) {
  const auto count = static_cast<int64_t>(rows.size());
  switch (in.task) {
    case TaskKind::classification:
      batch.labels = of_each(rows, [](const TaskRow& row) { return row.label; });
      break;
    case TaskKind::multilabel:
      batch.targets = at::zeros({count, in.labels}, at::kFloat);
      for (int64_t r = 0; r < count; ++r)
        std::copy_n(rows[static_cast<size_t>(r)]->labels.begin(), in.labels,
                    batch.targets.data_ptr<float>() + r * in.labels);
      break;
    case TaskKind::regression:
      batch.targets = at::zeros({count, 1}, at::kFloat);
      for (int64_t r = 0; r < count; ++r)
        batch.targets.data_ptr<float>()[r] = static_cast<float>(rows[static_cast<size_t>(r)]->value);
      break;
    case TaskKind::tagging:
      add_tags(batch, rows);
      break;
    case TaskKind::spans:
      batch.labels = at::stack({of_each(rows, [](const TaskRow& row) { return row.start; }),
                                of_each(rows, [](const TaskRow& row) { return row.end; })},
                               1);
      break;
    case TaskKind::choice:
      break;
  }
}

/// Throws DataError for a label that the head has no output for.
void check_label(const TaskRow& row, int64_t label, int64_t labels) {
  require<DataError>(label == no_label || (label >= 0 && label < labels), "item ", row.item,
                     " of the task has the label ", label, ", and its labels are 0 to ", labels - 1,
                     "; name that label, or leave the item out");
}

void check_row(const TaskRow& row, const LabelledSetting& in) {
  require<DataError>(!row.ids.empty(), "item ", row.item, " of the task has a row without tokens; leave it out");
  if (in.task == TaskKind::classification) check_label(row, row.label, in.labels);
  if (in.task == TaskKind::tagging)
    for (const auto label : row.labels) check_label(row, label, in.labels);
  require<DataError>(in.task != TaskKind::multilabel || static_cast<int64_t>(row.labels.size()) == in.labels, "item ",
                     row.item, " of the task has ", row.labels.size(), " entries for ", in.labels,
                     " labels; give one for each");
}

class LabelledRows final : public RowMaker {
 public:
  LabelledRows(const LabelledSetting& setting, std::vector<TaskRow> rows, const Rng& order, int64_t batch_size,
               bool drop_last)
      : in_(setting), rows_(std::move(rows)), order_(order) {
    require<DataError>(!rows_.empty(), "the task has no rows to train on; look at them with `cloze inspect task`");
    for (size_t r = 0; r < rows_.size(); ++r) {
      check_row(rows_[r], in_);
      states_before_.push_back(states_before_.back() + count_trained_states(in_.task, rows_[r]));
      const bool goes_on = in_.task == TaskKind::choice && r > 0 && rows_[r].item == rows_[r - 1].item;
      if (!goes_on) begins_.push_back(r);
    }
    examples_ = begins_.size();
    begins_.push_back(rows_.size());
    step_ = static_cast<uint64_t>(std::max<int64_t>(batch_size, 1));
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
    const auto place = first % step_, wanted = static_cast<uint64_t>(count);
    auto all = examples_at(first - place, std::max(step_, place + wanted));
    std::ranges::stable_sort(all, {}, [&](uint64_t example) { return size_of(example).length; });
    const auto begin = std::min<uint64_t>(place, all.size()), end = std::min<uint64_t>(place + wanted, all.size());
    const std::span own(all.begin() + static_cast<int64_t>(begin), all.begin() + static_cast<int64_t>(end));
    std::vector<RowsSize> sizes;
    for (const auto example : own) sizes.push_back(size_of(example));
    std::vector<Batch> batches;
    size_t at = 0;
    for (const auto next : in_.unpads ? ends_of_unpadded_batches(sizes) : ends_of_batches(sizes)) {
      auto batch = batch_of(own.subspan(at, next - at));
      at = next;
      const bool has_loss = in_.task != TaskKind::tagging || batch.labels.numel() > 0;
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

  RowsSize size_of(uint64_t example) const {
    RowsSize size{.rows = static_cast<int64_t>(begins_[example + 1] - begins_[example])};
    for (auto r = begins_[example]; r < begins_[example + 1]; ++r)
      size.length = std::max(size.length, std::ssize(rows_[r].ids));
    return size;
  }

  Batch batch_of(std::span<const uint64_t> examples) const {
    std::vector<const TaskRow*> chosen;
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
  uint64_t step_ = 1;  // examples of a training step
  Rng order_;
};

}  // namespace

LabelledSetting labelled_setting(const ModelConfig& model, const Objectives& objectives) {
  for (const auto& objective : objectives) {
    LabelledSetting setting{.model = model};
    if (const auto* terms = task_head_of(objective, &setting.task)) {
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

int64_t count_trained_states(TaskKind task, const TaskRow& row) {
  if (task != TaskKind::tagging) return 1;
  return static_cast<int64_t>(row.labels.size()) - std::ranges::count(row.labels, no_label);
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

Batch labelled_batch(const LabelledSetting& in, const std::vector<const TaskRow*>& rows, bool with_targets) {
  const auto& model = transformer_of(in.model);
  Batch batch;
  add_text(batch, rows, model.pad_token_id, in);
  if (model.is_encoder_decoder()) batch.decoder_input_ids = shifted_right(batch.input_ids, in.model);
  const bool windows = std::holds_alternative<WindowAttention>(*model.attention);
  if (windows && in.task != TaskKind::tagging) add_global_tokens(batch, rows, in);
  if (reads_texts(in.task)) batch.class_positions = of_each(rows, [](const TaskRow& row) { return row.class_token; });
  if (in.task == TaskKind::spans)
    batch.context_begin = of_each(rows, [](const TaskRow& row) { return row.second_begin; });
  if (in.task == TaskKind::choice) add_candidates(batch, rows, with_targets);
  if (with_targets) add_targets(batch, rows, in);
  return batch;
}

std::unique_ptr<RowMaker> make_labelled_rows(const LabelledSetting& setting, std::vector<TaskRow> rows,
                                             const Rng& order, int64_t batch_size, bool drop_last) {
  return std::make_unique<LabelledRows>(setting, std::move(rows), order, batch_size, drop_last);
}

std::unique_ptr<RowMaker> make_task_rows(const std::string& kind, const RowContext& context) {
  const auto& folder = context.data.tokens;
  require<ConfigError>(is_prepared_task(folder), "objective ", kind, " reads the rows of a task, and ", folder,
                       " has none; fine-tune with `cloze finetune RUN TASK.yaml`");
  auto part = read_prepared_part(folder, context.stage);
  auto setting = labelled_setting(context.model, context.objectives);
  setting.unpads = setting.unpads && context.step.has_unpadded_form;
  return make_labelled_rows(setting, std::move(part.rows), context.order_rng,
                            context.step.batch_size * context.step.accumulation,
                            context.data.drop_last && context.stage == "train");
}

}  // namespace cloze
