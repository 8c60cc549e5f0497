#include "train/phases.h"

#include <cmath>

#include "core/log.h"

namespace cloze {

namespace {

/// The first sequence of a step that is not before `epochs` passes over `size` sequences.
uint64_t first_sequence(double epochs, uint64_t size, uint64_t step_sequences) {
  const double steps = std::ceil(epochs * static_cast<double>(size) / static_cast<double>(step_sequences));
  return static_cast<uint64_t>(steps) * step_sequences;
}

}  // namespace

void open_phase(Training& training) {
  const auto& progress = training.progress;
  const auto phases = static_cast<int64_t>(training.config.train.phases.size());
  require<ConfigError>(progress.phase <= phases, training.options.run, ": has begun phase ", progress.phase,
                       " of train.phases, which now has ", phases, "; name as many as before, or start a new run");
  const auto config = config_of_phase(training.config, progress.phase);
  training.step_size = {config.train.batch_size, config.train.accumulation, training.processes.size};
  training.collator = training_collator(config, training.store, progress.phase_start);
}

bool phase_is_over(const Training& training) {
  const auto& train = training.config.train;
  const auto phase = static_cast<size_t>(training.progress.phase);
  return phase < train.phases.size() && budget_share(training) >= train.phases[phase].from;
}

void begin_due_phase(Training& training) {
  if (!phase_is_over(training)) return;
  auto& progress = training.progress;
  while (phase_is_over(training)) {
    const double epochs = usage(training).epochs;
    ++progress.phase;
    progress.phase_start = {.step = progress.step, .sequence = 0, .epochs = epochs};
    open_phase(training);
    progress.sequences = first_sequence(epochs, training.collator.size(), training.step_size.sequences());
    progress.phase_start.sequence = progress.sequences;
    open_phase(training);  // with the rows counted from there
  }
  end_progress();
  log_info("train", concat("phase ", progress.phase, " of train.phases begins after step ", progress.step, ": ",
                           rows_of_phase(training.config, progress.phase), " a step"));
}

std::string rows_of_phase(const RunConfig& config, int64_t phase) {
  const auto own = config_of_phase(config, phase);
  return concat(own.train.batch_size * own.train.accumulation, " sequences of up to ", own.data.max_seq_length,
                " tokens");
}

}  // namespace cloze
