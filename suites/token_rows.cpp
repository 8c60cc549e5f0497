#include "suites/token_rows.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "core/error.h"

namespace cloze {

namespace {

/// Orders rows by their lengths, and those of equal lengths by their ids.
struct ByShape {
  static auto shape(const TokenIds& row) { return std::pair(row.ids.size(), row.decoder.size()); }
  bool operator()(const TokenIds* a, const TokenIds* b) const {
    return shape(*a) != shape(*b) ? shape(*a) < shape(*b) : *a < *b;
  }
};
using DistinctRows = std::map<const TokenIds*, std::vector<size_t>, ByShape>;  // with the numbers of equal rows

constexpr size_t batch_tokens = 4096;
constexpr size_t batch_predictions = 512;  // rows of logits at a time

/// Distinct rows of equal lengths, and what is asked of their states.
struct RowBatch {
  struct Question {
    int64_t state;  ///< index into [B T]
    int64_t target;
    size_t row, number;  ///< of the answer
  };
  std::vector<const TokenIds*> rows{};
  std::vector<Question> questions{};
};

std::vector<RowBatch> batches_of(const std::vector<TokenRow>& rows) {
  DistinctRows distinct;
  for (size_t r = 0; r < rows.size(); ++r) distinct[&rows[r].read].push_back(r);
  std::vector<RowBatch> batches;
  for (const auto& [read, numbers] : distinct) {
    const size_t length = read->ids.size() + read->decoder.size();
    const bool fits = !batches.empty() && ByShape::shape(*batches.back().rows[0]) == ByShape::shape(*read) &&
                      (batches.back().rows.size() + 1) * length <= batch_tokens;
    if (!fits) batches.emplace_back();
    auto& batch = batches.back();
    const auto first = batch.rows.size() * (read->decoder.empty() ? read->ids.size() : read->decoder.size());
    batch.rows.push_back(read);
    for (const auto row : numbers)
      for (size_t k = 0; k < rows[row].asked.size(); ++k)
        batch.questions.push_back({.state = static_cast<int64_t>(first) + rows[row].asked[k].position,
                                   .target = rows[row].asked[k].target,
                                   .row = row,
                                   .number = k});
  }
  return batches;
}

/// Ids of one side of rows, int64 [B, T].
Tensor stacked(const std::vector<const TokenIds*>& rows, std::vector<int64_t> TokenIds::* side) {
  std::vector<int64_t> flat;
  for (const auto* row : rows) flat.insert(flat.end(), (row->*side).begin(), (row->*side).end());
  return at::tensor(flat, at::kLong).view({static_cast<int64_t>(rows.size()), -1});
}

/// The hidden states [B T, D] of a batch.
Tensor states_of(const LoadedRun& run, const RowBatch& batch, bool bidirectional) {
  auto& backbone = *run.network->backbone;
  const auto device = backbone.token_embedding().value().device();
  Inputs inputs{.input_ids = stacked(batch.rows, &TokenIds::ids).to(device)};
  if (!batch.rows[0]->decoder.empty()) {
    inputs.decoder_input_ids = stacked(batch.rows, &TokenIds::decoder).to(device);
    inputs.encoded = backbone.encode(inputs);
  }
  if (bidirectional && backbone_of(run.config.model).is_decoder())
    inputs.prefix = at::full({inputs.input_ids.size(0)}, inputs.input_ids.size(1), at::kLong).to(device);
  return backbone.hidden(inputs).flatten(0, 1);
}

/// The logits [N, V] of states [N, D].
Tensor logits_of(const LoadedRun& run, const Tensor& states) {
  for (const auto& objective : run.network->objectives)
    for (const auto& [name, logits] : objective->outputs(*run.network->backbone, states.unsqueeze(0)))
      if (name == "prediction_logits" || (name == "logits" && logits.dim() == 3)) return logits[0].to(at::kFloat);
  fail<ConfigError>(run.folder, ": has no head that predicts tokens");
}

/// Answers some questions to the states [B T, D] of their batch.
void answer(const LoadedRun& run, const Tensor& states, std::span<const RowBatch::Question> questions,
            std::vector<std::vector<float>>& answers) {
  std::vector<int64_t> chosen, targets;
  for (const auto& question : questions) {
    chosen.push_back(question.state);
    targets.push_back(question.target);
  }
  const auto logits = logits_of(run, states.index_select(0, at::tensor(chosen, at::kLong).to(states.device()))).cpu();
  const auto logs = logits.log_softmax(1).gather(1, at::tensor(targets, at::kLong).unsqueeze(1)).contiguous();
  const auto* values = logs.data_ptr<float>();
  for (size_t k = 0; k < questions.size(); ++k) {
    require<DataError>(!std::isnan(values[k]), run.folder, ": its logits are not finite; the weights may be damaged");
    answers[questions[k].row][questions[k].number] = values[k];
  }
}

}  // namespace

void check_fit(const LoadedRun& run, const std::vector<TokenRow>& rows) {
  const auto longest = static_cast<size_t>(backbone_of(run.config.model).max_input_length());
  for (const auto& row : rows) {
    const size_t length = std::max(row.read.ids.size(), row.read.decoder.size());
    require<DataError>(length <= longest, run.folder, ": reads at most ", longest, " tokens; a text has ", length);
  }
}

std::vector<std::vector<float>> log_probabilities(const LoadedRun& run, const std::vector<TokenRow>& rows,
                                                  bool bidirectional) {
  at::NoGradGuard no_grad;
  check_fit(run, rows);
  std::vector<std::vector<float>> answers;
  for (const auto& row : rows) answers.emplace_back(row.asked.size());
  for (const auto& batch : batches_of(rows)) {
    if (batch.questions.empty()) continue;
    const auto states = states_of(run, batch, bidirectional);
    const std::span<const RowBatch::Question> all = batch.questions;
    for (size_t first = 0; first < all.size(); first += batch_predictions)
      answer(run, states, all.subspan(first, std::min(batch_predictions, all.size() - first)), answers);
  }
  return answers;
}

}  // namespace cloze
