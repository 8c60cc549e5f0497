#include "finetune/labelled_rows.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "objectives/generative_rows.h"
#include "objectives/rows.h"

namespace cloze {

namespace {

/// A tensor of one number for each row.
template <class F>
Tensor of_each(const BatchRows& rows, const F& value) {
  std::vector<int64_t> all;
  for (const auto* row : rows) all.push_back(value(*row));
  return to_tensor(all);
}

int64_t label_of(const TaskRow& row) { return row.gold.label == unknown_label ? no_label : row.gold.label; }

void check_label(const TaskRow& row, int64_t label, int64_t labels) {
  require<DataError>(label == no_label || (label >= 0 && label < labels), "item ", row.item,
                     " of the task has the label ", label, ", and its labels are 0 to ", labels - 1,
                     "; name that label, or leave the item out");
}

struct ClassRows final : RowKind {
  void check(const TaskRow& row, int64_t labels) const override { check_label(row, label_of(row), labels); }
  void add_labels(Batch& batch, const BatchRows& rows, int64_t) const override {
    batch.labels = of_each(rows, label_of);
  }
};

struct MultilabelRows final : RowKind {
  void check(const TaskRow& row, int64_t labels) const override {
    require<DataError>(std::ssize(row.gold.labels) == labels, "item ", row.item, " of the task has ",
                       row.gold.labels.size(), " entries for ", labels, " labels; give one for each");
  }
  void add_labels(Batch& batch, const BatchRows& rows, int64_t labels) const override {
    batch.targets = at::zeros({std::ssize(rows), labels}, at::kFloat);
    auto* to = batch.targets.data_ptr<float>();
    for (const auto* row : rows) to = std::copy_n(row->gold.labels.begin(), labels, to);
  }
};

struct ValueRows final : RowKind {
  void add_labels(Batch& batch, const BatchRows& rows, int64_t) const override {
    batch.targets = at::zeros({std::ssize(rows), 1}, at::kFloat);
    auto* to = batch.targets.data_ptr<float>();
    for (const auto* row : rows) *to++ = static_cast<float>(row->gold.value);
  }
};

struct TagRows final : RowKind {
  void check(const TaskRow& row, int64_t labels) const override {
    for (const auto label : row.gold.labels) check_label(row, label, labels);
  }
  int64_t trained_states(const TaskRow& row) const override {
    return std::ssize(row.gold.labels) - std::ranges::count(row.gold.labels, no_label);
  }
  int64_t states(const TaskRow& row) const override { return std::ssize(row.ids); }
  std::optional<TokenRange> global_tokens(const TaskRow&) const override { return {}; }
  void add_facts(Batch&, const BatchRows&) const override {}
  /// Of the tokens that carry a tag.
  void add_labels(Batch& batch, const BatchRows& rows, int64_t) const override {
    const int64_t width = batch.input_ids.size(1);
    std::vector<int64_t> positions, labels;
    for (size_t r = 0; r < rows.size(); ++r)
      for (size_t t = 0; t < rows[r]->gold.labels.size(); ++t) {
        if (rows[r]->gold.labels[t] == no_label) continue;
        positions.push_back(static_cast<int64_t>(r) * width + static_cast<int64_t>(t));
        labels.push_back(rows[r]->gold.labels[t]);
      }
    batch.positions = to_tensor(positions);
    batch.labels = to_tensor(labels);
  }
};

struct SpanRows final : RowKind {
  std::optional<TokenRange> global_tokens(const TaskRow& row) const override { return TokenRange{0, row.first_end}; }
  void add_facts(Batch& batch, const BatchRows& rows) const override {
    batch.context_begin = of_each(rows, [](const TaskRow& row) { return row.second_begin; });
  }
  void add_labels(Batch& batch, const BatchRows& rows, int64_t) const override {
    const auto place = [&](size_t side) {
      return of_each(rows,
                     [&](const TaskRow& row) { return row.gold.labels.empty() ? no_label : row.gold.labels[side]; });
    };
    batch.labels = at::stack({place(0), place(1)}, 1);
  }
};

struct CandidateRows final : RowKind {
  bool joins_rows() const override { return true; }
  std::optional<TokenRange> global_tokens(const TaskRow& row) const override {
    if (row.second_end > row.second_begin) return TokenRange{row.second_begin, std::ssize(row.ids)};
    return RowKind::global_tokens(row);
  }
  /// The rows of each item, which stand together.
  void add_facts(Batch& batch, const BatchRows& rows) const override {
    RowKind::add_facts(batch, rows);
    std::vector<std::vector<int64_t>> items;
    size_t most = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      if (is_first(rows, r)) items.emplace_back();
      items.back().push_back(static_cast<int64_t>(r));
      most = std::max(most, items.back().size());
    }
    batch.candidates = at::full({std::ssize(items), static_cast<int64_t>(most)}, -1, at::kLong);
    for (size_t i = 0; i < items.size(); ++i)
      std::copy(items[i].begin(), items[i].end(), batch.candidates.data_ptr<int64_t>() + i * most);
  }
  /// The number of the right candidate of each item.
  void add_labels(Batch& batch, const BatchRows& rows, int64_t) const override {
    std::vector<int64_t> right;
    int64_t candidate = 0;
    for (size_t r = 0; r < rows.size(); ++r, ++candidate) {
      if (is_first(rows, r)) {
        right.push_back(no_label);
        candidate = 0;
      }
      if (rows[r]->gold.label == 1) right.back() = candidate;
    }
    batch.labels = to_tensor(right);
  }

 private:
  static bool is_first(const BatchRows& rows, size_t r) { return r == 0 || rows[r]->item != rows[r - 1]->item; }
};

struct TargetRows final : RowKind {
  void check(const TaskRow& row, int64_t labels) const override {
    const auto is_other = [&](int32_t id) { return id < 0 || id >= labels; };
    require<DataError>(!row.target.empty() && std::ranges::none_of(row.target, is_other), "item ", row.item,
                       " of the task has no target, or one with ids beyond the ", labels,
                       " of the vocabulary; restore its rows, or fine-tune again in another folder");
  }
  int64_t length(const TaskRow& row) const override { return std::ssize(row.ids) + std::ssize(row.target); }
  std::optional<Batch> own_batch(const LabelledSetting& in, const BatchRows& rows) const override {
    std::vector<SourceTarget> pairs;
    for (const auto* row : rows)
      pairs.push_back(
          {.source = {row->ids.begin(), row->ids.end()}, .target = {row->target.begin(), row->target.end()}});
    return source_target_batch(in.model, backbone_of(in.model).pad_token_id, pairs);
  }
  void add_labels(Batch&, const BatchRows&, int64_t) const override {}
};

}  // namespace

const RowKind& target_rows() {
  static const TargetRows targets;
  return targets;
}

void RowKind::add_facts(Batch& batch, const BatchRows& rows) const {
  batch.class_positions = of_each(rows, [](const TaskRow& row) { return row.class_token; });
}

const RowKind& row_kind_of(const TaskHead& head) {
  static const ClassRows classes;
  static const MultilabelRows several;
  static const ValueRows values;
  static const TagRows tags;
  static const SpanRows spans;
  static const CandidateRows candidates;
  static const std::map<std::string, const RowKind*> kinds{
      {ClassificationConfig::kind, &classes}, {MultilabelConfig::kind, &several}, {RegressionConfig::kind, &values},
      {TaggingConfig::kind, &tags},           {SpansConfig::kind, &spans},        {ChoiceConfig::kind, &candidates}};
  return *kinds.at(head.name());
}

}  // namespace cloze
