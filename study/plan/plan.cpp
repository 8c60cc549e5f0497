#include "study/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/config/named_config.h"
#include "core/contains.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

constexpr size_t max_arms = 10'000;
/// Tokenizers cut a text into different numbers of sequences: bytes are compared over all of them.
constexpr int64_t all_sequences = 1'000'000'000;

/// The keys of an arm, those of the arm that it starts from first.
KeyValues keys_of(const StudyConfig& study, const std::string& name, std::vector<std::string> chain) {
  const auto found = std::find_if(study.arms.items.begin(), study.arms.items.end(),
                                  [&](const auto& arm) { return arm.first == name; });
  const auto& [arm, node] = *found;
  require<ConfigError>(!contains(chain, name), node.where, ": arm '", name,
                       "' starts from itself; remove one of the `from:` lines");
  chain.push_back(name);
  require<ConfigError>(node.type == ConfigNode::Type::map || node.type == ConfigNode::Type::absent, node.where,
                       ": arm '", name, "' must be a map of keys, {} for the base as it is");
  KeyValues keys;
  if (const auto* from = node.find("from")) {
    std::vector<std::string> names;
    for (const auto& [other, ignored] : study.arms.items) names.push_back(other);
    require<ConfigError>(contains(names, from->text), from->where, ": arm '", name, "' starts from '", from->text,
                         "', which is no arm", did_you_mean(from->text, names));
    keys = keys_of(study, from->text, chain);
  }
  for (const auto& [key, value] : node.items) {
    require<ConfigError>(key != "<<", value.key_where, ": arm '", name,
                         "' merges keys by '<<', which is not read; start from another arm with `from: ARM`");
    if (key != "from") keys.emplace_back(key, value);
  }
  return keys;
}

/// Tokens of a held-out sequence that every arm can read.
int64_t shared_length(const std::vector<RunConfig>& configs) {
  int64_t length = configs.front().data.max_seq_length;
  for (const auto& config : configs) length = std::min(length, config.data.max_seq_length);
  return length;
}

/// Throws ConfigError for a key of a run that the study itself sets, so that its value would be dropped.
void refuse_keys_of_study(const StudyConfig& study, const KeyValues& keys) {
  struct Owned {
    std::string key, why;
  };
  std::vector<Owned> all{
      {"train.seed", "name the seeds of all runs under `seeds:`"},
      {"evaluation.objectives", "name what decides under `metric: {objective: ...}`, and others under `secondary:`"},
      {"evaluation.sequences", "arms are scored on the same sequences, `metric: {sequences: ...}`"},
      {"evaluation.seed", "arms are scored with the same masks, `metric: {seed: ...}`"},
      {"evaluation.points", "curves of all arms have the same number of points, `points:`"},
      {"evaluation.every", "curves have points at equal shares of the budget, `points:`"},
      {"evaluation.patience", "a run that ends early has another budget than the others"}};
  if (study.budget.limited())
    all.push_back({"train.budget", "give every run its budget under `budget:`, or leave that out and set each"});
  for (const auto& [key, node] : keys)
    each_leaf(key, node, [&](const std::string& path, const ConfigNode& value) {
      for (const auto& [owned, why] : all)
        require<ConfigError>(path != owned && !path.starts_with(owned + "."), value.where, ": '", path,
                             "' would be replaced by what the study says; ", why);
    });
}

bool has_key(const KeyValues& keys, const std::string& wanted) {
  bool has = false;
  for (const auto& [key, node] : keys)
    each_leaf(key, node, [&](const std::string& path, const ConfigNode&) { has = has || path == wanted; });
  return has;
}

/// The base config with the keys that every arm has.
ConfigTree common_tree(const StudyConfig& study, const std::string& file) {
  auto tree = ConfigTree::load(file_of_study(study.base, file));
  refuse_keys_of_study(study, study.set.items);
  for (const auto& [key, value] : study.set.items) tree.set(key, value);
  return tree;
}

