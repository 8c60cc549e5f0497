#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/file.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"
#include "evaluation/held_out_file.h"
#include "objectives/generative_rows.h"
#include "run/config_changes.h"
#include "run/folder.h"
#include "run/init.h"
#include "train/branch.h"
#include "train/budget.h"
#include "train/loader.h"
#include "run/loss_curve.h"
#include "run/memory.h"
#include "run/metrics.h"
#include "run/process.h"
#include "run/provenance.h"
#include "run/load_config.h"
#include "train/schedule.h"
#include "train/trainer.h"
#include "train/warnings.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

namespace {

constexpr int64_t max_skips = 10;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// The config with the values that depend on the data.
RunConfig resolved(RunConfig config, const TokenStore& store) {
  auto& model = backbone_of(config.model);
  const int64_t vocabulary = store.tokenizer().size();
  if (model.vocab_size == 0) model.vocab_size = vocabulary;
  require<ConfigError>(model.vocab_size >= vocabulary, "model.vocab_size is ", model.vocab_size, ", the tokenizer of ",
                       config.data.tokens, " has ", vocabulary, " tokens; raise it, or leave it out");
  take_special_ids(config.model, store.tokenizer().special());
  require<ConfigError>(config.data.max_seq_length <= model.max_input_length(), "the tokenizer's padding id is ",
                       model.pad_token_id, ", and positions of ", kind_of(config.model),
                       " start after it; raise model.max_position_embeddings to ",
                       model.pad_token_id + 1 + config.data.max_seq_length,
                       ", or prepare the text with a tokenizer that has its padding among the first ids (`cloze "
                       "prepare` trains such tokenizers)");
  config.evaluation = resolved_evaluation(config);
  return config;
}

class Run {
 public:
  Run(const RunConfig& given, const PretrainOptions& options)
      : options_(options),
        store_(given.data.tokens, "train"),
        held_out_store_(given.data.tokens, "valid"),
        config_(resolved(given, store_)),
        collator_(store_, config_.objectives, config_.data, row_streams(config_.train), "train", config_.model,
                  {config_.train.batch_size, config_.train.accumulation, config_.train.budget.steps}),
        measures_(held_out_measures(config_, held_out_store_)) {}

  PretrainReport train() {
    configure_threads(config_.train.threads);
    device_of(config_.train.device);
    // Checking for seconds is cheaper than training for days on damaged text.
    store_.verify(), held_out_store_.verify();
    require<ConfigError>(
        config_.train.budget.words == 0 || store_.train_words(), config_.data.tokens,
        ": was prepared without a count of its words, which train.budget.words needs; prepare the text "
        "again with --force, or give another budget");
    network_ = std::make_shared<Network>(config_.model, config_.objectives);
    const auto params = collect_params(*network_);
    const auto& model = backbone_of(config_.model);
    initialize(params, model.initializer_range, is_truncated(model.initializer),
               rng_of(config_.train, RandomStream::init));
    const auto checkpoint = options_.resume ? find_checkpoint(options_.run) : "";
    const auto branch = checkpoint.empty() ? branch_point() : std::nullopt;
    if (branch) check_branch(*branch);
    const auto source = checkpoint.empty() && !branch ? initial_checkpoint() : "";
    const auto start =
        source.empty() ? InitReport{} : init_from(source, *network_, store_.tokenizer(), config_.init.probe);
    if (config_.init.probe) network_->freeze_backbone();
    open_folder(branch);
    if (!source.empty()) {
      log_info("init", to_text(start));
      write_atomic(options_.run + "/init.json", to_json(start).dump(2) + "\n");
    }
    stepper_ = std::make_unique<Stepper>(config_, *network_);
    resume(branch ? branch->checkpoint : checkpoint);
    if (branch) state_.best_step = state_.evaluations_without_gain = 0;  // the best is searched for in this run
    state_.optimizer = name_of(config_.optimizer.kind);
    state_.yardstick = yardstick_description(config_, held_out_store_);
    check_disk();
    metrics_ = std::make_unique<Metrics>(options_.run, state_.metrics_bytes, state_.step);
    if (branch) saved_at_ = -1, save(true);
    announce();
    loop();
    return finish();
  }

