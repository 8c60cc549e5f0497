#pragma once
// The memory that training takes at least, compared with that of the machine before any of it is taken.
#include "run/config/config.h"

namespace cloze {

/// Bytes that training takes at the least: weights and gradients of the largest matrices (the blocks of every stack and
/// of a generator, and the tables of tokens, positions and segment types), and what the blocks keep of a batch for the
/// backward pass. Tables of a vocabulary that comes from the data count nothing, nor does what a probe does not train.
struct LeastMemory {
  double parameters = 0;
  double activations = 0;
};

/// `row_tokens`: the mean length of a row, which text in short documents keeps far below data.max_seq_length; 0: not
/// known yet, so that activations count nothing.
LeastMemory least_memory(const RunConfig& config, double row_tokens);

/// About what training takes [bytes]: the optimizer's moments as well, and all that the blocks keep. It errs in both
/// directions.
double likely_memory(const RunConfig& config, double row_tokens);

/// What a machine has, which several processes share evenly, or a GPU, which is one process's.
struct MachineMemory {
  MachineMemory(double all, int64_t sharers = 1, bool gpu = false) : bytes(all), processes(sharers), is_gpu(gpu) {}
  double each() const { return bytes / static_cast<double>(processes); }
  double bytes;  ///< 0: not known
  int64_t processes;
  bool is_gpu;
};

/// The memory that a run computes in, as one of so many processes on this machine. Throws ConfigError if its device is
/// not available.
MachineMemory memory_for(const RunConfig& config, int64_t processes = 1);

/// Throws ConfigError if training takes more than a process has of `machine`, or, where that is no GPU, is likely to
/// take far more, once the length of a row is known; 0: not known.
void require_memory(const RunConfig& config, double row_tokens, const MachineMemory& machine);

/// Throws ConfigError if training on the processor and the states that it keeps for probes [bytes] take more than
/// a process has of `machine`, and warns if they are likely to.
void check_kept_states(const RunConfig& config, double states, const MachineMemory& machine);

/// Warns if training is likely to take more than a process has of `machine`.
void warn_of_memory(const RunConfig& config, double row_tokens, const MachineMemory& machine);

}  // namespace cloze