/// The config of an arm before its seed. `tree`: what all arms have in common.
RunConfig arm_config(const StudyConfig& study, ConfigTree tree, const std::vector<StudyMetric>& metrics,
                     const Arm& arm) {
  for (const auto* keys : {&arm.keys, &arm.tuned}) {
    refuse_keys_of_study(study, *keys);
    for (const auto& [key, value] : *keys) tree.set(key, value);
  }
  auto config = decode<RunConfig>(tree);
  if (study.budget.limited()) config.train.budget = study.budget;
  const double probed = study.probe_head.share;
  if (probed > 0) config.train.budget = scaled(config.train.budget, 1 - probed);
  config.evaluation.objectives.clear();
  if (probed == 0 && study.then.empty())  // a network that is probed lacks the head; of stages the last is measured
    for (const auto& metric : metrics) ask(config, metric);
  const bool by_bytes = std::ranges::any_of(metrics, [](const StudyMetric& metric) {
    const auto* loss = std::get_if<LossMetric>(&metric);
    return loss && loss->unit == LossUnit::bits_per_byte;
  });
  config.evaluation.sequences = by_bytes ? all_sequences : study.metric.sequences;
  config.evaluation.seed = study.metric.seed;
  config.evaluation.points = study.points;
  config.evaluation.patience = 0;  // a run that ends early has another budget
  constexpr auto keep = "checkpoint.keep";
  if (!has_key(study.set.items, keep) && !has_key(arm.keys, keep)) config.checkpoint.keep = 1;
  return config;
}

/// Validates the configs of arms. Throws ConfigError with all mistakes, of which those that several arms have are told
/// once; `advice` follows that of an arm.
template <class Advice>
void validate_arms(const std::vector<Arm>& arms, const std::vector<RunConfig>& configs, const std::string& where,
                   const Advice& advice) {
  std::vector<std::pair<std::string, std::vector<std::string>>> mistakes;  // each with its arms
  for (size_t i = 0; i < configs.size(); ++i) try {
      validate(configs[i]);
    } catch (const ConfigError& e) {
      const auto mistake = concat(where, ": ", e.what(), advice(configs[i]));
      auto known = std::ranges::find(mistakes, mistake, [](const auto& one) { return one.first; });
      if (known == mistakes.end()) known = mistakes.insert(known, {mistake, {}});
      known->second.push_back("'" + arms[i].name + "'");
    }
  std::string text;
  for (auto& [mistake, names] : mistakes) {
    constexpr size_t shown = 4;
    const auto count = names.size();
    if (count > shown) names.resize(shown - 1);
    if (count > shown) names.push_back(concat(count - names.size(), " more"));
    text += concat(text.empty() ? "" : "\n", count == 1 ? "arm " : "arms ", listed(names), mistake);
  }
  if (!text.empty()) throw ConfigError(text);
}

/// Which secondary metrics are losses that an arm has no head for, as the end of a sentence; empty: none.
std::string secondary_without_head(const RunConfig& config, const std::vector<StudyMetric>& metrics) {
  std::vector<std::string> names;
  for (size_t i = 0; i + 1 < metrics.size(); ++i) {
    const auto* loss = std::get_if<LossMetric>(&metrics[i + 1]);
    if (!loss) continue;
    const auto head = head_of(parse_objective(loss->name, "secondary"));
    const auto has_head = [&](const auto& own) { return head_of(own) == head; };
    if (std::ranges::none_of(config.objectives, has_head)) names.push_back(concat("`secondary.", i, "`"));
  }
  return names.empty() ? "" : concat(" (", listed(names), " of the study)");
}

/// What gives an arm a head for the metric that it lacks; empty where it lacks none, or none helps.
std::string probe_head_for(RunConfig config, const StudyMetric& by) {
  const auto* loss = std::get_if<LossMetric>(&by);
  if (!loss) return "";
  const auto metric = parse_objective(loss->name, "metric.objective");
  const auto has_head = [&](const auto& own) { return head_of(own) == head_of(metric); };
  if (std::any_of(config.objectives.begin(), config.objectives.end(), has_head)) return "";
  config.objectives = row_objectives(metric);
  try {
    validate(config);
  } catch (const ConfigError&) {
    return "";
  }
  return "; `probe_head: {share: 0.05}` in the study gives every arm a new one";
}

