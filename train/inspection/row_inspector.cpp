#include "train/inspection/row_inspector.h"

#include <algorithm>

#include "objectives/kinds.h"
#include "objectives/special_tokens.h"
#include "run/training_rows.h"
#include "train/inspection/generative_checks.h"

namespace cloze {

namespace {

RunConfig with_special_ids(RunConfig config, const SpecialIds& special) {
  take_special_ids(config.model, special);
  return config;
}

}  // namespace

InspectedRun::InspectedRun(const RunConfig& run_config)
    : store(open_tokens(run_config, "train")),
      vocabulary(store.tokenizer()),
      config(with_special_ids(config_of_phase(run_config, 0), vocabulary.special)),
      steps(training_rows(config.train, store)),
      collator(rows_of(config.objectives)) {}

Collator InspectedRun::rows_of(const Objectives& objectives) const {
  return {store, objectives, config.data, row_streams(config.train), "train", config.model, steps};
}

std::unique_ptr<RowInspector> make_row_inspector(const InspectedRun& run) {
  const auto* own = row_objective_of(run.config.objectives);
  if (!own) return make_masked_inspector(run);
  return std::visit([&](const auto& kind) { return make_inspector(kind, run); }, **own);
}

double fraction(int64_t part, int64_t all) {
  return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
}

std::vector<size_t> prediction_order(const InspectedExample& example) {
  std::vector<size_t> order;
  for (size_t i = 0; i < example.labels.size(); ++i)
    if (example.labels[i] != -100) order.push_back(i);
  std::ranges::sort(order, {}, [&](size_t i) { return example.query_rank[i]; });
  return order;
}

namespace {

/// The real tokens of a row; permuted rows are padded on the left.
struct RowExtent {
  int64_t begin = 0, length = 0;
};

RowExtent extent_of(const Batch& batch, int64_t row) {
  const int64_t width = batch.input_ids.size(1);
  const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width;
  return {batch.target_positions.defined() ? width - length : 0, length};
}

/// The flat index into [B T] of prediction `i`; permuted rows list their targets separately.
int64_t flat_position(const Batch& batch, int64_t i) {
  const auto position = batch.positions.data_ptr<int64_t>()[i];
  if (!batch.target_positions.defined()) return position;
  const int64_t row = position / batch.target_positions.size(1);
  return row * batch.input_ids.size(1) + batch.target_positions.data_ptr<int64_t>()[position];
}

}  // namespace

std::vector<InspectedExample> labelled_rows(const Batch& batch) {
  const int64_t width = batch.input_ids.size(1);
  std::vector<InspectedExample> rows(static_cast<size_t>(batch.input_ids.size(0)));
  std::vector<RowExtent> extents;
  for (size_t r = 0; r < rows.size(); ++r) {
    auto& row = rows[r];
    const auto number = static_cast<int64_t>(r);
    const auto [begin, length] = extents.emplace_back(extent_of(batch, number));
    const auto* ids = batch.input_ids.data_ptr<int64_t>() + number * width + begin;
    row.input_ids.assign(ids, ids + length);
    row.labels.assign(static_cast<size_t>(length), -100);
    row.token_type_ids.assign(static_cast<size_t>(length), 0);
    if (batch.token_type_ids.defined())
      std::copy_n(batch.token_type_ids.data_ptr<int64_t>() + number * width + begin, length,
                  row.token_type_ids.begin());
    if (batch.prefix.defined()) row.prefix = batch.prefix.data_ptr<int64_t>()[r];
    if (batch.pair_label.defined()) row.pair_label = batch.pair_label.data_ptr<int64_t>()[r];
  }
  for (int64_t i = 0; batch.positions.defined() && i < batch.positions.numel(); ++i) {
    const auto position = flat_position(batch, i);
    const auto row = static_cast<size_t>(position / width);
    const auto at = position % width - extents[row].begin;
    if (at < extents[row].length) rows[row].labels[static_cast<size_t>(at)] = batch.labels.data_ptr<int64_t>()[i];
  }
  return rows;
}

std::string marked_token(const InspectedRun& run, int64_t id, int64_t label) {
  const auto token = run.tokenizer().readable_piece(id);
  if (id == run.vocabulary.special.mask) return "{" + token + "}";
  return id == label ? "(" + token + ")" : "<" + token + ">";
}

ShownToken shown_token(const InspectedRun& run, int64_t id) {
  const bool special = run.tokenizer().is_special(id);
  return {.piece = run.tokenizer().readable_piece(id), .role = special ? TokenRole::special : TokenRole::text};
}

ShownToken shown_chosen(const InspectedRun& run, int64_t id, int64_t label) {
  const bool masked = id == run.vocabulary.special.mask;
  return {.piece = run.tokenizer().readable_piece(id),
          .role = masked        ? TokenRole::masked
                  : id == label ? TokenRole::kept
                                : TokenRole::random};
}

void add_masked_text(const InspectedRun& run, InspectedExample& e) {
  std::vector<int64_t> original;
  for (size_t i = 0; i < e.input_ids.size(); ++i) {
    const auto id = e.input_ids[i], label = e.labels[i];
    const bool predicted = label != -100;
    original.push_back(predicted ? label : id);
    e.corrupted += (i > 0 ? " " : "") + (predicted ? marked_token(run, id, label) : run.tokenizer().readable_piece(id));
    if (predicted) e.targets += (e.targets.empty() ? "" : " ") + run.tokenizer().readable_piece(label);
  }
  e.text = run.tokenizer().decode(original);
}

}  // namespace cloze
