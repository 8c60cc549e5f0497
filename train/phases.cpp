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

void open_phase(Session& session) {
  const auto& state = session.state;
  const auto phases = static_cast<int64_t>(session.config.train.phases.size());
  require<ConfigError>(state.phase <= phases, session.options.run, ": has begun phase ", state.phase,
                       " of train.phases, which now has ", phases, "; name as many as before, or start a new run");
  const auto config = config_of_phase(session.config, state.phase);
  session.step_size = {config.train.batch_size, config.train.accumulation};
  session.collator = training_collator(config, session.store, state.phase_start);
}

bool phase_is_over(const Session& session) {
  const auto& train = session.config.train;
  const auto phase = static_cast<size_t>(session.state.phase);
  return phase < train.phases.size() && used_share(train.budget, usage(session)) >= train.phases[phase].from;
}

void begin_due_phase(Session& session) {
  if (!phase_is_over(session)) return;
  auto& state = session.state;
  while (phase_is_over(session)) {
    const double epochs = usage(session).epochs;
    ++state.phase;
    state.phase_start = {.step = state.step, .sequence = 0, .epochs = epochs};
    open_phase(session);
    state.sequences = first_sequence(epochs, session.collator.size(), session.step_size.sequences());
    state.phase_start.sequence = state.sequences;
    open_phase(session);  // with the rows counted from there
  }
  end_progress();
  log_info("train", words("phase ", state.phase, " of train.phases begins after step ", state.step, ": ",
                          rows_of_phase(session.config, state.phase), " a step"));
}

std::string rows_of_phase(const RunConfig& config, int64_t phase) {
  const auto own = config_of_phase(config, phase);
  return words(own.train.batch_size * own.train.accumulation, " sequences of up to ", own.data.max_seq_length,
               " tokens");
}

}  // namespace cloze
