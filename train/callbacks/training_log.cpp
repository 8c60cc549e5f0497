#include "train/callbacks/training_log.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "core/text.h"
#include "data/prepare/prepare_options.h"
#include "data/store/read_mixture.h"
#include "evaluation/evaluate.h"
#include "optimizers/optimizer.h"
#include "run/config/load_config.h"
#include "train/callbacks/babylm_rules.h"
#include "train/records.h"
#include "train/training.h"
#include "train/warnings.h"

namespace cloze {

namespace {

/// The passes over the text that the budget allows, with the special tokens of a budget in tokens counted as text;
/// infinite where only its end will tell.
double expected_epochs(const Training& training) {
  const auto tokens = static_cast<double>(training.config.train.budget.tokens);
  const double planned = planned_epochs(training);
  return tokens > 0 ? std::min(planned, tokens / static_cast<double>(training.store.num_tokens())) : planned;
}

/// What is read of each text of a mixture, and how often.
void announce_mixture(const Training& training) {
  if (training.config.data.mixture.empty()) return;
  const double epochs = expected_epochs(training);
  for (const auto& part : training.store.parts()) {
    const auto& text = part.text;
    const auto often = std::isfinite(epochs)
                           ? concat("about ", significant(epochs * part.passes, 3), " times within the budget")
                           : concat(significant(part.passes, 3), " times an epoch");
    log_info("data", concat(text.folder(), ": ", in_percent(part.fraction), " of the tokens that are read, ",
                            thousands(text.num_documents()), " documents with ", thousands(text.num_tokens()),
                            " tokens, read ", often));
    const auto& held_out = training.held_out_store;
    const auto shared = text.fingerprint() == held_out.fingerprint() ? 0 : shared_documents(held_out, text);
    if (shared > 0)
      log_warning("data", concat(text.folder(), ": has ", shared, " of the ", held_out.num_documents(),
                                 " held-out documents of ", held_out.folder(),
                                 ", token for token, so that held-out losses are too low; prepare it with --dedup and "
                                 "the --valid of those documents, which takes them out of the training text"));
    const auto repeats = std::isfinite(epochs) ? repeats_warning(text.folder(), epochs * part.passes) : "";
    if (!repeats.empty()) log_warning("data", repeats);
  }
}

void announce_text(const Training& training) {
  const auto& store = training.store;
  const auto& data = training.config.data;
  const bool is_task = !training.config.task.name.empty();  // whose documents are rows, and what an epoch has
  const auto* what = is_task ? " rows" : " documents";
  const auto sequences = is_task ? "" : concat(", ", thousands(training.collator.size()), " sequences an epoch");
  log_info("data",
           concat(store.folder(), ": ", thousands(store.num_documents()), what, ", ", thousands(store.num_tokens()),
                  " tokens", sequences, "; held out: ", thousands(training.held_out_store.num_documents()), what,
                  data.mixture.empty() ? "" : " of " + data.tokens));
  announce_mixture(training);
}

/// Says that the published vocabularies of the model are of another kind than that of the tokens, unless that belongs
/// to a model.
void announce_other_vocabulary(const Training& training) {
  const auto model = kind_of(training.config.model);
  const auto& tokenizer = training.store.tokenizer();
  const auto published = published_kind(model);
  if (!published || tokenizer.belongs_to_model() || tokenizer.kind() == name_of(*published)) return;
  log_info("data", concat("the published vocabularies of ", model, " are ", *published, ", that of the tokens is ",
                          tokenizer.kind(), "; cloze prepare --for ", model, " trains the former"));
}

/// What is trained of the network, where that is not all of it.
void announce_trained(const Training& training) {
  const auto all = collect_params(*training.network), own = own_params(all);
  if (own.size() == all.size()) return;
  const auto bytes_of = [&](const std::vector<NamedParam>& params) {
    int64_t sum = 0;
    for (const auto& named : params)
      sum += 4 * named.param.value().numel() +
             moment_bytes(update_options(training.config.optimizer, named).rule, named.param);
    return bytes(static_cast<double>(sum));
  };
  const auto trained = training.stepper->trained_parameters();
  const double percent = 100 * static_cast<double>(trained) / static_cast<double>(training.stepper->parameters());
  log_info("model",
           concat(thousands(static_cast<uint64_t>(trained)), " of them are trained (", significant(percent, 3),
                  " %), with ", bytes_of(own), " of gradients and moments; those of all would take ", bytes_of(all),
                  "; checkpoints hold what is trained, and name ", training.progress.base.checkpoint, " for the rest"));
}

/// What the network learns from, and what of it.
void announce_teacher(const Training& training) {
  const auto* teacher = training.network->teacher();
  if (!teacher) return;
  int64_t parameters = 0;
  for (const auto& [name, param] : collect_params(*teacher)) parameters += param.value().numel();
  log_info("model",
           concat("its teacher is ", training.progress.teacher.checkpoint, ": ", kind_of(teacher->model_config()), ", ",
                  thousands(static_cast<uint64_t>(parameters)), " parameters, which are neither trained nor saved"));
}

void announce_model(const Training& training) {
  const auto& config = training.config;
  const auto& stepper = *training.stepper;
  const auto rows = backbone_of(config.model).vocab_size, tokens = training.store.tokenizer().size();
  const auto used =
      rows > tokens ? concat(", of which the tokenizer uses ", thousands(static_cast<uint64_t>(tokens))) : "";
  log_info("model", concat(kind_of(config.model), ", ", thousands(static_cast<uint64_t>(stepper.parameters())),
                           " parameters, vocabulary ", thousands(static_cast<uint64_t>(rows)), used));
  announce_trained(training);
  announce_teacher(training);
  std::string names;
  for (const auto& objective : training.network->objectives) names += (names.empty() ? "" : " + ") + objective->name();
  const int threads = at::get_num_threads();
  log_info("train", concat(names, ", ", rows_of_phase(config, 0), " a step, ", stepper.precision_description(), ", ",
                           threads, threads == 1 ? " thread" : " threads"));
  for (const auto& objective : config.objectives)
    log_info("train", concat(kind_of(objective), " predicts ", as_kind(objective).prediction()));
  for (size_t i = 0; i < config.train.phases.size(); ++i)
    log_info("train", concat("from ", shortest(100 * config.train.phases[i].from), " % of the budget on, ",
                             rows_of_phase(config, static_cast<int64_t>(i) + 1), " a step"));
  if (config.train.ema_decay > 0)
    log_info("train", concat("evaluation, checkpoints and exports have the average of the weights (train.ema_decay ",
                             shortest(config.train.ema_decay), ")"));
  for (const auto& line : deviations(config)) log_info("train", "differs from the preset: " + line);
}

/// The steps of a budget of steps, or of epochs of even steps; 0: it has neither.
int64_t planned_steps(const Training& training) {
  const auto& budget = training.config.train.budget;
  const auto& train = training.config.train;
  if (budget.steps > 0 || budget.epochs == 0 || !train.phases.empty()) return budget.steps;
  const double sequences = budget.epochs * static_cast<double>(training.collator.size());
  return static_cast<int64_t>(std::ceil(sequences / static_cast<double>(train.batch_size * train.accumulation)));
}

/// The lines before the first step: text, model, objectives and what they predict, deviations from the preset.
void announce(const Training& training) {
  announce_text(training);
  announce_other_vocabulary(training);
  announce_model(training);
  const auto unbalanced = pair_warning(training.config.objectives, training.collator);
  if (!unbalanced.empty()) log_warning("train", unbalanced);
  if (const auto few = few_masked_warning(training.config.objectives); !few.empty()) log_warning("train", few);
  const auto unfinished = long_decay_warning(training.config.objectives, planned_steps(training));
  if (!unfinished.empty()) log_warning("train", unfinished);
}

nlohmann::json losses_of(const LogLine& line) {
  auto losses = nlohmann::json::object();
  for (const auto& part : line.parts) {
    auto& entry = losses[part.name];
    entry = {{"loss", part.loss()}, {"count", part.count}};
    if (part.has_accuracy) entry["accuracy"] = part.accuracy();
    if (!part.binary) continue;
    entry["majority"] = majority_baseline(part.binary->positives, part.count).accuracy;
    if (part.binary->detects) entry["f1"] = f1_score(*part.binary);
  }
  return losses;
}

}  // namespace

std::string fixed_or_dash(double value, int digits) { return std::isnan(value) ? "-" : fixed(value, digits); }

void TrainingLog::begin(Training& training) {
  announce(training);
  cores_at_begin_ = core_time();
  begun_ = shown_ = Clock::now();
  tokens_at_line_ = training.progress.tokens;
  seconds_at_line_ = training.progress.seconds;
}

void TrainingLog::note_due(const Training& training, bool at_end) {
  if (!at_end) line_.add(training.last.result.parts, training.last.result.grad_norm);
}

void TrainingLog::after_step(Training& training) {
  warn_of_no_predictions(training);
  const auto& progress = training.progress;
  const bool is_due = progress.step % training.config.checkpoint.log_every == 0 || progress.step == 1;
  if (!is_due && seconds_since(shown_) <= 1 && is_within_budget(training)) return;
  const double window = progress.seconds - seconds_at_line_;
  const double speed = window > 0 ? static_cast<double>(progress.tokens - tokens_at_line_) / window : 0;
  warn_of_shared_cores();
  show_progress(training, speed, is_due);
  shown_ = Clock::now();
  if (!is_due) return;
  record(training, speed);
  look_for_divergence(training);
  warn_of_slow_process(training, window);
  line_ = {};
  tokens_at_line_ = progress.tokens;
  seconds_at_line_ = progress.seconds;
}

/// Warns, once a process, of a step in which no loss has predictions.
void TrainingLog::warn_of_no_predictions(const Training& training) {
  const auto& parts = training.last.result.parts;
  if (std::any_of(parts.begin(), parts.end(), [](const LossPart& part) { return part.count > 0; })) return;
  if (std::exchange(warned_of_no_predictions_, true)) return;
  end_progress();
  log_warning("train", no_predictions_warning(training.progress.step));
}

/// Warns of a process of the run for which the others wait, line after line.
void TrainingLog::warn_of_slow_process(const Training& training, double window) {
  auto since = training.waited;
  for (size_t rank = 0; rank < waited_at_line_.size(); ++rank) since[rank] -= waited_at_line_[rank];
  waited_at_line_ = training.waited;
  if (since.empty() || window <= 0) return;
  const auto slow = slow_.look(since, window);
  if (!slow) return;
  end_progress();
  log_warning("train", concat("the others wait for ", training.processes.name_of(*slow), ", up to ",
                              std::lround(100 * *std::max_element(since.begin(), since.end()) / window),
                              " % of the time; look what else runs there, or leave its machine out"));
}

/// Warns, once a process, of other processes on its cores.
void TrainingLog::warn_of_shared_cores() {
  constexpr double long_enough = 10;  // [s]
  if (warned_of_shared_cores_ || seconds_since(begun_) < long_enough) return;
  warned_of_shared_cores_ = true;
  const auto warning = shared_cores_warning(cores_at_begin_, core_time());
  if (warning.empty()) return;
  end_progress();
  log_warning("threads", warning);
}

/// The progress line. `speed`: tokens per second; `plain`: also where the log is not a terminal.
void TrainingLog::show_progress(const Training& training, double speed, bool plain) const {
  const auto& progress = training.progress;
  const auto steps = training.config.train.budget.steps;
  const auto last = steps > 0 ? "/" + std::to_string(steps) : "";
  const auto [done, total] = budget_progress(training);
  const double fraction = done / total;
  const auto left = fraction > 0 ? duration(progress.seconds * std::max(0.0, 1 - fraction) / fraction) : "?";
  char learning_rate[32];
  std::snprintf(learning_rate, sizeof learning_rate, "lr %.2e", training.last.learning_rate);
  Progress shown{
      {concat("step  ", progress.step, last), "loss " + fixed_or_dash(line_.loss(), 4), "eta " + left,
       thousands(static_cast<uint64_t>(speed)) + " tok/s", learning_rate, "|g| " + fixed_or_dash(line_.grad_norm(), 2)},
      fraction};
  if (line_.parts.size() > 1)
    for (const auto& part : line_.parts) shown.fields.push_back(part.name + " " + fixed_or_dash(part.loss(), 3));
  log_progress(shown, plain);
}

/// Writes the row of metrics.jsonl.
void TrainingLog::record(Training& training, double speed) {
  const auto& progress = training.progress;
  losses_ = losses_of(line_);
  const auto time = full_time_breakdown(training);
  auto row = row_of(training);
  row.update(losses_);
  row.update({{"loss", line_.loss()},
              {"learning_rate", training.last.learning_rate},
              {"grad_norm", line_.grad_norm()},
              {"predicted_tokens", progress.predicted_tokens},
              {"epochs", usage(training).epochs},
              {"time",
               {{"seconds", progress.seconds},
                {"budget_share", budget_share(training)},
                {"tokens_per_second", speed},
                {"data_wait_share", time.data_wait / std::max(time.seconds, 1e-9)}}}});
  training.record(row);
}

void TrainingLog::finish(Training& training) { look_for_divergence(training); }

void TrainingLog::look_for_divergence(Training& training) const {
  for (const auto& part : line_.parts)
    if (!is_of_distil(part.name) && is_far_above_guessing(part.loss(), training.guessing))
      report_divergence(
          training, divergence_warning("loss of " + part.name, part.loss(), training.progress.step, training.guessing));
}

}  // namespace cloze
