#include "study/costs/costs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "core/config/config_types.h"
#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "run/config/load_config.h"
#include "study/execution/process.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t probe_steps = 20;
constexpr double probe_seconds = 1;
/// Raised when a probe measures something else.
constexpr int probe_rules = 4;

/// The config as it is probed: without what does not change its steps.
RunConfig probed(const RunConfig& config, int64_t threads) {
  auto short_run = with_mean_masking(config);
  short_run.train.budget = {.steps = 1000, .count = config.train.budget.count};
  short_run.train.seed = 1;
  short_run.train.seeds = {};
  auto& evaluation = short_run.evaluation;
  evaluation.every = evaluation.points = evaluation.patience = evaluation.suite_every = 0;
  if (!config.task.name.empty())
    evaluation = {.suites = config.evaluation.suites, .suite_items = config.evaluation.suite_items};
  short_run.init = {};
  // A name alone lets parts of the network stay as they are.
  const bool keeps_some = config.init.probe || config.freeze.layers >= 0 || !config.adaptation.kind.is_full();
  if (keeps_some) short_run.init = {.from = "drawn", .probe = config.init.probe};
  short_run.schedule = {};
  short_run.optimizer = {};
  config_detail::emplace_kind(short_run.optimizer.rule, kind_in(config.optimizer.rule));
  short_run.optimizer.groups = config.optimizer.groups;
  if (short_run.train.threads == 0) short_run.train.threads = threads;
  return short_run;
}

Probe probe_from(const json& line) {
  constexpr double warm_up = 3;  // steps before those that are timed
  const auto costs = line.value("suite_costs", json::object());
  AnswersCost suites;
  for (const auto& [name, cost] : costs.items()) {
    suites.flops += cost.at("flops").get<double>();
    suites.seconds += cost.at("seconds").get<double>();
  }
  // A plan holds whatever else this machine did while it was made.
  const double seconds = line.at("ms_undisturbed").get<double>() / 1000;
  const double of_process = line.value("process_seconds", 0.0) * line.at("share_of_cores").get<double>();
  const double of_steps = (line.value("steps", 0.0) + warm_up) * seconds;
  return {.parameters = line.at("parameters"),
          .checkpoint_bytes = line.at("checkpoint_bytes"),
          .memory_bytes = 1e6 * line.at("peak_rss_mb").get<double>(),
          .seconds = seconds,
          .start_seconds = std::max(0.0, of_process - of_steps),
          .tokens = line.at("tokens_per_step"),
          .predicted_tokens = line.at("predicted_tokens_per_step"),
          .flops = 1e9 * line.at("gflop_per_step").get<double>(),
          .sequences_per_epoch = line.at("sequences_per_epoch"),
          .words_per_epoch = line.at("words_per_epoch"),
          .held_out_tokens = line.at("held_out_tokens"),
          .scored_documents = line.value("scored_documents", std::set<uint64_t>{}),
          .suite_metrics = line.value("suite_figures", std::map<std::string, std::vector<std::string>>{}),
          .suites = suites};
}

/// Runs `cloze benchmark` on a config. Throws with the reason of the program: ConfigError where it refuses the config,
/// else Error.
json measure(const std::string& program, const std::string& name, const RunConfig& config) {
  const ScratchFolder scratch;
  const auto file = scratch.path() + "/config.yaml";
  write_atomic(file, to_yaml(config));
  const auto start = Clock::now();
  const auto output = run_process({program, "benchmark", file, "--steps", std::to_string(probe_steps), "--seconds",
                                   shortest(probe_seconds), "--steps-only", "--json"});
  require<ConfigError>(output.exit_code != ConfigError("").exit_code(), name, ": ", output.failure);
  require<Error>(output.failure.empty(), name, ": ", output.failure);
  auto line = parse_json(last_line(output.text));
  require<Error>(line.is_object(), name, ": its probe printed no result");
  line["process_seconds"] = seconds_since(start);
  return line;
}

/// Epochs in a step; 0 without prepared tokens.
double epochs_of_step(const RunConfig& config, const Probe& probe) {
  const double sequences = static_cast<double>(config.train.batch_size * config.train.accumulation);
  return probe.sequences_per_epoch > 0 ? sequences / probe.sequences_per_epoch : 0;
}

}  // namespace