/// Refuses arms that ask for the same runs.
void check_distinct(const std::vector<Arm>& arms, const std::vector<RunConfig>& configs) {
  std::map<std::string, std::string> seen;
  for (size_t i = 0; i < arms.size(); ++i) {
    auto config = configs[i];
    config.train.seed = 0;  // `seeds` sets it
    const auto [first, is_new] = seen.emplace(to_yaml(config), arms[i].name);
    require<ConfigError>(is_new, arms[i].keys.empty() ? std::string("arms") : arms[i].keys.front().second.key_where,
                         ": arms '", first->second, "' and '", arms[i].name,
                         "' have equal configs, so that they cannot differ; change one of them, or remove it");
  }
}

/// Gives the seed to the streams that vary; the others keep that of the first run.
void seed_streams(TrainConfig& train, int64_t seed, int64_t first, const std::vector<RandomStream>& vary) {
  train.seed = vary.empty() ? seed : first;
  for (const auto stream : vary) train.seeds.of(stream) = seed;
}

/// Multiplies every limit of a budget.
struct Scaler {
  double factor;
  std::string lost{};  ///< a limit of which not one is left
  template <class T>
  void operator()(const char* name, T& limit, const char*, const Rule& = {}) {
    if constexpr (std::is_arithmetic_v<T>) scale(name, limit);
  }
  template <class T>
  void scale(const char* name, T& limit) {
    const T unscaled = limit;
    limit = static_cast<T>(static_cast<double>(limit) * factor);
    if (unscaled > 0 && limit == 0) lost = concat(name, " is ", unscaled);
  }
};

/// The text and tokenizer of prepared tokens; empty where there are none yet.
std::string fingerprint_of_tokens(const std::string& folder) {
  const auto manifest = folder + "/manifest.json";
  if (!fs::exists(manifest)) return "";
  const auto fields = parse_json(read_text(manifest, 64 << 20));
  const auto fingerprint = fields.is_object() ? fields.value("fingerprint", nlohmann::json()) : nlohmann::json();
  require<DataError>(fingerprint.is_string(), manifest, ": is damaged; prepare the text again with --force");
  return fingerprint.get<std::string>();
}

/// Throws ConfigError where a number of seeds is a list of one.
void check_seeds(const ConfigTree& tree) {
  for (const std::string key : {"seeds", "tuning.seeds"}) {
    const auto* seeds = tree.find(key);
    if (!seeds || seeds->type != ConfigNode::Type::list || seeds->items.size() != 1) continue;
    fail<ConfigError>(seeds->where, ": '", key, "' is a list of one seed; write a number for how many, such as `", key,
                      ": 1`, or name two seeds or more");
  }
}