 private:
  /// The checkpoint that initializes a run without a checkpoint of its own, or empty: init.from, or, for a run that was
  /// killed before its first checkpoint, the one that it was initialized from, even if that run has gone on since.
  std::string initial_checkpoint() const {
    const auto& from = config_.init.from;
    const auto report = options_.run + "/init.json";
    if (from.empty() || !options_.resume || !fs::exists(report)) return from;
    const auto origin = parse_json(read_text(report, 16 << 20));
    const auto checkpoint = origin.is_object() ? origin.value("from", json()) : json();
    require<CheckpointError>(checkpoint.is_string(), report, ": is damaged; start a new run in another folder");
    require<CheckpointError>(
        fs::exists(checkpoint.get<std::string>()), options_.run, ": has no checkpoint of its own, and ",
        checkpoint.get<std::string>(),
        ", from which it was initialized, is missing; restore it, or start a new run in another folder");
    return checkpoint.get<std::string>();
  }

  /// The checkpoint of another run that this one continues: of a new branch, or of one that was killed before its first
  /// checkpoint.
  std::optional<BranchPoint> branch_point() const {
    if (!options_.resume)
      return options_.branch_from.empty() ? std::nullopt : std::optional(find_branch_point(options_.branch_from));
    const auto path = options_.run + "/provenance.json";
    const auto recorded = fs::exists(path) ? parse_json(read_text(path, 16 << 20)) : json();
    if (!recorded.is_object() || !recorded.contains("branched_from")) return std::nullopt;
    return find_branch_point(recorded["branched_from"].value("checkpoint", ""));
  }

  void check_branch(const BranchPoint& branch) {
    state_ = load_state(branch.checkpoint, nullptr);
    const auto used = [&](const BudgetConfig& budget) {
      const auto [done, total] = nearest_limit(budget, usage());
      return done / total;
    };
    cloze::check_branch(branch, config_, store_, used(branch.config.train.budget), used(config_.train.budget));
  }

  void open_folder(const std::optional<BranchPoint>& branch) {
    const bool exists = fs::exists(options_.run + "/run.yaml");
    if (exists) {
      auto before = decode<RunConfig>(load_run_config(options_.run + "/run.yaml"));
      // A file of an earlier version lacks these keys.
      take_special_ids(before.model, store_.tokenizer().special());
      before.evaluation = resolved_evaluation(before);
      const auto changed = changed_keys(before, config_);
      std::string list;
      for (const auto& line : changed) list += "\n  " + line;
      require<ConfigError>(changed.empty() || options_.overwrite_config, options_.run,
                           ": was made with a different config; undo these changes (without a config file a run "
                           "continues with its own), or allow them with --allow-config-change:",
                           list);
      const bool same_data = recorded_data(options_.run) == store_.fingerprint();
      changed_ = !changed.empty() || !same_data;
      require<ConfigError>(same_data || options_.overwrite_config, options_.run,
                           ": was trained on different tokens than ", config_.data.tokens,
                           "; name the same tokens, or allow it with --allow-config-change");
    }
    if (branch)
      fs::copy_file(branch->run + "/metrics.jsonl", options_.run + "/metrics.jsonl",
                    fs::copy_options::overwrite_existing);
    if (!exists) {
      auto origin = provenance(store_, options_.command_line);
      if (branch)
        origin["branched_from"] = {{"run", branch->run}, {"checkpoint", branch->checkpoint}, {"step", state_.step}};
      write_atomic(options_.run + "/provenance.json", origin.dump(2) + "\n");
    }
    write_atomic(options_.run + "/run.yaml", to_yaml(config_));
    store_.tokenizer().save(options_.run + "/tokenizer");
    set_log_file(options_.run + "/log.txt");
  }

