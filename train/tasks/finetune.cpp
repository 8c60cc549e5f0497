#include "train/tasks/finetune.h"

#include "core/log.h"
#include "finetune/run_rows.h"
#include "run/memory.h"
#include "run/process.h"
#include "tasks/rows/prepared_task.h"
#include "train/tasks/task_test.h"
#include "train/tasks/task_validation.h"

namespace cloze {

namespace {

/// Computes the states that probes read of the rows they are trained on, once: their network stays as it is. Where
/// these are too many, each step computes its own. Does nothing for other heads. Throws Interrupted after a signal.
void keep_probed_states(Training& training) {
  auto& network = *training.network;
  auto* probes = probes_of(network);
  if (!probes) return;
  const auto& config = training.config;
  const auto& objectives = config.objectives;
  const auto rows_of = [&](const char* split) { return read_prepared_split(config.data.tokens, split).rows; };
  const auto rows = rows_of("train");
  const double size = bytes_of_states(network, objectives, rows, ProbedTokens::labelled),
               judged = bytes_of_states(network, objectives, rows_of("valid"), ProbedTokens::all);
  const bool fits = size <= most_bytes_of_states;
  log_info("train",
           concat("the states that the probes read are computed ", fits ? "once" : "in each step", ": ", bytes(size)));
  check_kept_states(config, (fits ? size : 0) + (judged <= most_bytes_of_states ? judged : 0), training.machine);
  if (fits) probes->keep(states_of_rows(network, objectives, rows, ProbedTokens::labelled).states);
}

std::unique_ptr<Validation> validation_of_task(Training& training) {
  auto validation = std::make_unique<TaskValidation>(training.config);
  const auto* probes = probes_of(*training.network);  // the sum of whose losses is trained
  const auto heads = probes ? static_cast<double>(probes->layers().size()) : 1.0;
  training.guessing = {.loss = heads * validation->guessing(), .of_task = true};
  return validation;
}

}  // namespace

TrainingParts parts_of_run(const RunConfig& config) {
  if (config.task.name.empty()) return {.rows = rows_of_run};
  return {.rows = rows_of_run,
          .validation = validation_of_task,
          .add_callbacks =  // after the last checkpoint, which may be the best
          [](Training& training) { training.add(std::make_unique<TaskTest>()); },
          .before_steps = keep_probed_states};
}

}  // namespace cloze
