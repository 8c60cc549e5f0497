#pragma once
// The score of a task by the layer whose states a linear probe reads.
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/report/table.h"
#include "tasks/scores/scores.h"

namespace cloze {

/// A layer, 0 = the embeddings, with the score of its probe on both parts.
struct LayerPoint {
  int64_t layer = 0;
  Score valid{}, test{};
};

/// The probes of a run at one step. The best one is chosen on the valid part alone.
struct LayerCurve {
  std::string task{}, metric{};
  size_t best = 0;                   ///< number of a point
  std::vector<LayerPoint> points{};  ///< ascending by layer
};

/// A row a layer: its score on both parts, and the interval of the latter.
Table table_of(const LayerCurve& curve);

/// `the best of 5 layers on the valid part is 3, with accuracy 90.11 %; its test figure is 89.00 %`, or that none is
std::string verdict_of(const LayerCurve& curve);

/// [{"layer", "valid": {"value", "count"}, "test": {"value", "low", "high", "count"}}]; null for what is undefined.
nlohmann::json to_json(const LayerCurve& curve);

/// Both scores over the layers as the text of an SVG file, with the interval of the test part.
std::string layers_svg(const LayerCurve& curve);

}  // namespace cloze