  void resume(const std::string& checkpoint) {
    if (!options_.resume && checkpoint.empty()) return;
    if (checkpoint.empty()) {
      log_info("train", words(options_.run, " has no checkpoint: the run starts from the beginning"));
      return;
    }
    std::vector<std::pair<std::string, Tensor>> moments;
    state_ = load_state(checkpoint, &moments);
    ledger_ = stepper_->ledger = state_.ledger;
    uncounted_ = state_.seconds - state_.ledger.seconds;
    for (const auto& objective : network_->objectives) objective->set_step(std::max<int64_t>(state_.step - 1, 0));
    if (state_.yardstick != yardstick_description(config_, held_out_store_)) {
      if (state_.best_step > 0)
        log_info(
            "train",
            words(checkpoint,
                  ": its best held-out loss comes from a different evaluation; the search for the best starts over"));
      state_.best_step = 0;
      state_.evaluations_without_gain = 0;
    }
    load_weights(checkpoint + "/weights.safetensors", stepper_->params());
    if (!state_.optimizer.empty() && state_.optimizer != name_of(config_.optimizer.kind)) {
      state_.moments_reset_at = state_.step;
      log_info("train", words(checkpoint, ": was made by ", state_.optimizer, "; the moments of ",
                              config_.optimizer.kind, " start from zero"));
    } else if (!moments.empty()) {
      stepper_->load_optimizer(moments, state_.step - state_.moments_reset_at);
    }
    const auto mems = load_mems(checkpoint);
    if (changed_ && !mems.empty())
      log_info("train", words(checkpoint,
                              ": config or data have changed, so rows may not continue the previous ones; the mems "
                              "start from zero"));
    else
      stepper_->load_mems(mems);
    stepper_->refresh();
    // A run that was killed right after its best checkpoint may lack the file `best`.
    const auto best = state_.best_step > 0 ? find_checkpoint(options_.run, std::to_string(state_.best_step)) : "";
    if (!best.empty()) write_atomic(options_.run + "/best", fs::path(best).filename().string() + "\n");
    saved_at_ = state_.step;
    log_info("train", words(options_.resume ? "resumed from " : "branched from ", checkpoint));
    if (state_.row_rules != row_rules)
      log_warning("train",
                  words(checkpoint,
                        ": was made by a version of Cloze that packed and masked rows differently; from here on "
                        "rows follow this version, so the final weights differ from those of that version"));
  }

  void check_disk() const {
    const auto checkpoint = static_cast<double>(stepper_->checkpoint_bytes());
    const double needed = checkpoint * static_cast<double>(config_.checkpoint.keep + 2),
                 free = static_cast<double>(free_bytes(options_.run));
    require<Error>(free > needed, options_.run, ": its checkpoints need ", bytes(needed), ", the disk has ",
                   bytes(free), " free; free some space, or lower checkpoint.keep");
  }

  void announce() const {
    log_info("data",
             words(config_.data.tokens, ": ", thousands(store_.num_documents()), " documents, ",
                   thousands(store_.num_tokens()), " tokens, ", thousands(collator_.size()),
                   " sequences an epoch; held out: ", thousands(held_out_store_.num_documents()), " documents"));
    log_info("model", words(kind_of(config_.model), ", ", thousands(static_cast<uint64_t>(stepper_->parameters())),
                            " parameters, vocabulary ",
                            thousands(static_cast<uint64_t>(backbone_of(config_.model).vocab_size))));
    std::string names;
    for (const auto& objective : network_->objectives) names += (names.empty() ? "" : " + ") + objective->name();
    log_info("train", words(names, ", ", config_.train.batch_size * config_.train.accumulation, " sequences of up to ",
                            config_.data.max_seq_length, " tokens a step, ", stepper_->precision_description(), ", ",
                            at::get_num_threads(), " threads"));
    for (const auto& line : deviations(config_)) log_info("train", "differs from the preset: " + line);
    const auto unbalanced = pair_warning(config_.objectives, collator_);
    if (!unbalanced.empty()) log_warning("train", unbalanced);
    const auto missing = missing_sequences(measures_, config_.evaluation.sequences);
    if (!missing.empty())
      log_info("data", words("held out: ", missing, "; the standard errors take that into account"));
    const auto of_tokens = std::count_if(measures_.begin(), measures_.end(),
                                         [](const auto& measure) { return measure.unigram.has_value(); });
    for (const auto& measure : measures_) {
      if (!measure.unigram) continue;
      log_info("train",
               words("unigram baseline on held-out text", of_tokens > 1 ? " (" + measure.name + ")" : "", ": loss ",
                     fixed(measure.unigram->loss, 4), ", accuracy ", fixed(measure.unigram->accuracy, 4)));
    }
  }

