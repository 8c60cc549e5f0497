#pragma once
// What a study is going to do: its arms, and one run for each arm and seed, every mistake reported before the first of
// them.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/config/train_config.h"
#include "study/statistics/metric.h"

namespace cloze {

/// An arm with everything that sets it apart from the base.
struct Arm {
  std::string name;                                         ///< of a sweep with its values: `wide, hidden_size=256`
  std::vector<std::pair<std::string, ConfigNode>> keys;     ///< dotted paths, in the order in which they are laid over
  std::vector<std::pair<std::string, ConfigNode>> tuned{};  ///< what a search found, laid over these
  std::optional<std::string> unswept{};                     ///< of a sweep: its name without the values
};

/// What `cloze finetune` is asked for.
struct Finetuning {
  std::string task{};                                       ///< its name; empty: the run is no fine-tuning
  std::string file{};                                       ///< of the task
  std::string arm{};                                        ///< of the run that is fine-tuned
  int64_t seed = 0;                                         ///< of the fine-tuning
  std::vector<std::string> options{};                       ///< further arguments: `--like`, `turc-2019`
  std::vector<std::pair<std::string, ConfigNode>> tuned{};  ///< values of a search that are among them
  /// Folders of the runs of the study whose networks it goes on from, the first first; empty: no study planned them.
  std::vector<std::string> networks{};
};

/// One run of a study.
struct PlannedRun {
  std::string arm;
  int64_t seed = 0;
  std::string folder{};  ///< of the run, within that of the study: `runs/wide/seed-1`
  RunConfig config{};
  std::string fingerprint{};  ///< of everything that makes its numbers: config, text, tokenizer
  std::string source{};       ///< folder of the run that must have ended before, from whose last step it goes on
  bool continues = false;     ///< goes on from the last checkpoint of `source`, with a larger budget
  RunConfig trained{};        ///< of a probe: config of `source`, on whose backbone it trains a head
  /// Folders of the runs whose networks it goes on from, the first first: what they used up counts as its own.
  std::vector<std::string> earlier{};
  Finetuning finetuning{};
  bool is_probe() const { return !source.empty() && !continues && config.init.probe; }
  bool is_finetuning() const { return !finetuning.task.empty(); }
  /// The config by which the network that is scored was trained.
  const RunConfig& network_config() const { return is_probe() ? trained : config; }
};

/// The arms and runs of a study, or of one of its stages.
struct Plan {
  std::string file{};    ///< the study file
  std::string folder{};  ///< of the study
  StudyConfig study{};
  std::vector<Arm> arms{};  ///< the baseline first
  std::vector<int64_t> seeds{};
  std::vector<PlannedRun> runs{};  ///< by seed, then arm, so that pairs end together
  std::string root{};  ///< folder of the whole study, of which this may be one stage (study/search/stages.h)
  std::string stage{};
  std::string waits_for{};  ///< stage whose results decide the configs of these runs; empty: they are known
  StudyMetric metric{};     ///< that decides
  std::vector<StudyMetric> secondary{};
  bool compares = true;                   ///< its arms are compared with the baseline; false of a search and of a split
  HeldOutPart part = HeldOutPart::whole;  ///< of the held-out text, by which its runs are compared
  int64_t documents = 0, development = 0;  ///< of the held-out text, and those for tuning; 0: not known
  /// All metrics, the one that decides first.
  std::vector<StudyMetric> metrics() const;
};

/// The plan of the runs that a study file compares (stages.h has what comes before them). `folder` empty: studies/NAME.
/// Throws ConfigError with the locations of all mistakes that one reading can find.
Plan make_plan(const std::string& file, const std::string& folder = "");

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

/// The plan of these arms and seeds, with every run validated. Throws ConfigError.
/// length   of held-out sequences whose config leaves it open [tokens]; 0: as many as every arm can read
Plan plan_of(const StudyConfig& study, const std::string& file, const std::string& folder, std::vector<Arm> arms,
             const std::vector<int64_t>& seeds, int64_t length = 0);

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

// How the arms of a plan are scored: by which metrics, on which text, and that this is the same for all of them.

/// Reads the metrics of a study. Throws ConfigError for one that is named twice, for a margin in the wrong unit, and
/// for a suite that networks with new heads would answer.
void set_metrics(Plan& plan);

/// Throws DataError for a mixture of texts that the runs of an arm would refuse; one of texts that are not prepared yet
/// is left to them.
void check_mixtures(const Plan& plan, const std::vector<RunConfig>& configs);

/// Counts the held-out documents. Throws ConfigError for arms that are not scored alike, whose comparison the report
/// would refuse.
void compare_scoring(Plan& plan, const std::vector<RunConfig>& configs);

/// Documents that a search needs to choose on.
inline constexpr int64_t fewest_for_choosing = 50;

/// Makes a plan choose on the part of the held-out text that is for development. Throws ConfigError where that has too
/// few documents, or the metric has no parts.
void develop(Plan& plan);

}  // namespace cloze