RunConfig with_mean_masking(const RunConfig& config) {
  std::map<std::string, std::string> values;
  for (const auto& entry : entries(config))
    if (entry.leaf) values[entry.path] = entry.value;
  const auto& train = config.train;
  const auto step_tokens = static_cast<double>(train.batch_size * train.accumulation * config.data.max_seq_length);
  const double steps = train.budget.steps > 0 ? static_cast<double>(train.budget.steps)
                                              : static_cast<double>(train.budget.tokens) / step_tokens;
  const std::string initial_key = "initial_mlm_probability";
  std::vector<std::string> means;
  for (const auto& [path, value] : values) {
    if (!path.ends_with("." + initial_key) || std::stod(value) == 0) continue;
    const auto masking = path.substr(0, path.size() - initial_key.size());
    const double first = std::stod(value), last = std::stod(values.at(masking + "mlm_probability"));
    const double decay = std::stod(values.at(masking + "decay_steps"));
    const double fraction = decay > 0 && steps > 0 ? decay / steps : 1;  // of the run, in which the rate changes
    // Of a run that is shorter than the change, the mean of where it begins and where it ends.
    const double mean = fraction <= 1 ? last + (first - last) * fraction / 2 : first + (last - first) / fraction / 2;
    means.push_back(path + "=0");
    means.push_back(masking + "decay_steps=0");
    means.push_back(masking + "mlm_probability=" + shortest(mean));
  }
  return means.empty() ? config : decode<RunConfig>(ConfigTree::parse(to_yaml(config), "the plan", means));
}

void check_metrics(const Plan& plan, const std::vector<Probe>& probes) {
  for (const auto& metric : plan.metrics()) {
    const auto* suite = std::get_if<SuiteMetric>(&metric);
    for (size_t i = 0; suite && i < probes.size(); ++i) {
      const auto& known = probes[i].suite_metrics;
      const auto of_suite = known.find(suite->suite);
      std::vector<std::string> names;
      for (const auto& [name, scores] : known) names.push_back(name);
      require<ConfigError>(of_suite != known.end(), plan.file, ": compares by ", suite->suite,
                           ", and the suite of that path calls itself ", listed(names), "; name it so");
      const auto& scores = of_suite->second;
      require<ConfigError>(contains(scores, suite->name), plan.file, ": compares by ", suite->suite, " ", suite->name,
                           ", and the suite has no such figure", did_you_mean(suite->name, scores), "; it has ",
                           listed(scores));
    }
  }
}

DocumentCounts count_scored(const std::vector<Probe>& probes) {
  if (probes.empty()) return {};
  const auto& scored = probes.front().scored_documents;  // of all arms the same
  return {.all = std::ssize(scored), .development = std::ranges::count_if(scored, is_development)};
}

void check_scored(const Plan& plan, const std::vector<Probe>& probes) {
  const bool is_of_loss = std::holds_alternative<LossMetric>(plan.metric);
  if (plan.part != HeldOutPart::development || !is_of_loss) return;
  const auto scored = count_scored(probes);
  require<ConfigError>(scored.all == 0 || scored.development >= fewest_for_choosing, plan.file,
                       ": a search chooses on ", scored.development, " of the ", scored.all,
                       " held-out documents that are scored, which the verdict does not see; ", fewest_for_choosing,
                       " are needed: raise metric.sequences, prepare the text with a larger --held-out, or name the "
                       "values in arms");
}

void check_budgets(const Plan& plan, const std::vector<Probe>& probes) {
  for (size_t i = 0; i < probes.size(); ++i) {
    const auto& config = plan.runs[i].config;
    const auto& budget = config.train.budget;
    const auto& probe = probes[i];
    const double epochs = epochs_of_step(config, probe);
    const auto check = [&](const char* currency, double total, double of_step) {
      require<ConfigError>(total == 0 || of_step <= total, "arm '", plan.arms[i].name, "': one step uses up ",
                           with_prefix(of_step), currency, ", and the budget of a run is ", with_prefix(total),
                           currency, "; raise it, or lower train.batch_size of the arm");
    };
    check(" tokens", static_cast<double>(budget.tokens), probe.tokens);
    check(" predicted tokens", static_cast<double>(budget.predicted_tokens), probe.predicted_tokens);
    check(" words", static_cast<double>(budget.words), epochs * probe.words_per_epoch);
    check(" epochs", budget.epochs, epochs);
    check("FLOPs", budget.flops, probe.flops);
  }
}