/// Throws ConfigError for parts of a study that do not go together. `tree`: what its file says itself.
void check_parts(const StudyConfig& study, const ConfigTree& tree, const std::string& file) {
  const bool searches = !study.space.items.empty();
  const std::set<RandomStream> streams(study.vary.begin(), study.vary.end());
  require<ConfigError>(streams.size() == study.vary.size(), file, ": 'vary' names a stream twice; keep one of them");
  require<ConfigError>(!tree.find("tuning") || !study.tune.items.empty(), file,
                       ": 'tuning' says how, and no key is tuned; name keys and their values under `tune:`");
  require<ConfigError>(searches || (study.trials == 0 && study.halving == 0), file,
                       ": 'trials' and 'halving' belong to a search; name its keys under `space:`");
  require<ConfigError>(
      study.then.empty() || (!searches && study.tune.items.empty() && !study.split && study.probe_head.share == 0),
      file,
      ": 'then' does not go with 'tune', 'space', 'split' and 'probe_head', which know one stage of "
      "training; leave them out");
  require<ConfigError>(study.metric.task.empty() || study.tune.items.empty(), file,
                       ": 'tune' chooses by a loss or a suite, and 'metric' is the figure of a task; decide by another "
                       "metric, or name the values in arms");
  require<ConfigError>(study.metric.task.empty() || !study.split, file,
                       ": 'split' scores runs that are not fine-tuned, and 'metric' is the figure of a task; decide by "
                       "another metric, or leave 'split' out");
  require<ConfigError>(study.tasks.files.empty() || (!searches && study.probe_head.share == 0), file,
                       ": 'tasks' do not go with 'space' and 'probe_head'; leave one of them out");
  require<ConfigError>(!study.tasks.files.empty() || !tree.find("tasks"), file,
                       ": 'tasks' names no files, so that nothing is fine-tuned; name task files by `tasks: {files: "
                       "[...]}`");
  require<ConfigError>(!tree.find("tasks.tuning_seeds") || !study.tasks.tune.items.empty(), file,
                       ": 'tasks.tuning_seeds' says how, and no key of the fine-tunings is tuned; name keys and their "
                       "values under `tasks: {tune: ...}`");
  require<ConfigError>(!study.split || seeds_of(study.seeds).size() > 1, file,
                       ": 'split' needs the spread over seeds, and there is one; give more under `seeds:`");
}

/// The keys of a later stage, those of the arm last. Throws ConfigError for keys that the study itself sets, and for an
/// arm that there is not.
std::vector<KeyValues> keys_of_stage(const Plan& before, const LaterStageConfig& stage, const std::string& where) {
  std::vector<std::string> names;
  for (const auto& arm : before.arms) names.push_back(arm.name);
  for (const auto& [name, node] : stage.arms.items) {
    require<ConfigError>(contains(names, name), node.key_where, ": ", where, ".arms names '", name,
                         "', which is no arm", did_you_mean(name, names));
    require<ConfigError>(node.type == ConfigNode::Type::map, node.where, ": ", where, ".arms: '", name,
                         "' must be a map of keys");
  }
  std::vector<KeyValues> keys;
  for (const auto& name : names) {
    auto& own = keys.emplace_back(stage.set.items);
    for (const auto& [arm, node] : stage.arms.items)
      if (arm == name) own.insert(own.end(), node.items.begin(), node.items.end());
    refuse_keys_of_study(before.study, own);
    for (const auto& [key, node] : own)
      each_leaf(key, node, [&](const std::string& path, const ConfigNode& value) {
        require<ConfigError>(!path.starts_with("init.") && !path.starts_with("train.budget"), value.where, ": '", path,
                             "' would be replaced by what the study says; a stage starts from the networks of the one "
                             "before, and has a budget of its own, `budget:`");
      });
  }
  return keys;
}

/// The config of an arm in a later stage, from that in the stage before and the keys of this one.
RunConfig config_of_stage(const Plan& before, size_t arm, const KeyValues& keys, const LaterStageConfig& stage,
                          const std::string& where) {
  auto tree = ConfigTree::parse(to_yaml(before.runs[arm].config), concat("the stage before ", where));
  for (const auto& [key, value] : keys) tree.set(key, value);
  auto config = decode<RunConfig>(tree);
  config.init = {};
  const auto count = count_of_part(stage.budget, config.train.budget, where + ".budget");
  config.train.budget = stage.budget;
  config.train.budget.count = count;
  check_budget(config, concat(before.file, ": ", where, ".budget, ", budget_words(stage.budget), ", for arm '",
                              before.arms[arm].name, "'"));
  config.evaluation.objectives.clear();
  return config;
}

/// Gives a plan the metrics that its runs are measured by.
void measure_by(Plan& plan, std::vector<StudyMetric> metrics, const std::vector<RunConfig>& configs) {
  plan.metric = metrics.front();
  plan.secondary.assign(metrics.begin() + 1, metrics.end());
  compare_scoring(plan, configs);
}

}  // namespace

