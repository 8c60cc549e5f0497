#pragma once
// A run directory: what it holds, and how it is opened again.
//
//   runs/NAME/run.yaml            the whole resolved config, every default written out
//   runs/NAME/provenance.json     versions, data fingerprint, machine, command line
//   runs/NAME/metrics.jsonl       one object per logged step
//   runs/NAME/log.txt             what was printed
//   runs/NAME/loss.svg, loss.png  the curve
//   runs/NAME/tokenizer/          the tokenizer
//   runs/NAME/step-00001200/      weights.safetensors, optimizer.safetensors, memory.safetensors (of a model that
//                                 carries one), state.json, manifest.json
//   runs/NAME/latest, best        one line: the name of a step folder
#include <string>

#include "core/tensor/param.h"
#include "data/tokenizer.h"
#include "objectives/network.h"
#include "run/config.h"
#include "run/log_line.h"

namespace cloze {

/// Where the time of a run went, over all of its sessions [s].
struct Ledger {
  double seconds = 0;  ///< of training that the parts below share out, evaluation and saving not counted
  double data_wait = 0;
  double forward = 0;
  double backward = 0;
  double optimizer = 0;
  double other = 0;       ///< what is left of `seconds`
  double evaluation = 0;  ///< next to them
  double checkpoint = 0;  ///< next to them
};

/// A checkpoint's progress, everything a resume needs beside tensors.
struct TrainState {
  int64_t step = 0;        ///< optimizer steps done
  uint64_t sequences = 0;  ///< sequences drawn from the sampler
  int64_t tokens = 0;      ///< real tokens read
  double seconds = 0;      ///< of training, evaluation and saving not counted
  double best_loss = 0;    ///< best held-out loss, valid when `best_step` > 0
  int64_t best_step = 0;
  int64_t evaluations_without_gain = 0;
  int64_t evaluated_at = -1;  ///< step of the last evaluation
  std::string optimizer{};    ///< optimizer.kind; empty: of a checkpoint that does not say
  int64_t row_rules = 1;  ///< by which its rows were made (objectives/collator.h); 1: of a checkpoint that does not say
  int64_t averages_from = 0;   ///< step behind which its averages began: 0, or where the run was given another one
  Ledger ledger{};             ///< of the steps done; empty: of a checkpoint that does not say
  std::string yardstick{};     ///< what `best_loss` was measured by
  uint64_t metrics_bytes = 0;  ///< length of metrics.jsonl at this step: what follows is cut off on resume
  LogLine line{};              ///< what ran since its last line
};

/// Writes a step folder: beside, fsynced, renamed, with a manifest of sizes and XXH3 checksums; `latest` moves last.
/// `optimizer` may be empty (an imported model), and `memories`. Throws CheckpointError with the system's reason;
/// nothing half written stays.
void save_checkpoint(const std::string& run, const TrainState& state, const std::vector<NamedParam>& params,
                     const std::vector<std::pair<std::string, Tensor>>& optimizer,
                     const std::vector<std::pair<std::string, Tensor>>& memories = {});

/// The newest step folder of `run` whose manifest holds, or empty; a damaged one is named in a warning and passed over.
/// `which`: `latest`, `best`, or a step number.
std::string find_checkpoint(const std::string& run, const std::string& which = "latest");

/// Removes step folders but the newest `keep` and the best.
void prune_checkpoints(const std::string& run, int64_t keep);

/// Reads every checkpoint of a run against its manifest. Throws CheckpointError naming folder and file.
void verify_run(const std::string& run);

/// Copies weights by name into `params`. Throws CheckpointError listing every missing, unexpected and misshapen name,
/// with the nearest match.
void load_weights(const std::string& file, const std::vector<NamedParam>& params);

/// Reads state.json of a step folder, and the optimizer's tensors if asked.
TrainState load_state(const std::string& step_folder, std::vector<std::pair<std::string, Tensor>>* optimizer);

/// The tensors of memory.safetensors of a step folder; none without the file.
std::vector<std::pair<std::string, Tensor>> load_memories(const std::string& step_folder);

/// A run that was trained or imported, opened for use.
struct LoadedRun {
  std::string folder, checkpoint;
  RunConfig config;
  Tokenizer tokenizer;  ///< meaningful where `has_tokenizer`
  bool has_tokenizer = false;
  std::shared_ptr<Network> network;  ///< weights loaded, eval()
};

/// Opens `path`: a run directory (its best checkpoint, or the newest), or one of its step folders. Throws
/// CheckpointError or ConfigError in words.
LoadedRun open_run(const std::string& path);

/// The parameters of a generator as they stand beside its discriminator, and those of the same generator as a network
/// of its own. What both networks use stands under the discriminator's name.
std::vector<std::pair<Param, Param>> generator_params(const Network& together, const Network& alone);

/// Makes the generator of replaced token detection the run's network, a masked language model. Throws ConfigError for a
/// run without one.
void take_generator(LoadedRun& run);

}  // namespace cloze
