#pragma once
// The points of a scaling law: from a table, from run directories, from a study.
#include <array>
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "study/statistics/fit.h"

namespace cloze {

/// Which parameters are the size of a model.
enum class SizeCount { all, non_embedding };
constexpr auto choices(SizeCount) {
  using enum SizeCount;
  return std::array{Choice{all, "all", "every parameter of the checkpoint"},
                    Choice{non_embedding, "non_embedding", "without the tables of tokens, positions and segments"}};
}

/// Names of columns. `flops` not empty: tokens are FLOPs / (6 size).
struct PointColumns {
  std::string size = "size", tokens = "tokens", flops{}, loss = "loss";
};

/// The points of a CSV file (RFC 4180) whose first line names its columns. Throws DataError with the line for a column
/// that is missing, a cell that is not a number above 0, and a text that is no table.
std::vector<ScalingPoint> read_points(const std::string& path, const PointColumns& columns);

/// A point for each run directory: its parameters, the tokens that it read and its last held-out loss; of a run of
/// wsd_s also one for the end of each earlier decay at which it was evaluated. Throws DataError for runs that are not
/// finished or were not scored alike.
std::vector<ScalingPoint> points_of_runs(const std::vector<std::string>& runs, SizeCount count);

/// The same points of each finished run of a study, by the metric of the study. `folder` empty: studies/NAME. Throws
/// ConfigError for a study with a `probe_head`, DataError for one without a finished run.
std::vector<ScalingPoint> points_of_study(const std::string& file, const std::string& folder, SizeCount count);

}  // namespace cloze