std::string folder_name(const std::string& arm) {
  std::string name;
  bool all_plain = true;
  for (size_t i = 0; i < arm.size(); ++i) {
    const char c = arm[i];
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '=' || c == '-' || c == '_';
    const bool separates = arm.compare(i, 2, ", ") == 0 || (i > 0 && arm.compare(i - 1, 2, ", ") == 0);  // of a sweep
    all_plain = all_plain && (plain || separates);
    if (plain || name.empty() || name.back() != '_') name += plain ? c : '_';
  }
  const bool only_dots = name.find_first_not_of('.') == std::string::npos;
  return all_plain && !only_dots ? name : name + "-" + hash_hex(arm).substr(0, 6);
}

BudgetConfig scaled(BudgetConfig budget, double factor) {
  Scaler scaler{.factor = factor};
  describe(scaler, budget);
  // A budget without any limit is answered by those who know what it is a part of.
  require<ConfigError>(scaler.lost.empty() || !budget.limited(), "budget.", scaler.lost, ", and a share of ",
                       significant(factor, 3),
                       " of it is less than one, which would not limit a run; raise it, or remove it");
  return budget;
}

FlopsCount count_of_part(const BudgetConfig& part, const BudgetConfig& before, const std::string& where) {
  require<ConfigError>(part.count == FlopsCount::computed || part.count == before.count, where, ".count is ",
                       part.count, ", and that of the budget before it is ", before.count,
                       "; FLOPs of two counts have no sum: give both the same");
  return before.count;
}

void check_budget(const RunConfig& config, const std::string& what) {
  const auto& budget = config.train.budget;
  const int64_t step_tokens = config.train.batch_size * config.train.accumulation * config.data.max_seq_length;
  require<ConfigError>(budget.limited() && (budget.tokens == 0 || budget.tokens >= step_tokens), what,
                       " is not one step of ", step_tokens, " tokens for each run; raise it, or make fewer runs");
}

std::string fingerprint_of(RunConfig config) {
  auto tokens = fingerprint_of_tokens(config.data.tokens);
  for (auto& part : config.data.mixture) {
    tokens += fingerprint_of_tokens(part.tokens);
    part.tokens.clear();
  }
  config.train.threads = 0;
  config.train.workers = 1;
  config.train.on_divergence = {};
  config.checkpoint = {};
  config.data.tokens.clear();
  return hash_hex(to_yaml(config) + tokens);
}

std::string fingerprint_after(const std::string& own, const std::string& source) {
  return hash_hex(own + source + "from its last step");
}