  static std::string fixed(double value, int digits) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return text;
  }

  Usage usage() const {
    const double epochs = static_cast<double>(state_.sequences) / static_cast<double>(collator_.size());
    return {.steps = static_cast<double>(state_.step),
            .tokens = static_cast<double>(state_.tokens),
            .predicted_tokens = static_cast<double>(state_.predicted_tokens),
            .words = epochs * static_cast<double>(store_.train_words().value_or(0)),
            .epochs = epochs,
            .flops = state_.flops,
            .minutes = state_.seconds / 60};
  }
  /// The amount done and the total in the currency of the budget that is closest to its limit.
  std::pair<double, double> progress() const { return nearest_limit(config_.train.budget, usage()); }

  /// Factor on the learning rate. A warm-up given in steps counts steps whichever limit ends the run; the total number
  /// of steps is then extrapolated from the progress so far.
  double schedule() const {
    const auto [done, total] = progress();
    const auto step = static_cast<double>(state_.step);
    if (config_.schedule.warmup < 1 || done == step) return schedule_factor(config_.schedule, done, total);
    return schedule_factor(config_.schedule, step, step * (total / done));
  }

  bool patience_over() const {
    return config_.evaluation.patience > 0 && state_.evaluations_without_gain >= config_.evaluation.patience;
  }

  /// Whether an evaluation is due after a step that began at `share_before` of the budget.
  bool evaluates_now(double share_before) const {
    const auto& evaluation = config_.evaluation;
    if (evaluation.points == 0) return evaluation.every > 0 && state_.step % evaluation.every == 0;
    const double points = static_cast<double>(evaluation.points);
    return std::floor(points * used_share(config_.train.budget, usage())) > std::floor(points * share_before);
  }

  void loop() {
    if (patience_over()) {  // the run had stopped when it was saved
      stopped_by_ = "patience";
      return;
    }
    if (interrupted) stop();  // while it was loading: nothing is to be saved
    const int64_t batch = config_.train.batch_size, accumulation = config_.train.accumulation;
    Loader loader([&](uint64_t n) { return collator_.batch(n * static_cast<uint64_t>(batch), batch); },
                  state_.sequences / static_cast<uint64_t>(batch), config_.train.workers);
    const auto start = Clock::now();
    auto last_shown = Clock::now();
    double pause = 0;
    const double seconds_before = state_.seconds;
    int64_t skips = 0, tokens_at_log = state_.tokens;
    double seconds_at_log = state_.seconds;
    while (progress().first < progress().second) {
      const double share_before = used_share(config_.train.budget, usage());
      const auto waiting = Clock::now();
      std::vector<Batch> batches;
      for (int64_t i = 0; i < accumulation; ++i) batches.push_back(loader.next());
      ledger_.data_wait += since(waiting);
      const double rate = config_.optimizer.learning_rate * schedule();
      const auto result = stepper_->step(batches, state_.step, rate);
      if (!result.finite) {
        refuse(result, ++skips);
        state_.sequences += static_cast<uint64_t>(batch * accumulation);
        continue;
      }
      skips = 0;
      ++state_.step;
      state_.sequences += static_cast<uint64_t>(batch * accumulation);
      state_.tokens += result.tokens;
      state_.predicted_tokens += result.predicted_tokens;
      state_.flops += result.flops;
      state_.seconds = seconds_before + since(start) - pause;
      last_loss_ = result.loss;
      state_.line.add(result.parts, result.grad_norm);
      const bool log_now = state_.step % config_.checkpoint.log_every == 0 || state_.step == 1;
      if (log_now || since(last_shown) > 1) {
        const double window = state_.seconds - seconds_at_log;
        const double speed = window > 0 ? static_cast<double>(state_.tokens - tokens_at_log) / window : 0;
        show(rate, speed, log_now);
        last_shown = Clock::now();
        if (log_now) {
          record(rate, speed);
          state_.line = {};
          tokens_at_log = state_.tokens, seconds_at_log = state_.seconds;
        }
      }
      const auto pause_start = Clock::now();
      const bool stops = interrupted, over = progress().first >= progress().second;
      const bool evaluates = !over && evaluates_now(share_before);
      if (evaluates) evaluate_now();
      if (stops || (!over && config_.checkpoint.every > 0 && state_.step % config_.checkpoint.every == 0)) save(false);
      pause += since(pause_start);
      if (stops) stop();
      if (evaluates && patience_over()) {
        stopped_by_ = "patience";
        break;
      }
    }
    end_progress();
  }

