#pragma once
// What the files of a run say of it: held_out.json, metrics.jsonl, summary.json and provenance.json.
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "study/measures/metric.h"

namespace cloze {

/// The summary.json of a run directory; null where there is none, and where it is damaged, which with a `remedy` is a
/// DataError that ends in it. Throws Error for one that cannot be read.
nlohmann::json read_summary(const std::string& folder, const std::string& remedy = "");

/// The fields of a file of a run that has the hash of one of its parts. Throws DataError, which ends in the `remedy`,
/// for one that is missing, so that the run `lacks` something, and for one that is damaged, cut or was edited.
nlohmann::json sealed_fields(const std::string& path, const std::string& part, const std::string& lacks,
                             const std::string& remedy);

/// What a run has used up, or the mean of runs.
struct Usage {
  double step = 0, tokens = 0, predicted_tokens = 0, words = 0, epochs = 0, seconds = 0, flops = 0;
  Usage& operator+=(const Usage& other);
  Usage operator/(double count) const;
};

/// One point of a curve.
struct CurvePoint : Usage {
  int64_t point = 0;  ///< index of the evaluation, by which curves of several seeds are averaged
  double loss = 0;
  double fraction = 0;  ///< of the budget that was used up
  double floor = 0;     ///< of the loss, as in MetricValue
  std::string of{};     ///< the losses that it is of, where the metric is judged after the training; else empty
};

/// What metrics.jsonl says of a run.
struct RunLog {
  std::vector<CurvePoint> curve{};         ///< the metric along the run, `loss` of its points
  Usage last{};                            ///< at its last line, without words and epochs
  double fraction = 0;                     ///< of the budget that is used up
  std::string diverged{};                  ///< what the run said when it ended by that, at its last line
  int64_t damaged = 0, first_damaged = 0;  ///< damaged lines, and the number of the first
};
/// `points`: evaluations at equal shares of the budget; 0: so many steps apart, which then are the index. A loss
/// without a name is that which the run was evaluated by.
RunLog read_log(const std::string& folder, const StudyMetric& metric = LossMetric{.name = ""}, int64_t points = 0);

/// The curve alone, all of one loss. Warns of damaged lines.
std::vector<CurvePoint> read_curve(const std::string& folder, const StudyMetric& metric, int64_t points);

/// The words and epochs that runs have read, where their summaries say them.
Usage text_read(const std::string& folder);

/// A number of a part of a row of metrics.jsonl, such as the `seconds` of `time`.
double number_at(const nlohmann::json& row, const char* part, const std::string& key, double otherwise);

/// What provenance.json says of a run.
struct Provenance {
  std::string tokenizer{};  ///< its fingerprint; empty where the run does not say
  std::string texts{};      ///< fingerprint of all text that it was trained and scored on, as tokenizer
  std::string made_by{};    ///< program, LibTorch and processor; empty where the run does not say
  bool is_dirty = false;    ///< made by a program whose source had changes that no commit has
  std::string changed{};    ///< `changed at step 40: ...`, of a run whose training was changed on its way
};
/// That of a run, with what was changed of those before it: the runs whose networks it goes on from.
Provenance read_provenance(const std::string& folder, const std::vector<std::string>& before = {});

/// What is added to the name of an arm for its runs that were `changed`: `, changed at step 40`.
std::string changed_name(const std::string& changed);

/// Held-out losses of one objective, example by example.
struct HeldOutLosses {
  ExampleLosses examples{};     ///< NaN for what is not finite
  std::vector<double> bytes{};  ///< [E], of the source text of the predicted tokens; empty where they are not known
};

/// The held_out.json of a run directory.
struct HeldOutFile {
  std::string measured{}, text{};  ///< as in MetricValue
  int64_t step = 0;
  std::map<std::string, HeldOutLosses> losses{};  ///< by objective in short form
};
/// Throws DataError, which ends in the `remedy`, for a file that is missing, damaged, cut or edited, and for one whose
/// losses are not those in the summary.json of the run.
HeldOutFile read_held_out(const std::string& folder, const std::string& remedy);

}  // namespace cloze
