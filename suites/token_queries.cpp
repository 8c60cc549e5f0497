#include "suites/token_queries.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <map>
#include <tuple>

#include "core/error.h"

namespace cloze {

namespace {

/// What two queries share that are answered by one row of logits.
struct Row {
  std::vector<int64_t> ids, decoder;
  int64_t position;
  auto operator<=>(const Row&) const = default;
};

using Shape = std::pair<size_t, size_t>;  // lengths of ids and decoder
using Rows = std::map<Row, std::vector<size_t>>;  // with the indices of their queries

constexpr size_t batch_rows = 64;

/// Ids of one side of rows, int64 [B, T].
Tensor stacked(const std::vector<const Row*>& rows, std::vector<int64_t> Row::*side) {
  std::vector<int64_t> flat;
  for (const auto* row : rows) flat.insert(flat.end(), (row->*side).begin(), (row->*side).end());
  return at::tensor(flat, at::kLong).view({static_cast<int64_t>(rows.size()), -1});
}

/// The logits [B, V] of rows of equal lengths, fp32.
Tensor logits_of(const LoadedRun& run, const std::vector<const Row*>& rows, bool bidirectional) {
  auto& network = *run.network;
  Inputs inputs{.input_ids = stacked(rows, &Row::ids)};
  if (!rows[0]->decoder.empty()) {
    inputs.decoder_input_ids = stacked(rows, &Row::decoder);
    inputs.encoded = network.backbone->encode(inputs);
  }
  if (bidirectional && backbone_of(run.config.model).is_decoder())
    inputs.prefix = at::full({inputs.input_ids.size(0)}, inputs.input_ids.size(1), at::kLong);
  const auto hidden = network.backbone->hidden(inputs);  // [B, T, D]
  std::vector<int64_t> positions;
  for (const auto* row : rows) positions.push_back(row->position);
  const auto chosen = hidden.gather(1, at::tensor(positions, at::kLong).view({-1, 1, 1}).expand({-1, 1, hidden.size(2)}));
  for (const auto& objective : network.objectives)
    for (const auto& [name, logits] : objective->outputs(*network.backbone, chosen))
      if (name == "prediction_logits" || (name == "logits" && logits.dim() == 3)) return logits.squeeze(1).to(at::kFloat);
  fail<ConfigError>(run.folder, ": has no head that predicts tokens");
}

}  // namespace

std::vector<double> log_probabilities(const LoadedRun& run, const std::vector<TokenQuery>& queries,
                                      bool bidirectional) {
  at::NoGradGuard no_grad;
  const auto longest = static_cast<size_t>(backbone_of(run.config.model).max_input_length());
  std::map<Shape, Rows> shapes;
  for (size_t q = 0; q < queries.size(); ++q) {
    const auto& [ids, decoder, position, target] = queries[q];
    require<DataError>(ids.size() <= longest, run.folder, ": reads at most ", longest, " tokens; a row has ",
                       ids.size());
    shapes[{ids.size(), decoder.size()}][{ids, decoder, position}].push_back(q);
  }
  std::vector<double> found(queries.size());
  for (const auto& [shape, rows] : shapes) {
    for (auto first = rows.begin(); first != rows.end();) {
      std::vector<const Row*> batch;
      auto last = first;
      for (; last != rows.end() && batch.size() < batch_rows; ++last) batch.push_back(&last->first);
      const auto logs = logits_of(run, batch, bidirectional).to(at::kDouble).log_softmax(1);  // [B, V]
      for (int64_t b = 0; first != last; ++first, ++b)
        for (const auto q : first->second) found[q] = logs[b][queries[q].target].item<double>();
    }
  }
  for (const auto value : found)
    require<DataError>(!std::isnan(value), run.folder, ": its logits are not finite; the weights may be damaged");
  return found;
}

}  // namespace cloze