std::vector<int64_t> seeds_of(const std::vector<int64_t>& named) {
  if (named.size() > 1) {
    const std::set<int64_t> distinct(named.begin(), named.end());
    require<ConfigError>(distinct.size() == named.size(), "'seeds' names a seed twice; each gives one run");
    return named;
  }
  require<ConfigError>(named.front() >= 1, "'seeds' is ", named.front(), ", must be at least 1, or a list of seeds");
  require<ConfigError>(named.front() <= 10'000, "'seeds' is ", named.front(), "; at most 10000 are allowed");
  std::vector<int64_t> seeds;
  for (int64_t seed = 1; seed <= named.front(); ++seed) seeds.push_back(seed);
  return seeds;
}

std::vector<Arm> swept(const std::vector<Arm>& arms, const std::string& key, const ConfigNode& values,
                       const std::string& list) {
  require<ConfigError>(values.type == ConfigNode::Type::list && !values.items.empty(), values.where, ": ", list, " '",
                       key, "' must be a list of values");
  require<ConfigError>(arms.size() * values.items.size() <= max_arms, values.where, ": a ", list, " of ",
                       arms.size() * values.items.size(), " arms is more than ", max_arms, "; ", list, " fewer values");
  const auto short_key = key.substr(key.rfind('.') + 1);
  std::vector<Arm> all;
  for (const auto& arm : arms)
    for (const auto& [ignored, value] : values.items) {
      auto one = arm;
      if (!one.unswept) one.unswept = one.name;
      one.name += (one.name.empty() ? "" : ", ") + short_key + "=" + one_line(value);
      auto placed = value;
      placed.key_where = values.key_where;
      one.keys.emplace_back(key, placed);
      all.push_back(std::move(one));
    }
  return all;
}

std::vector<Arm> arms_of(const StudyConfig& study) {
  std::vector<Arm> arms;
  for (const auto& [name, node] : study.arms.items) arms.push_back({name, keys_of(study, name, {})});
  if (arms.empty()) arms.push_back({"", {}});
  for (const auto& [key, values] : study.sweep.items) arms = swept(arms, key, values, "sweep");
  require<ConfigError>(arms.size() > 1, "a study needs at least two arms; name them under `arms:` or `sweep:`");
  const auto& wanted = study.baseline;
  if (wanted.empty()) return arms;
  std::vector<std::string> names;
  for (const auto& arm : arms) names.push_back(arm.name);
  const auto baseline = std::find_if(arms.begin(), arms.end(), [&](const Arm& arm) {
    return arm.name == wanted || (arm.name.starts_with(wanted) && arm.name.substr(wanted.size(), 1) == ",");
  });
  const auto near = did_you_mean(wanted, names);
  require<ConfigError>(baseline != arms.end(), "baseline '", wanted, "' is no arm", near,
                       !near.empty() || names.size() <= 12 ? "" : "; `cloze study plan` lists them");
  std::rotate(arms.begin(), baseline, baseline + 1);
  return arms;
}

std::string file_of_study(const std::string& named, const std::string& study_file) {
  const auto from_study = (fs::path(study_file).parent_path() / named).lexically_normal().string();
  if (fs::is_regular_file(from_study)) return from_study;
  const auto known = fs::is_regular_file(named) ? "" : config_of_name(named);
  return known.empty() ? named : known;
}

StudyConfig read_study(const std::string& file) {
  const auto tree = ConfigTree::load_alone(file);
  check_seeds(tree);
  auto study = decode<StudyConfig>(tree);
  if (study.study.empty()) study.study = fs::path(file).stem().string();
  if (study.metric.objective.empty() && study.metric.suite.empty() && study.metric.task.empty())
    study.metric.objective = "mlm";
  require<ConfigError>(!study.base.empty(), file, ": `base:` is missing; name the config that the arms start from");
  if (!study.space.items.empty() && !tree.find("seeds")) study.seeds = {1};
  check_parts(study, tree, file);
  return study;
}

std::vector<StudyMetric> Plan::metrics() const {
  std::vector<StudyMetric> all{metric};
  all.insert(all.end(), secondary.begin(), secondary.end());
  return all;
}

std::string metric_name(const Plan& plan) {
  const bool is_loss = std::holds_alternative<LossMetric>(plan.metric);
  return is_loss ? plan.study.metric.objective : traits_of(plan.metric).name;
}

std::string study_folder(const StudyConfig& study, const std::string& folder) {
  return folder.empty() ? "studies/" + folder_name(study.study) : folder;
}

Plan later_plan(const Plan& before, size_t stage) {
  const auto& study = before.study;
  const auto& of = study.then.at(stage);
  const auto where = concat("then.", stage);
  require<ConfigError>(of.budget.limited(), before.file, ": ", where,
                       " has no budget; say what every run gets in this stage, such as `budget: {tokens: 2M}`");
  const auto keys = keys_of_stage(before, of, where);
  const bool is_last = stage + 1 == study.then.size();
  const auto metrics = is_last ? metrics_of(study, before.file) : std::vector<StudyMetric>{};
  std::vector<RunConfig> configs;
  for (size_t i = 0; i < before.arms.size(); ++i) {
    auto& config = configs.emplace_back(config_of_stage(before, i, keys[i], of, where));
    for (const auto& metric : metrics) ask(config, metric);
  }
  constexpr auto length_key = "evaluation.max_seq_length";
  const bool all_have_length = common_tree(study, before.file).find(length_key) != nullptr;
  const auto length = shared_length(configs);
  for (size_t i = 0; i < configs.size(); ++i)
    if (!all_have_length && !has_key(before.arms[i].keys, length_key) && !has_key(keys[i], length_key))
      configs[i].evaluation.max_seq_length = length;
  validate_arms(before.arms, configs, " in " + where, [](const RunConfig&) { return ""; });
  Plan plan = before;
  plan.folder = concat(before.root, "/stage-", stage + 2);
  plan.stage = concat("stage ", stage + 2);
  check_mixtures(plan, configs);
  if (is_last) measure_by(plan, metrics, configs);
  for (size_t r = 0; r < plan.runs.size(); ++r) {
    auto& run = plan.runs[r];
    const auto train = run.config.train;
    run.config = configs[r % configs.size()];
    run.config.train.seed = train.seed;
    run.config.train.seeds = train.seeds;
    run.kind = RunKind::stage;
    run.inputs.push_back(run.folder);
    run.folder = plan.folder + run.folder.substr(before.folder.size());
    run.fingerprint = fingerprint_after(fingerprint_of(run.config), run.fingerprint);
    run.config.init.from = run.source();
  }
  return plan;
}

Plan plan_of(Plan plan, int64_t length) {
  const auto& study = plan.study;
  const auto metrics = metrics_of(study, plan.file);
  const auto tree = common_tree(study, plan.file);
  std::vector<RunConfig> configs;
  for (const auto& arm : plan.arms) configs.push_back(arm_config(study, tree, metrics, arm));
  check_distinct(plan.arms, configs);
  if (length == 0) length = shared_length(configs);
  for (auto& config : configs)
    if (config.evaluation.max_seq_length == 0) config.evaluation.max_seq_length = length;
  validate_arms(plan.arms, configs, "", [&](const RunConfig& config) {
    const bool has_advice = study.probe_head.share == 0 && metrics.size() == 1;
    return (has_advice ? probe_head_for(config, metrics.front()) : "") + secondary_without_head(config, metrics);
  });
  check_mixtures(plan, configs);
  plan.metric = LossMetric{.name = ""};
  if (study.then.empty()) measure_by(plan, metrics, configs);  // of stages the last is measured
  for (const int64_t seed : plan.seeds)
    for (size_t i = 0; i < configs.size(); ++i) {
      PlannedRun run{.arm = plan.arms[i].name, .seed = seed, .config = configs[i]};
      run.folder = concat(plan.folder, "/runs/", folder_name(run.arm), "/seed-", seed);
      seed_streams(run.config.train, seed, plan.seeds.front(), study.vary);
      run.fingerprint = fingerprint_of(run.config);
      plan.runs.push_back(std::move(run));
    }
  return plan;
}

std::vector<std::string> PlannedRun::counted_inputs() const {
  return kind == RunKind::stage || kind == RunKind::probe ? inputs : std::vector<std::string>{};
}

std::string budget_words(const BudgetConfig& budget) {
  const auto counted_limit = [](int64_t n, const char* what) { return counted(static_cast<uint64_t>(n), what); };
  const auto number = [](double n, const char* what) { return concat(shortest(n), " ", what, n == 1 ? "" : "s"); };
  std::vector<std::string> limits;
  if (budget.steps > 0) limits.push_back(counted_limit(budget.steps, "step"));
  if (budget.tokens > 0) limits.push_back(counted_limit(budget.tokens, "token"));
  if (budget.predicted_tokens > 0) limits.push_back(counted_limit(budget.predicted_tokens, "predicted token"));
  if (budget.words > 0) limits.push_back(counted_limit(budget.words, "word"));
  if (budget.epochs > 0) limits.push_back(number(budget.epochs, "epoch"));
  if (budget.flops > 0) limits.push_back(with_prefix(budget.flops) + "FLOPs");
  if (budget.minutes > 0) limits.push_back(number(budget.minutes, "minute"));
  std::string text;
  for (const auto& limit : limits) text += (text.empty() ? "" : " or ") + limit;
  return text + (budget.count == FlopsCount::published ? " (FLOPs as published)" : "");
}

}  // namespace cloze
