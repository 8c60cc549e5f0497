#pragma once
// What a study is going to do: its arms, and one run for each arm and seed, every mistake reported before the first of
// them.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/config/train_config.h"
#include "study/measures/metric.h"
#include "study/plan/config.h"

namespace cloze {

/// Dotted paths of a config with their values.
using KeyValues = std::vector<std::pair<std::string, ConfigNode>>;

/// An arm with everything that sets it apart from the base.
struct Arm {
  std::string name;                      ///< of a sweep with its values: `wide, hidden_size=256`
  KeyValues keys;                        ///< in the order in which they are laid over
  KeyValues tuned{};                     ///< what a search found, laid over these
  std::optional<std::string> unswept{};  ///< of a sweep: its name without the values
};

/// What `cloze finetune` is called with.
struct Finetuning {
  std::string task{};                  ///< its name; empty: the run is no fine-tuning
  std::string file{};                  ///< of the task
  std::string arm{};                   ///< of the run that is fine-tuned
  int64_t seed = 0;                    ///< of the fine-tuning
  std::vector<std::string> options{};  ///< further arguments: `--like`, `turc-2019`
  KeyValues tuned{};                   ///< values of a search that are among them
};

/// What a run trains. All but the fresh ones begin with the last step of their last input.
enum class RunKind {
  fresh,      ///< a network from drawn weights, or from those that its config names
  continued,  ///< the same run with a larger budget, in a copy of its folder
  stage,      ///< the network by another config
  probe,      ///< a new head on the network, which stays as it is
  finetuned   ///< the network on a task, by `cloze finetune`
};

/// One run of a study.
struct PlannedRun {
  std::string arm;
  int64_t seed = 0;
  std::string folder{};  ///< `studies/NAME/runs/wide/seed-1`; its record, log and config are called as it is
  RunConfig config{};
  std::string fingerprint{};  ///< of everything that makes its numbers: config, text, tokenizer
  RunKind kind = RunKind::fresh;
  /// Folders of the runs of the study that its network comes from, the first first; the last must have ended before.
  std::vector<std::string> inputs{};
  Finetuning finetuning{};
  std::string source() const { return inputs.empty() ? "" : inputs.back(); }
  bool is_finetuning() const { return kind == RunKind::finetuned; }
  /// The inputs whose use counts as its own. That of a continued run is in its own files.
  std::vector<std::string> counted_inputs() const;
  std::string name() const { return arm + "/" + std::to_string(seed); }
};

/// The runs of a study, or of one of its stages: arms times seeds. It is made at once, and does not change.
struct Plan {
  std::string file{};    ///< the study file
  std::string root{};    ///< folder of the whole study
  std::string folder{};  ///< of this stage
  std::string stage{};
  std::string waits_for{};  ///< stage whose results decide the configs of these runs; empty: they are known
  StudyConfig study{};
  std::vector<Arm> arms{};  ///< the baseline first
  std::vector<int64_t> seeds{};
  bool compares = true;                   ///< its arms are compared with the baseline; false of a search and of a split
  HeldOutPart part = HeldOutPart::whole;  ///< of the held-out text, by which its runs are compared
  StudyMetric metric{};                   ///< that decides; without a name where the runs go on and are not measured
  std::vector<StudyMetric> secondary{};
  int64_t documents = 0, development = 0;  ///< of the held-out text, and those for tuning; 0: not known
  std::vector<PlannedRun> runs{};          ///< by seed, then arm, so that pairs end together
  /// All metrics, the one that decides first.
  std::vector<StudyMetric> metrics() const;
};

/// The metric that decides as a reader knows it: a loss as the study file spells it.
std::string metric_name(const Plan& plan);

/// The file of a config or a task that a study names: relative to the study file or to the working directory, else the
/// one of that name that ships with the program, `bert/tiny`; as it is named where there is none.
std::string file_of_study(const std::string& named, const std::string& study_file);

/// A study file, with the defaults that depend on other keys. Throws ConfigError.
StudyConfig read_study(const std::string& file);

/// A file name for the name of an arm, a study or a task; of names that need other characters, with a part of their
/// hash.
std::string folder_name(const std::string& arm);

/// The folder of a study: the one given, else studies/NAME.
std::string study_folder(const StudyConfig& study, const std::string& folder);

/// The plan with the runs of its arms and seeds, every one of them validated, with its metrics and how many documents
/// these are of. The rest is taken as it is. Throws ConfigError.
/// length   of held-out sequences whose config leaves it open [tokens]; 0: as many as every arm can read
Plan plan_of(Plan plan, int64_t length = 0);

/// The plan of the next stage of a study's training, `stage` in study.then: each run starts from the network of that of
/// `before` with its arm and seed. Throws ConfigError, as plan_of, and for a budget that is missing or has not one
/// step.
Plan later_plan(const Plan& before, size_t stage);

/// Every arm with every value of one more key. `list` is the name of the list in messages.
std::vector<Arm> swept(const std::vector<Arm>& arms, const std::string& key, const ConfigNode& values,
                       const std::string& list);

/// XXH3 of what makes the numbers of a run, without what only makes it faster or names its place.
std::string fingerprint_of(RunConfig config);

/// The fingerprint of a run that goes on from the last step of another, by its own and that one's.
std::string fingerprint_after(const std::string& own, const std::string& source);

/// Calls `f(path, value)` for every leaf of a key of a study, which may be a map of keys.
template <class F>
void each_leaf(const std::string& path, const ConfigNode& node, const F& f) {
  if (node.type != ConfigNode::Type::map) return f(path, node);
  for (const auto& [key, value] : node.items) each_leaf(path + "." + key, value, f);
}

/// A part of a budget, in each of its currencies. Throws ConfigError where a part of one limit is nothing and others
/// are left.
BudgetConfig scaled(BudgetConfig budget, double factor);

/// The count of the FLOPs of a part of a run, which is that of the part before it. Throws ConfigError where it names
/// another; `where`: its key.
FlopsCount count_of_part(const BudgetConfig& part, const BudgetConfig& before, const std::string& where);

/// Throws ConfigError where a run's budget has not one step: `what` names the budget that it is a part of.
void check_budget(const RunConfig& config, const std::string& what);

/// Seeds as a study names them: a number of them, or a list.
std::vector<int64_t> seeds_of(const std::vector<int64_t>& named);

/// Arms of a study: those it names, each with what it takes from another, times every combination of the sweep.
/// Throws ConfigError.
std::vector<Arm> arms_of(const StudyConfig& study);

/// A budget in words: `20,000,000 tokens`.
std::string budget_words(const BudgetConfig& budget);

// How the arms of a plan are scored: by which metrics, on which text, and that this is the same for all of them.

/// The metrics of a study, the one that decides first. Throws ConfigError for one that is named twice, for a margin in
/// the wrong unit, and for a suite that networks with new heads would answer.
std::vector<StudyMetric> metrics_of(const StudyConfig& study, const std::string& file);

/// Throws DataError for a mixture of texts that the runs of an arm would refuse; one of texts that are not prepared yet
/// is left to them.
void check_mixtures(const Plan& plan, const std::vector<RunConfig>& configs);

/// Counts the held-out documents. Throws ConfigError for arms that are not scored alike, whose comparison the report
/// would refuse, and for a plan of a search whose part has too few documents or whose metric has no parts.
void compare_scoring(Plan& plan, const std::vector<RunConfig>& configs);

/// Documents that a search needs to choose on.
inline constexpr int64_t fewest_for_choosing = 50;

}  // namespace cloze
