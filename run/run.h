#pragma once
// A run directory: its files, its checkpoints, and how it is opened again.
//
//   runs/NAME/run.yaml            the whole resolved config, with every default
//   runs/NAME/provenance.json     versions, data fingerprint, machine, command line and folder
//   runs/NAME/metrics.jsonl       one object per logged step
//   runs/NAME/log.txt             the printed log
//   runs/NAME/ranks/3.log         that of another process than the first, where several train it
//   runs/NAME/held_out.json       the last held-out losses, sequence by sequence
//   runs/NAME/suites.json         the scores of its suites at its end, with sums over their clusters
//   runs/NAME/loss.svg            the loss curves
//   runs/NAME/tokenizer/          the tokenizer
//   runs/NAME/task/               the rows and items of the task of a fine-tuned run (tasks/rows/prepared_task.h)
//   runs/NAME/predictions.jsonl   what is predicted for its test part; hardest.md, confusion.svg,
//                                 layers.svg
//   runs/NAME/huggingface/        config.json and generation_config.json that came with an imported model
//   runs/NAME/step-00001200/      weights.safetensors (without base, which state.json names), optimizer.safetensors,
//   memory.safetensors (XLNet's mems, of a
//                                 model that carries them), iterate.safetensors (with train.ema_decay: the weights of
//                                 the step, whose average is in weights.safetensors), state.json, config.yaml (the
//                                 run.yaml that made it), manifest.json
//   runs/NAME/latest, best        one line: the name of a step folder
//   runs/NAME/lock                host and pid of the process that trains it, while it does
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "core/tensor/param.h"
#include "data/tokenizer.h"
#include "objectives/network.h"
#include "objectives/step_rows.h"
#include "run/config/config.h"
#include "run/records/log_line.h"
#include "run/records/made_by.h"
#include "run/run_files.h"