  [[noreturn]] void stop() const {
    end_progress();
    throw Interrupted(words("stopped at step ", state_.step, "; continue with --resume"));
  }

  void refuse(const Stepper::Result& result, int64_t skips) {
    end_progress();
    const auto text =
        words(result.nonfinite, " is not finite at step ", state_.step + 1, " (sequences ", state_.sequences, " to ",
              state_.sequences + static_cast<uint64_t>(config_.train.batch_size * config_.train.accumulation) - 1, ")");
    if (config_.train.on_nonfinite == OnNonFinite::skip && skips <= max_skips) {
      log_warning("train", text + "; the step is skipped");
      return;
    }
    const auto last = find_checkpoint(options_.run);
    fail(text, skips > max_skips ? words(", and so were the ", max_skips, " before it") : "",
         "; no update was made, the last good checkpoint is ", last.empty() ? "none yet" : last,
         "; lower the learning rate, or skip such steps with --set train.on_nonfinite=skip");
  }

  /// Shows a line of means over the steps since the previous line.
  void show(double rate, double speed, bool plain) {
    const auto& line = state_.line;
    const auto last = config_.train.budget.steps > 0 ? "/" + std::to_string(config_.train.budget.steps) : "";
    const auto [done, total] = progress();
    const double share = done / total;
    const auto left = share > 0 ? duration(state_.seconds * std::max(0.0, 1 - share) / share) : "?";
    char learning_rate[32];
    std::snprintf(learning_rate, sizeof learning_rate, "lr %.2e", rate);
    Progress shown{
        {words("step  ", state_.step, last), "loss " + fixed(line.loss(), 4), "eta " + left,
         thousands(static_cast<uint64_t>(speed)) + " tok/s", learning_rate, "|g| " + fixed(line.grad_norm(), 2)},
        share};
    if (line.parts.size() > 1)
      for (const auto& part : line.parts) shown.fields.push_back(part.name + " " + fixed(part.loss(), 3));
    log_progress(shown, plain);
  }

  void record(double rate, double speed) {
    const auto& line = state_.line;
    json row{{"step", state_.step},           {"loss", line.loss()},     {"learning_rate", rate},
             {"grad_norm", line.grad_norm()}, {"tokens", state_.tokens}, {"predicted_tokens", state_.predicted_tokens},
             {"flops", state_.flops},         {"epochs", usage().epochs}};
    for (const auto& part : line.parts) {
      row[part.name] = {{"loss", part.loss()}, {"accuracy", part.accuracy()}, {"count", part.count}};
      if (!part.binary) continue;
      row[part.name]["majority"] = majority_baseline(part.binary->positives, part.count).accuracy;
      if (part.name == RtdConfig::kind) row[part.name]["f1"] = f1_score(*part.binary);
    }
    const auto time = ledger();
    row["time"] = {{"seconds", state_.seconds},
                   {"budget_share", used_share(config_.train.budget, usage())},
                   {"tokens_per_second", speed},
                   {"data_wait_share", time.data_wait / std::max(time.seconds, 1e-9)}};
    metrics_->write(row);
  }

