#include "run/memory.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/log.h"

namespace cloze {

LeastMemory least_memory(const RunConfig& config, double row_tokens) {
  const auto& model = backbone_of(config.model);
  const auto size = [](int64_t n) { return static_cast<double>(n); };
  const double width = size(model.hidden_size), inner = size(model.intermediate_size),
               layers = size(model.num_hidden_layers);
  const double own_layers = size(part_of<LayerSharing>(config.model).groups_of(model.num_hidden_layers));
  const double table = size(model.vocab_size) * size(model.embedding_width());
  const double weights = table + own_layers * 2 * width * inner;  // of the feed-forward layers
  const double bytes_of_weight = config.init.probe ? 4 : 8;       // in fp32, with its gradient where it is trained
  const double bytes_kept = config.init.probe ? 0 : 2;            // of an activation, in bf16
  const double tokens = size(config.train.batch_size) * std::min(row_tokens, size(config.data.max_seq_length));
  const double kept = config.train.gradient_checkpointing ? width : 2 * width + inner;
  return {.parameters = bytes_of_weight * weights, .activations = bytes_kept * tokens * layers * kept};
}

double likely_memory(const RunConfig& config, double row_tokens) {
  const auto least = least_memory(config, row_tokens);
  const double with_moments = 2, with_attention = config.train.gradient_checkpointing ? 1 : 2.5;
  return with_moments * least.parameters + with_attention * least.activations;
}

void require_memory(const RunConfig& config, double row_tokens, double machine) {
  if (config.train.device != "cpu" || machine <= 0) return;
  const auto& model = backbone_of(config.model);
  const auto least = least_memory(config, row_tokens);
  const double shown_tokens = std::min(row_tokens, static_cast<double>(config.data.max_seq_length));
  require<ConfigError>(least.parameters <= machine, "the model (model.hidden_size ", model.hidden_size,
                       ", model.num_hidden_layers ", model.num_hidden_layers, ", model.vocab_size ", model.vocab_size,
                       ") takes at least ", bytes(least.parameters), " to train, and the machine has ", bytes(machine),
                       " of memory; choose a smaller model");
  require<ConfigError>(least.parameters + least.activations <= machine, "train.batch_size ", config.train.batch_size,
                       " with rows of ", std::llround(shown_tokens), " tokens takes at least ",
                       bytes(least.parameters + least.activations), ", and the machine has ", bytes(machine),
                       " of memory; lower train.batch_size and raise train.accumulation, or set "
                       "train.gradient_checkpointing=true");
  if (const double likely = likely_memory(config, row_tokens); likely > machine)
    log_warning("train", words("a step with train.batch_size ", config.train.batch_size, " and rows of ",
                               std::llround(shown_tokens), " tokens takes about ", bytes(likely),
                               ", and the machine has ", bytes(machine),
                               " of memory: the system may kill it; lower train.batch_size and raise "
                               "train.accumulation, or set train.gradient_checkpointing=true"));
}

}  // namespace cloze
