#include "train/inspection/describe.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "core/tensor/param.h"
#include "core/text.h"
#include "objectives/constraints.h"
#include "objectives/network.h"
#include "run/checkpoints/teacher.h"
#include "run/config/evaluation_protocol.h"
#include "run/device.h"
#include "run/training_rows.h"
#include "optimizers/optimizer.h"
#include "train/training.h"

namespace cloze {

namespace {

/// FLOPs of a micro-batch, the mean over all steps of the run: losses may begin and end on the way.
double mean_training_flops(const Network& network, const RunConfig& config) {
  const auto flops_at = [&](int64_t step) {
    for (const auto& objective : network.objectives) objective->set_step(step);
    auto active = config;
    std::erase_if(active.objectives, [&](const auto& objective) { return !as_kind(objective).active(step); });
    return network.training_flops(expected_rows(active), config.train.budget.count == FlopsCount::published);
  };
  std::set<int64_t> changes{0};
  for (const auto& objective : network.objectives)
    for (const int64_t step : objective->changes()) changes.insert(step);
  const int64_t steps = config.train.budget.steps;
  if (steps == 0) return flops_at(*changes.rbegin());
  double sum = 0;
  for (auto change = changes.begin(); change != changes.end() && *change < steps; ++change) {
    const auto next = std::next(change) == changes.end() ? steps : std::min(steps, *std::next(change));
    sum += flops_at(*change) * static_cast<double>(next - *change);
  }
  return sum / static_cast<double>(steps);
}

/// The name under which a parameter is listed: parameters of all blocks share one row.
std::string shown_name(const std::string& name) {
  const auto digit = name.find_first_of("0123456789");
  if (digit == std::string::npos || digit == 0 || name[digit - 1] != '.') return name;
  return name.substr(0, digit) + "*" + name.substr(name.find('.', digit));
}

/// The sizes of a parameter; V stands for those of a vocabulary, which are others in a `wider` one.
std::string shown_shape(const at::IntArrayRef& sizes, const at::IntArrayRef& wider) {
  std::string shape;
  for (size_t i = 0; i < sizes.size(); ++i)
    shape += (shape.empty() ? "" : " x ") + (sizes[i] == wider[i] ? std::to_string(sizes[i]) : std::string("V"));
  return shape;
}

/// Adds the parameters of a network, and the optimizer's moments of them. `wider`: the same network with another
/// vocabulary, where the size of its own is not known, else itself.
void add_layers(const Network& network, const Network& wider, const OptimizerConfig& optimizer, Description& d) {
  const auto others = collect_params(wider);
  size_t next = 0;
  for (const auto& named : collect_params(network)) {
    const auto& [name, param] = named;
    const auto shape = shown_shape(param.value().sizes(), others[next++].param.value().sizes());
    const int64_t count = param.value().numel();
    const auto& rule = update_options(optimizer, named).rule;
    d.optimizer_bytes += static_cast<double>(moment_bytes(rule, param));
    d.parameters += param.fixed() ? 0 : count;
    const auto shown = shown_name(name);
    const auto row = std::find_if(d.layers.begin(), d.layers.end(), [&](const auto& r) { return r.name == shown; });
    if (shown != name && row != d.layers.end())
      row->parameters += count;
    else
      d.layers.push_back({shown + (param.fixed() ? " (not trained)" : ""), shape, count});
  }
}

/// Adds what a step keeps in memory.
void add_memory(const RunConfig& config, const std::vector<RowSizes>& rows, Description& d) {
  const auto& model = backbone_of(config.model);
  const bool bf16 = config.train.precision == Precision::bf16;
  const double element = bf16 ? 2 : 4;
  const auto parameters = static_cast<double>(d.parameters);
  d.weight_bytes = 4 * parameters;
  d.gradient_bytes = 4 * parameters;
  d.shadow_bytes = bf16 ? 2 * parameters : 0;
  d.activation_bytes = element * model.activations(rows, config.train.gradient_checkpointing);
  d.carried_bytes =
      static_cast<double>(config.train.batch_size * config.train.accumulation) * model.carried_numbers() * element;
}

}  // namespace

std::vector<RowSizes> expected_rows(const RunConfig& config) {
  auto rows = expected_rows(objective_setting(config));
  if (config.distil.is_on() && config.distil.reads_all_tokens() && config.task.name.empty())
    for (auto& row : rows) row.read = row.length;
  return rows;
}

namespace {

/// The config with the vocabulary and the special tokens of its prepared text, as a run of it has them; as it is
/// without a text, and where it knows its vocabulary and the text is not here.
RunConfig with_vocabulary(const RunConfig& config) {
  const auto& tokens = config.data.tokens;
  std::error_code unknown;
  const bool is_needed = backbone_of(config.model).vocab_size == 0;
  if (tokens.empty() || (!is_needed && !std::filesystem::exists(tokens + "/manifest.json", unknown))) {
    auto known = config;  // a teacher reads the same tokens
    const auto teacher = teachers_config(config);
    if (teacher && is_needed) backbone_of(known.model).vocab_size = backbone_of(teacher->model).vocab_size;
    return known;
  }
  return resolved_config(config, open_tokens(config, "train"));
}

/// The network of a config whose vocabulary is not known, with one of so many tokens.
std::shared_ptr<Network> network_with(RunConfig config, int64_t vocab_size) {
  auto& model = backbone_of(config.model);
  model.vocab_size = vocab_size;
  model.freeze_pad_embedding = false;
  return std::make_shared<Network>(config.model, config.objectives);
}

}  // namespace

Description describe_run(const RunConfig& run_config) {
  const auto config = with_vocabulary(run_config);
  Description d;
  d.vocab_known = backbone_of(config.model).vocab_size > 0;
  const auto network =
      d.vocab_known ? std::make_shared<Network>(config.model, config.objectives) : network_with(config, 1);
  give_teachers_shape(config, *network);
  add_layers(*network, d.vocab_known ? *network : *network_with(config, 2), config.optimizer, d);
  const auto rows = expected_rows(config);
  const double tokens = total(rows, &RowSizes::length);
  d.predicted_fraction = total(rows, &RowSizes::predicted) / tokens;
  const double batch = mean_training_flops(*network, config);
  d.flops_per_token = batch / tokens;
  d.flops_per_step = batch * static_cast<double>(config.train.accumulation);
  add_memory(config, rows, d);
  for (const auto& [name, param] : network->teachers_params())
    d.teacher_bytes += 4 * static_cast<double>(param.value().numel());
  if (config.train.precision == Precision::bf16) d.teacher_bytes *= 1.5;
  if (config.train.device == "cpu") d.processor = shown_processor();
  return d;
}

std::string to_text(const Description& d) {
  auto rows = d.layers;
  rows.push_back({"parameters", "", d.parameters});
  size_t name_width = 0, shape_width = 0, count_width = 0;
  for (const auto& row : rows) {
    name_width = std::max(name_width, row.name.size());
    shape_width = std::max(shape_width, row.shape.size());
    count_width = std::max(count_width, thousands(static_cast<uint64_t>(row.parameters)).size());
  }
  std::string out;
  for (const auto& row : rows)
    out += concat(padded(row.name, name_width), "  ", aligned_right(row.shape, shape_width), "  ",
                  aligned_right(thousands(static_cast<uint64_t>(row.parameters)), count_width), "\n");
  if (!d.vocab_known)
    out +=
        "  (without the V rows of the vocabulary, whose size depends on the tokenizer; name prepared text with --set "
        "data.tokens=DIR, or a size with --set model.vocab_size=N)\n";
  out += concat("\nFLOPs      ", with_prefix(d.flops_per_token), " per token, ", with_prefix(d.flops_per_step),
                " per step (forward and backward; prediction head at ", significant(100 * d.predicted_fraction, 3),
                " % of the tokens)\n");
  const double total = d.weight_bytes + d.gradient_bytes + d.optimizer_bytes + d.shadow_bytes + d.activation_bytes +
                       d.carried_bytes + d.teacher_bytes;
  out += concat("memory     ", bytes(total), ": weights ", bytes(d.weight_bytes), ", gradients ",
                bytes(d.gradient_bytes), ", optimizer ", bytes(d.optimizer_bytes), ", bf16 copies ",
                bytes(d.shadow_bytes), ", activations about ", bytes(d.activation_bytes));
  if (d.carried_bytes > 0) out += ", recurrence memory " + bytes(d.carried_bytes);
  if (d.teacher_bytes > 0) out += ", teacher " + bytes(d.teacher_bytes);
  if (!d.processor.empty()) out += "\nprocessor  " + d.processor;
  return out;
}

nlohmann::json to_json(const Description& d) {
  nlohmann::json layers = nlohmann::json::array();
  for (const auto& row : d.layers)
    layers.push_back({{"name", row.name}, {"shape", row.shape}, {"parameters", row.parameters}});
  return {{"layers", layers},
          {"parameters", d.parameters},
          {"flops_per_token", d.flops_per_token},
          {"flops_per_step", d.flops_per_step},
          {"memory_bytes",
           {{"weights", d.weight_bytes},
            {"gradients", d.gradient_bytes},
            {"optimizer", d.optimizer_bytes},
            {"bf16_copies", d.shadow_bytes},
            {"activations", d.activation_bytes},
            {"carried", d.carried_bytes},
            {"teacher", d.teacher_bytes}}},
          {"processor", d.processor}};
}

}  // namespace cloze
