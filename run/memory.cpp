#include "run/memory.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"
#include "models/backbone_config.h"
#include "objectives/generator.h"
#include "run/device.h"
#include "run/process.h"

namespace cloze {

namespace {

double number(int64_t n) { return static_cast<double>(n); }

/// The generators of objectives that have one.
double generator_weights(const RunConfig& config) {
  double sum = 0;
  for (const auto& objective : config.objectives) {
    const auto generator = as_kind(objective).generator(config.model);
    if (!generator) continue;
    const auto& model = backbone_of(generator->model);
    sum += model.layer_weights() + model.output_weights();
    if (generator->own_embeddings) sum += model.embedding_weights();
  }
  return sum;
}

/// The numbers that the optimizer keeps of a weight of a large matrix.
double moments_of_weight(const RunConfig& config) {
  constexpr MatrixShape large{.rows = 1024, .columns = 1024};
  return number(moment_numbers(config.optimizer.rule, large)) / number(large.numel());
}

/// Whether the largest matrices are not trained.
bool keeps_weights(const RunConfig& config) { return config.init.probe || !config.adaptation.kind.is_full(); }

/// The weights of the largest matrices.
double least_weights(const RunConfig& config) {
  const auto& model = backbone_of(config.model);
  const bool has_output = any_that(config.objectives, &ObjectiveKind::predicts_tokens);
  return model.layer_weights() + model.embedding_weights() + (has_output ? model.output_weights() : 0) +
         generator_weights(config);
}

}  // namespace

LeastMemory least_memory(const RunConfig& config, double row_tokens) {
  const auto& model = backbone_of(config.model);
  const double bytes_of_weight = keeps_weights(config) ? 4 : 8;  // in fp32, with its gradient where it is trained
  const double bytes_kept = config.init.probe ? 0 : 2;           // of an activation, in bf16
  const double tokens = number(config.train.batch_size) * std::min(row_tokens, number(config.data.max_seq_length));
  return {.parameters = bytes_of_weight * least_weights(config),
          .activations = bytes_kept * tokens * model.least_activations(config.train.gradient_checkpointing)};
}

double likely_memory(const RunConfig& config, double row_tokens) {
  const auto least = least_memory(config, row_tokens);
  const double moments = keeps_weights(config) ? 0 : moments_of_weight(config);  // beside the weight and its gradient
  const double with_moments = 1 + moments / 2, with_attention = config.train.gradient_checkpointing ? 1 : 2.5;
  return with_moments * least.parameters + with_attention * least.activations;
}

namespace {

double shown_tokens(const RunConfig& config, double row_tokens) {
  return std::round(std::min(row_tokens, number(config.data.max_seq_length)));
}

/// `the machine has 24 GB of memory for 4 processes`
std::string shown(const MachineMemory& machine) {
  return concat(machine.is_gpu ? "the GPU has " : "the machine has ", bytes(machine.bytes), " of memory",
                machine.processes > 1 ? concat(" for ", machine.processes, " processes") : "");
}

/// What a step is likely to take, and what the machine has.
std::string likely_need(const RunConfig& config, double row_tokens, const MachineMemory& machine) {
  return concat("a step with train.batch_size ", config.train.batch_size, " and rows of ",
                shown_tokens(config, row_tokens), " tokens takes about ", bytes(likely_memory(config, row_tokens)),
                ", and ", shown(machine));
}

constexpr const char* memory_remedy =
    "lower train.batch_size and raise train.accumulation, or set train.gradient_checkpointing=true";

}  // namespace

MachineMemory memory_for(const RunConfig& config, int64_t processes) {
  const auto device = device_of(config.train.device);
  return device.is_cpu() ? MachineMemory(machine_memory(), processes)
                         : MachineMemory(memory_of(device), 1, /*gpu=*/true);
}

void require_memory(const RunConfig& config, double row_tokens, const MachineMemory& machine) {
  if (machine.bytes <= 0) return;
  const auto least = least_memory(config, row_tokens);
  require<ConfigError>(least.parameters <= machine.each(), "the model (", backbone_of(config.model).sizes(),
                       ") takes at least ", bytes(least.parameters), " to train, and ", shown(machine),
                       "; choose a smaller model");
  require<ConfigError>(least.parameters + least.activations <= machine.each(), "train.batch_size ",
                       config.train.batch_size, " with rows of ", shown_tokens(config, row_tokens),
                       " tokens takes at least ", bytes(least.parameters + least.activations), ", and ", shown(machine),
                       "; ", memory_remedy);
  // The call that knows the text compares the rest; a GPU says by itself where a step does not fit.
  if (row_tokens <= 0 || machine.is_gpu) return;
  constexpr double error = 1.5;  // of the estimate
  require<ConfigError>(likely_memory(config, row_tokens) <= error * machine.each(),
                       likely_need(config, row_tokens, machine), "; ", memory_remedy, ", or choose a smaller model");
}

void check_kept_states(const RunConfig& config, double states, const MachineMemory& machine) {
  if (machine.is_gpu || machine.bytes <= 0) return;
  const auto need = [&](double memory) {
    return concat("the network and the states that its probes read take ", bytes(memory + states), ", ", bytes(states),
                  " of them for the states, and ", shown(machine));
  };
  constexpr const char* remedy = "name fewer layers in objectives.0.layer";
  const double least = least_memory(config, 0).parameters, likely = likely_memory(config, 0);
  require<ConfigError>(least + states <= machine.each(), need(least), "; ", remedy);
  if (likely + states > machine.each())
    log_warning("train", concat(need(likely), ": the system may kill it; ", remedy));
}

void warn_of_memory(const RunConfig& config, double row_tokens, const MachineMemory& machine) {
  if (machine.bytes <= 0 || likely_memory(config, row_tokens) <= machine.each()) return;
  log_warning("train", concat(likely_need(config, row_tokens, machine),
                              machine.is_gpu ? ": it may not fit; " : ": the system may kill it; ", memory_remedy));
}

}  // namespace cloze
