#include "cli/engine/common_evaluation.h"

#include <algorithm>

#include "core/log.h"
#include "core/text.h"
#include "run/config_io.h"
#include "run/load_config.h"
#include "run/objective_short_form.h"

namespace cloze {

std::vector<std::string> names_of(const EvaluationConfig& evaluation) {
  std::vector<std::string> names;
  for (const auto& objective : evaluation.objectives) names.push_back(short_form(objective));
  return names;
}

namespace {

/// Keeps the objectives that all runs are scored by, and logs the others.
void keep_common(EvaluationConfig& evaluation, const std::vector<EvaluatedRun>& runs) {
  std::vector<std::vector<std::string>> of_runs;
  for (const auto& one : runs) of_runs.push_back(names_of(resolved_evaluation(one.run.config)));
  const auto first = names_of(evaluation);
  std::erase_if(evaluation.objectives, [&](const ObjectiveConfig& objective) {
    const auto name = short_form(objective);
    for (size_t r = 1; r < runs.size(); ++r) {
      if (std::find(of_runs[r].begin(), of_runs[r].end(), name) != of_runs[r].end()) continue;
      log_info("evaluate", words(name, " is skipped: ", runs[r].path, " is scored by ", listed(of_runs[r])));
      return true;
    }
    return false;
  });
  require<ConfigError>(!evaluation.objectives.empty(), runs[0].path, " is scored by ", listed(first), ", ",
                       runs[1].path, " by ", listed(of_runs[1]),
                       "; name an objective for both, such as --objective mlm:0.15");
}

}  // namespace

EvaluationConfig common_evaluation(const EvaluateCommand& c, const std::vector<EvaluatedRun>& runs) {
  bool named = !c.objectives.empty(), sized = false;
  for (const auto& change : c.set) {
    require<ConfigError>(change.rfind("evaluation.", 0) == 0, "--set ", change,
                         ": evaluate accepts keys of `evaluation` only, such as --set evaluation.seed=2");
    named = named || change.rfind("evaluation.objectives", 0) == 0;
    sized = sized || change.rfind("evaluation.max_seq_length=", 0) == 0;
  }
  auto first = decode<RunConfig>(load_run_config(runs[0].run.folder + "/run.yaml", c.set));
  first.objectives = runs[0].run.config.objectives;
  auto evaluation = resolved_evaluation(first);
  if (!c.objectives.empty()) evaluation.objectives.clear();
  for (const auto& text : c.objectives)
    for (const auto& objective : separate_losses(parse_objective(text))) evaluation.objectives.push_back(objective);
  if (c.sequences > 0) evaluation.sequences = c.sequences;
  if (!named && runs.size() > 1) keep_common(evaluation, runs);
  for (const auto& one : runs)
    if (!sized)
      evaluation.max_seq_length =
          std::min(evaluation.max_seq_length, resolved_evaluation(one.run.config).max_seq_length);
  return evaluation;
}

void skip_document_pairs(std::vector<EvaluatedRun>& runs, const std::string& text) {
  const auto has_one = [](const EvaluatedRun& one) { return one.store->num_documents() < 2; };
  if (std::none_of(runs.begin(), runs.end(), has_one)) return;
  auto left = runs[0].config.evaluation.objectives;
  const auto rows = held_out_data(runs[0].config);
  std::vector<std::string> skipped;
  std::erase_if(left, [&](const ObjectiveConfig& objective) {
    if (!needs_documents(row_objectives(objective), rows)) return false;
    skipped.push_back(short_form(objective));
    return true;
  });
  require<DataError>(!left.empty(), text, ": is a single document, and ", listed(skipped),
                     " needs two; separate documents by blank lines");
  for (const auto& name : skipped)
    log_info("evaluate", words(name, " is skipped: it needs two documents, and ", text,
                               " is a single one; separate documents by blank lines"));
  for (auto& one : runs) one.config.evaluation.objectives = left;
}

}  // namespace cloze