  /// The times of this process and of those that trained the run before it.
  Ledger ledger() const {
    Ledger all = ledger_;
    const auto& steps = stepper_->ledger;
    all.forward = steps.forward;
    all.backward = steps.backward;
    all.optimizer = steps.optimizer;
    all.seconds = state_.seconds - uncounted_;
    all.other = std::max(0.0, all.seconds - all.data_wait - all.forward - all.backward - all.optimizer);
    return all;
  }

  /// Evaluates, and keeps track of the best step. A step that was evaluated before the run was resumed is not counted
  /// again, nor is one at which no objective of the evaluation is active.
  void evaluate_now() {
    const auto start = Clock::now();
    const bool again = state_.evaluated_at == state_.step;
    last_held_out_ = evaluate(*network_, measures_, config_.train.batch_size, device_of(config_.train.device),
                              /*active_only=*/true);
    std::erase_if(last_held_out_, [](const HeldOut& part) { return part.count == 0; });
    held_out_loss_ = std::numeric_limits<double>::quiet_NaN();
    if (last_held_out_.empty()) {
      end_progress();
      if (!std::exchange(reported_nothing_measured_, true))
        log_info("train", words("no held-out evaluation at step ", state_.step,
                                ": none of evaluation.objectives is active (from_step, until_step)"));
      return;
    }
    held_out_loss_ = 0;
    json row{{"step", state_.step},
             {"tokens", state_.tokens},
             {"predicted_tokens", state_.predicted_tokens},
             {"flops", state_.flops},
             {"time", {{"seconds", state_.seconds}, {"budget_share", used_share(config_.train.budget, usage())}}}};
    for (const auto& part : last_held_out_) {
      held_out_loss_ += part.weight * part.loss;
      auto& held_out = row["held_out"];
      held_out[part.name + "_loss"] = part.loss;
      held_out[part.name + "_accuracy"] = part.accuracy;
      if (part.standard_error) held_out[part.name + "_standard_error"] = *part.standard_error;
      if (part.baseline) held_out[part.name + "_baseline_loss"] = part.baseline->loss;
      if (part.baseline) held_out[part.name + "_baseline_accuracy"] = part.baseline->accuracy;
      if (part.f1) held_out[part.name + "_f1"] = *part.f1;
    }
    row["held_out_loss"] = held_out_loss_;
    const auto text = words("held out at step ", state_.step, ":", to_text(last_held_out_));
    if (again) {
      log_info("train", text);
      return;
    }
    metrics_->write(row);
    ledger_.evaluation += since(start);
    if (state_.best_step > 0 && !same_losses(config_, state_.best_step - 1, state_.step - 1))
      state_.best_step = 0;  // sums of other losses are not comparable with this one
    const bool finite = std::isfinite(held_out_loss_);
    const bool better = finite && (state_.best_step == 0 || held_out_loss_ < state_.best_loss);
    end_progress();
    const auto few_replaced = replaced_warning(last_held_out_, config_.evaluation);
    if (!few_replaced.empty() && !std::exchange(warned_few_replaced_, true)) log_warning("train", few_replaced);
    if (!finite)
      log_warning("train", words("the held-out loss at step ", state_.step,
                                 " is not finite, so this step cannot be the best; lower the learning rate"));
    log_info("train", text + (better ? "  (best so far)" : ""));
    state_.evaluated_at = state_.step, saved_at_ = -1;
    if (better) {
      state_.best_loss = held_out_loss_, state_.best_step = state_.step, state_.evaluations_without_gain = 0;
      save(false);
      try {
        if (saved_at_ == state_.step)
          write_atomic(options_.run + "/best",
                       fs::path(find_checkpoint(options_.run, std::to_string(state_.step))).filename().string() + "\n");
      } catch (const Error& e) {
        log_warning("train", e.what());
      }
    } else {
      ++state_.evaluations_without_gain;
    }
  }