namespace cloze {

/// The training time of a run by activity, summed over all processes that trained it [s].
struct TimeBreakdown {
  double seconds = 0;  ///< training time, the sum of the next five; without evaluation and saving
  double data_wait = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double other = 0;       ///< the rest of `seconds`
  double evaluation = 0;  ///< not part of `seconds`
  double checkpoint = 0;  ///< not part of `seconds`
};

template <class V>
void describe(V& v, TimeBreakdown& l) {
  v.or_else("seconds", l.seconds, 0);
  v.or_else("data_wait", l.data_wait, 0);
  v.or_else("forward", l.forward, 0);
  v.or_else("backward", l.backward, 0);
  v.or_else("optimizer", l.optimizer, 0);
  v.or_else("other", l.other, 0);
  v.or_else("evaluation", l.evaluation, 0);
  v.or_else("checkpoint", l.checkpoint, 0);
}

/// The checkpoint of another run whose weights a run keeps where it does not train them, or learns from.
struct BaseRecord {
  std::string checkpoint{};  ///< its path; empty: there is none
  std::string weights{};     ///< their fingerprint (run/checkpoints/checksums.h)
};

/// How far a run has come.
struct RunProgress {
  int64_t step = 0;        ///< optimizer steps done
  uint64_t sequences = 0;  ///< sequences drawn from the sampler of the phase
  int64_t phase = 0;       ///< number of those of train.phases that have begun
  RowsStart phase_start{};
  int64_t tokens = 0;  ///< tokens read, without padding
  int64_t predicted_tokens = 0;
  double flops = 0;    ///< of training
  double seconds = 0;  ///< of training, without evaluation and saving
  BaseRecord base{};
  BaseRecord teacher{};
};

/// A run at a checkpoint: everything besides tensors that a resume needs.
struct TrainState : RunProgress {
  double words = 0;  ///< of the raw text, each time they are seen; negative: not recorded in the checkpoint
  std::vector<int64_t> at_words{};  ///< the numbers of checkpoint.at_words that this step reached
  double best_loss = 0;             ///< the least cost (train/validation.h); valid when `best_step` > 0
  int64_t best_step = 0;
  /// Fields of state.json that a validation adds: what it chose at the last evaluation besides the best step.
  nlohmann::json chosen = nlohmann::json::object();
  int64_t evaluations_without_gain = 0;
  int64_t evaluated_at = -1;     ///< step of the last evaluation
  int64_t suites_at = -1;        ///< step of the last answers to evaluation.suites
  bool held_out_due = false;     ///< the evaluation after this step has not been made
  bool suites_due = false;       ///< the suites after this step have not been answered
  std::string optimizer{};       ///< optimizer.kind; empty: not recorded in the checkpoint
  int64_t row_rules = 1;         ///< version of the rules that made its rows (objectives/collator.h); 1: not recorded
  int64_t moments_reset_at = 0;  ///< step after which the moments began: 0, or the step at which the optimizer changed
  TimeBreakdown time_breakdown{};     ///< of the steps done; zeros: not recorded in the checkpoint
  std::string evaluation_protocol{};  ///< of the held-out evaluation that gave `best_loss`
  uint64_t metrics_bytes = 0;         ///< length of metrics.jsonl at this step; a resume cuts off the rest
  LogLine line{};                     ///< sums since the last line of the log
};

/// state.json of a step folder. Values for what checkpoints of earlier versions do not have are in or_else.
template <class V>
void describe(V& v, TrainState& s) {
  v.count("step", s.step);
  v.count("sequences", s.sequences);
  v.section_if("phase", true, [&](auto& phase) {
    phase.count("number", s.phase);
    phase.count("step", s.phase_start.step);
    phase.count("sequence", s.phase_start.sequence);
    phase("epochs", s.phase_start.epochs);
  });
  v.count("tokens", s.tokens);
  v.or_else("predicted_tokens", s.predicted_tokens, 0);
  v.or_else("flops", s.flops, 0);
  v.or_else("words", s.words, -1);
  v.or_else("at_words", s.at_words, {});
  v("seconds", s.seconds);
  v.number("best_loss", s.best_loss);
  v.or_else("best_step", s.best_step, 0);
  v("evaluations_without_gain", s.evaluations_without_gain);
  v.or_else("evaluated_at", s.evaluated_at, -1);
  v.or_else("suites_at", s.suites_at, -1);
  v.or_else("held_out_due", s.held_out_due, false);
  v.or_else("suites_due", s.suites_due, false);
  v.or_else("optimizer", s.optimizer, "");
  v.or_else("averages_from", s.moments_reset_at, 0);
  v.or_else("yardstick", s.evaluation_protocol, "");
  v.or_else("base", s.base.checkpoint, "");
  v.or_else("base_weights", s.base.weights, "");
  v.or_else("teacher", s.teacher.checkpoint, "");
  v.or_else("teacher_weights", s.teacher.weights, "");
  v.or_else("row_rules", s.row_rules, 1);
  v.or_else("ledger", s.time_breakdown, {});
  v.count("metrics_bytes", s.metrics_bytes);
  v.or_else("line", s.line, {});
}

/// Writes a step folder under a temporary name, syncs it to the disk and renames it, with a manifest of sizes and XXH3
/// checksums under one fingerprint; `latest` is updated last. `optimizer` (of an imported model), `mems` and `iterate`
/// may be empty. Throws CheckpointError with the system's reason; no partial folder remains.
///
/// before_commit  is called when all is written, before the folder has its name; what it throws leaves things as they
///                were
void save_checkpoint(const std::string& run, const TrainState& state, const std::vector<NamedParam>& params,
                     const StateDict& optimizer, const StateDict& mems = {},
                     const std::vector<NamedParam>& iterate = {}, const MadeBy& made_by = {},
                     const std::function<void()>& before_commit = {});

/// Writes the file `latest` or `best` of a run. A folder of that name is moved aside with a warning. Throws Error with
/// the system's reason.
void write_pointer(const std::string& run, const std::string& name, const std::string& step_folder);

/// The newest valid step folder of `run`, or empty; damaged ones are skipped with a warning each. `which`: `latest`, or
/// a step number.
std::string find_checkpoint(const std::string& run, const std::string& which = "latest");

/// The valid step folder that the file `best` names, else the newest, or empty; damaged ones, and a file `best` that
/// names none, are skipped with a warning each.
struct FoundCheckpoint {
  std::string folder{};
  bool is_best = false;  ///< it is the one that the file names
};
FoundCheckpoint find_best_checkpoint(const std::string& run);

/// Whether nothing has the path of a checkpoint: a run that trains removes those that it does not keep.
bool was_removed(const std::string& checkpoint);

/// How often a checkpoint is looked for again where a run that trains has removed the one that was found.
constexpr int most_looks = 1000;

/// Calls `read` with the checkpoint that `find` names, and again with another one where that was removed meanwhile.
template <class Find, class Read>
auto read_checkpoint(const Find& find, const Read& read) {
  for (int looks = 1;; ++looks) {
    const std::string checkpoint = find();
    try {
      return read(checkpoint);
    } catch (const std::exception&) {
      if (looks == most_looks || !was_removed(checkpoint)) throw;
    }
  }
}

/// Throws CheckpointError for a step folder whose files are not those of its manifest.
void require_intact(const std::string& step_folder);

/// Removes all step folders but the newest `keep`, the best and the milestones (run/checkpoints/milestones.h).
void prune_checkpoints(const std::string& run, int64_t keep);

/// Checks every checkpoint of a run against its manifest, run.yaml and the tokenizer against what made it, and warns of
/// damaged metrics and of files `latest` and `best` that name no checkpoint. Throws CheckpointError naming folder and
/// file, and ConfigError for a damaged config.
void verify_run(const std::string& run);

/// Throws CheckpointError for weights that are none of `params`, listing every missing, unexpected and misshapen name,
/// with the nearest match.
void check_weights(const std::string& file, const std::vector<NamedParam>& params);

/// Copies weights by name into `params`. Throws CheckpointError as check_weights does.
void load_weights(const std::string& file, const std::vector<NamedParam>& params);

/// Reads state.json of a step folder, and the optimizer's tensors where `optimizer` is not null.
TrainState load_state(const std::string& step_folder, StateDict* optimizer);

/// The mems of a step folder, from memory.safetensors; empty without that file.
StateDict load_mems(const std::string& step_folder);

/// A trained or imported run, opened for use; later reads need no file of its checkpoint.
struct LoadedRun {
  std::string folder, checkpoint;
  RunConfig config;
  TrainState state{};   ///< of the checkpoint
  Tokenizer tokenizer;  ///< valid only if `has_tokenizer`
  bool has_tokenizer = false;
  std::shared_ptr<Network> network;  ///< weights loaded, eval()
};

/// Opens `path`: a run directory (its best checkpoint, or the newest), or one of its step folders. Throws
/// CheckpointError, ConfigError, and DataError for a damaged tokenizer.
LoadedRun open_run(const std::string& path);

/// Throws CheckpointError for a run without a tokenizer, which cannot read text.
void require_tokenizer(const LoadedRun& run);

/// Pairs of the generator's parameters: in the network `joint` that trains it with its discriminator, and in
/// `standalone`, the same generator as a network of its own. Shared parameters have the discriminator's name.
std::vector<std::pair<Param, Param>> generator_params(const Network& joint, const Network& standalone);

/// Replaces the run's network by its generator of replaced token detection, a masked language model. Throws ConfigError
/// for a run without one.
void take_generator(LoadedRun& run);

}  // namespace cloze