RunCost cost_of_run(const RunConfig& config, const Probe& probe) {
  const auto& budget = config.train.budget;
  const double sequences = static_cast<double>(config.train.batch_size * config.train.accumulation);
  const double epochs = epochs_of_step(config, probe);
  const double words = epochs * probe.words_per_epoch;
  double steps = INFINITY;
  const auto limit = [&](double total, double per_step) {
    // Whole numbers of steps stay what they are where the quotient is rounded up.
    if (total > 0 && per_step > 0) steps = std::min(steps, std::ceil(total / per_step * (1 - 1e-12)));
  };
  limit(static_cast<double>(budget.steps), 1);
  limit(static_cast<double>(budget.tokens), probe.tokens);
  limit(static_cast<double>(budget.predicted_tokens), probe.predicted_tokens);
  limit(static_cast<double>(budget.words), words);
  limit(budget.epochs, epochs);
  limit(budget.flops, probe.flops);
  limit(60 * budget.minutes, probe.seconds);
  if (!std::isfinite(steps)) steps = 0;
  // A held-out sequence costs a forward pass, a third of a training step's.
  const auto& evaluation = config.evaluation;
  const double points = static_cast<double>(std::max<int64_t>(1, evaluation.points));
  double scored = static_cast<double>(evaluation.sequences);
  if (probe.held_out_tokens > 0 && evaluation.max_seq_length > 0)
    scored = std::min(scored, std::ceil(probe.held_out_tokens / static_cast<double>(evaluation.max_seq_length)));
  const double evaluation_steps = points * scored / sequences / 3;
  // Suites are answered at the end, and once where that is one of the steps between.
  const auto every = static_cast<double>(evaluation.suite_every);
  const double answers = every > 0 ? std::max(1.0, std::ceil(steps / every)) : 1;
  constexpr double bytes_of_logs = 1e6;
  return {.steps = steps,
          .tokens = steps * probe.tokens,
          .predicted_tokens = steps * probe.predicted_tokens,
          .words = steps * words,
          .epochs = steps * epochs,
          .flops = steps * probe.flops,
          .evaluation_flops = evaluation_steps * probe.flops,
          .evaluation_seconds = evaluation_steps * probe.seconds,
          .suite_flops = answers * probe.suites.flops,
          .suite_seconds = answers * probe.suites.seconds,
          .seconds = (steps + evaluation_steps) * probe.seconds + answers * probe.suites.seconds,
          .disk_bytes = static_cast<double>(config.checkpoint.keep + 1) * probe.checkpoint_bytes + bytes_of_logs};
}

Prober::Prober(const std::string& root, const std::string& program, int64_t threads, const Note& note)
    : path_(root + "/probes.json"), program_(program), threads_(threads), note_(note) {
  if (fs::exists(path_)) known_ = parse_json(read_text(path_));
  if (!known_.is_object()) known_ = json::object();
}

Probe Prober::probe(const RunConfig& config, const std::string& name) {
  const auto short_run = probed(config, threads_);
  auto measured = short_run;
  if (!measured.task.fingerprint.empty()) measured.data.tokens.clear();
  const auto key = hash_hex(concat(to_yaml(measured), CLOZE_VERSION, probe_rules));
  if (!known_.contains(key)) {
    note_(name);
    known_[key] = measure(program_, name, short_run);
    if (fs::exists(fs::path(path_).parent_path())) write_atomic(path_, json_text(known_, 1) + "\n");
  }
  try {
    return probe_from(known_[key]);
  } catch (const json::exception&) {
    fail<DataError>(path_, ": is damaged; remove it, and the arms are probed again");
  }
}

std::vector<Probe> probe_arms(const Plan& plan, Prober& prober) {
  std::vector<Probe> probes;
  for (size_t i = 0; i < plan.arms.size(); ++i)
    probes.push_back(prober.probe(plan.runs[i].config, concat("arm '", plan.arms[i].name, "'")));
  return probes;
}

}  // namespace cloze
