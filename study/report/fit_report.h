#pragma once
// What a fit found, in the forms that readers and programs want.
#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/config/config_rule.h"
#include "study/statistics/fit.h"

namespace cloze {

/// A value of the law and what the resampled laws say of it.
struct Estimate {
  std::string name;
  double value = 0;
  Interval interval{};
};

/// What the law says of one budget of FLOPs, or of one size with its tokens.
struct PredictedRun {
  Estimate flops, size, tokens, loss;
};

struct FitReport {
  std::vector<ScalingPoint> points{};
  std::string counted{};  ///< what size and tokens are
  ScalingFit fit{};
  bool has_intervals = true;
  std::vector<Estimate> parameters{};     ///< E, A, B, alpha, beta
  std::vector<Estimate> exponents{};      ///< a of N ~ C^a, b of D ~ C^b
  std::vector<PredictedRun> optimal{};    ///< compute-optimal, one for each budget
  std::vector<PredictedRun> predicted{};  ///< of the sizes that were asked for
  double deviation = 0;                   ///< median of |log L - log L(N, D)|
  double largest_deviation = 0;
  std::string farthest{};  ///< name of that point
  std::vector<std::string> doubts{};
};

struct FitQuestion {
  std::string counted{};
  std::vector<double> budgets{};                   ///< FLOPs; empty: those of the largest point and ten times as many
  std::vector<std::pair<double, double>> sizes{};  ///< sizes with their tokens, whose loss is asked for
  FitOptions options{};
};

/// Fits and says what follows. Throws DataError as fit_scaling_law.
FitReport make_fit_report(const std::vector<ScalingPoint>& points, const FitQuestion& question);

/// In lines of at most `columns`.
std::string to_text(const FitReport& report, int64_t columns);
/// One line for each estimate: quantity, value, low, high.
std::string to_csv(const FitReport& report);
nlohmann::json to_json(const FitReport& report);
/// A page that opens from disk without a network: IsoFLOP curves with the points, compute-optimal size and tokens.
std::string to_page(const FitReport& report);

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