  /// Saves a checkpoint, unless this step has been saved; a failure ends the run only if `must`.
  void save(bool must) {
    if (saved_at_ == state_.step) return;
    const auto start = Clock::now();
    state_.metrics_bytes = metrics_->sync();
    state_.ledger = ledger();
    try {
      save_checkpoint(options_.run, state_, stepper_->params(), stepper_->optimizer_state(), stepper_->mems());
      saved_at_ = state_.step;
      prune_checkpoints(options_.run, config_.checkpoint.keep);
    } catch (const Error& e) {
      if (must) throw;
      log_warning("train", words(e.what(), "; the run continues, and the next checkpoint is saved as scheduled"));
    }
    ledger_.checkpoint += since(start);
  }

  /// The unigram baseline of the first objective that predicts tokens.
  Baseline first_unigram() const {
    for (const auto& measure : measures_)
      if (measure.unigram) return *measure.unigram;
    return {};
  }

  PretrainReport finish() {
    if (state_.evaluated_at != state_.step || last_held_out_.empty()) evaluate_now();
    save(true);
    const auto baseline = first_unigram();
    draw_loss(options_.run, baseline.loss);
    PretrainReport report;
    report.steps = state_.step, report.tokens = state_.tokens, report.seconds = state_.seconds,
    report.train_loss = last_loss_;
    report.tokens_per_second = static_cast<double>(state_.tokens) / std::max(state_.seconds, 1e-9);
    report.held_out = last_held_out_, report.held_out_loss = held_out_loss_, report.best_step = state_.best_step;
    report.unigram_loss = baseline.loss, report.unigram_accuracy = baseline.accuracy;
    report.ledger = ledger();
    report.stopped_by = stopped_by_;
    const json summary{{"steps", report.steps},
                       {"tokens", report.tokens},
                       {"predicted_tokens", state_.predicted_tokens},
                       {"words", usage().words},
                       {"epochs", usage().epochs},
                       {"flops", state_.flops},
                       {"seconds", report.seconds},
                       {"tokens_per_second", report.tokens_per_second},
                       {"held_out_loss", report.held_out_loss},
                       {"held_out", to_json(report.held_out)},
                       {"best_step", report.best_step},
                       {"unigram_loss", report.unigram_loss},
                       {"unigram_accuracy", report.unigram_accuracy},
                       {"stopped_by", report.stopped_by},
                       {"ledger",
                        {{"data_wait", report.ledger.data_wait},
                         {"forward", report.ledger.forward},
                         {"backward", report.ledger.backward},
                         {"optimizer", report.ledger.optimizer},
                         {"evaluation", report.ledger.evaluation},
                         {"checkpoint", report.ledger.checkpoint},
                         {"other", report.ledger.other}}}};
    write_atomic(options_.run + "/summary.json", summary.dump(2) + "\n");
    write_held_out(options_.run, state_.step, state_.yardstick, last_held_out_, measures_, config_.train.batch_size);
    return report;
  }

  PretrainOptions options_;
  TokenStore store_, held_out_store_;
  RunConfig config_;
  Collator collator_;
  std::vector<Measure> measures_;
  std::shared_ptr<Network> network_;
  std::unique_ptr<Stepper> stepper_;
  std::unique_ptr<Metrics> metrics_;
  TrainState state_;
  Ledger ledger_;         // without the times that the stepper measures
  double uncounted_ = 0;  // seconds before a checkpoint that has no ledger
  std::vector<HeldOut> last_held_out_;
  double held_out_loss_ = std::numeric_limits<double>::quiet_NaN(), last_loss_ = 0;
  int64_t saved_at_ = -1;  // step
  std::string stopped_by_ = "budget";
  bool warned_few_replaced_ = false;
  bool reported_nothing_measured_ = false;  // no objective of the evaluation is active yet
  bool changed_ = false;                    // config or data changed since the checkpoint
};

}  // namespace

PretrainReport pretrain(const RunConfig& config, const PretrainOptions& options) {
  validate(config);
  require<ConfigError>(
      !config.data.tokens.empty(),
      "data.tokens is not given; prepare text with `cloze prepare` and name its folder with --set data.tokens=FOLDER");
  require_memory(config, machine_memory());
  const RunLock lock(options.run, options.resume);
  return Run(config, options).train();
}

}  // namespace cloze
