#include "analysis/describe.h"

#include <algorithm>
#include <set>

#include "core/log.h"
#include "core/tensor/param.h"
#include "objectives/objective.h"
#include "objectives/generative_rows.h"
#include "train/optimizer.h"

namespace cloze {

namespace {

/// Target tokens of a text, as a share of its tokens.
double target_share(const ObjectiveConfig& generative, int64_t length) {
  if (const auto* gaps = std::get_if<GapSentencesConfig>(&generative)) return gaps->gap_sentences_ratio;
  const auto* spans = std::get_if<SpanCorruptionConfig>(&generative);
  if (!spans) return 1;
  switch (spans->corruption) {
    case Corruption::spans:
      return std::min(1.0,
                      static_cast<double>(targets_length(length, spans->noise_density, spans->mean_noise_span_length)) /
                          static_cast<double>(length));
    case Corruption::iid:  // the corrupted tokens, and a sentinel for each run of them
      return std::min(1.0, spans->noise_density * (2 - spans->noise_density));
    case Corruption::drop:
      return spans->noise_density;
    case Corruption::mass:
    case Corruption::bert:
    case Corruption::deshuffle:
    case Corruption::prefix_lm:
      return 1;
  }
  return 1;
}

/// A row of a source and a target, of which a decoder-only model reads both.
RowSizes generative_row(const RunConfig& config, const ObjectiveConfig& objective) {
  const auto& model = backbone_of(config.model);
  const auto length = static_cast<double>(config.data.max_seq_length);
  RowSizes row{.length = length, .predicted = length};
  const double share = target_share(objective, config.data.max_seq_length);
  if (model.is_encoder_decoder()) {
    row.target_length = row.predicted = share * length;
  } else if (!std::holds_alternative<ClmConfig>(objective)) {
    row.predicted = length * share / (1 + share);
    if (model.prefix_lm) row.prefix = length - row.predicted;
  }
  return row;
}

/// The mean number of predicted tokens of a row that is masked or permuted.
double predictions(const Objectives& objectives, double length) {
  if (const auto* plm = first_of<PlmConfig>(objectives))
    return plm->num_predict > 0 ? std::min(length, static_cast<double>(plm->num_predict)) : length / 6;
  double sum = 0;
  for (const auto& masking : maskings_of(objectives)) sum += masking.share * masking.mlm_probability * length;
  return sum;
}

/// The hidden states that are used in a row of which `predicted` tokens are predicted. The neighbours of spans that sbo
/// reads are not counted.
double states_read(const RunConfig& config, const RowSizes& row) {
  const auto& objectives = config.objectives;
  if (objectives.empty() || generative_of(objectives) || first_of<RtdConfig>(objectives)) return row.length;
  const bool pairs = first_of<NspConfig>(objectives) || first_of<SopConfig>(objectives);
  return std::min(row.length, row.predicted + (pairs ? 1 : 0));
}

/// FLOPs of a micro-batch, the mean over all steps of the run: losses may begin and end on the way.
double mean_training_flops(const Network& network, const RunConfig& config) {
  const auto flops_at = [&](int64_t step) {
    for (const auto& objective : network.objectives) objective->set_step(step);
    auto active = config;
    std::erase_if(active.objectives, [&](const ObjectiveConfig& objective) {
      return std::visit([&](const auto& o) { return !o.active(step); }, objective);
    });
    return network.cost(expected_rows(active)).training_flops();
  };
  std::set<int64_t> changes{0};
  for (const auto& objective : config.objectives) {
    std::visit([&](const auto& o) { changes.insert({o.from_step, o.until_step}); }, objective);
    if (const auto* rtd = std::get_if<RtdConfig>(&objective)) changes.insert(rtd->generator_steps);
  }
  const int64_t steps = config.train.budget.steps;
  if (steps == 0) return flops_at(*changes.rbegin());
  double sum = 0;
  for (auto change = changes.begin(); change != changes.end() && *change < steps; ++change) {
    const auto next = std::next(change) == changes.end() ? steps : std::min(steps, *std::next(change));
    sum += flops_at(*change) * static_cast<double>(next - *change);
  }
  return sum / static_cast<double>(steps);
}

}  // namespace

std::vector<RowSizes> expected_rows(const RunConfig& config) {
  const auto rows = static_cast<double>(config.train.batch_size),
             length = static_cast<double>(config.data.max_seq_length);
  RowSizes row{.length = length, .predicted = predictions(config.objectives, length)};
  if (const auto* generative = generative_of(config.objectives)) row = generative_row(config, *generative);
  row.count = rows;
  row.read = states_read(config, row);
  row.boundary_predicted = row.predicted;
  const auto* mntp = first_of<MntpConfig>(config.objectives);
  if (!mntp || !backbone_of(config.model).is_decoder()) return {row};
  auto causal = row;
  causal.count = mntp->causal_share * rows;
  causal.predicted = causal.read = length;
  row.count = rows - causal.count;
  row.prefix = length;
  return {row, causal};
}

Description describe_run(const RunConfig& given) {
  RunConfig config = given;
  auto& m = backbone_of(config.model);
  Description d;
  d.vocab_known = m.vocab_size > 0;
  if (!d.vocab_known) m.vocab_size = 1, m.freeze_pad_embedding = false;
  const auto network = std::make_shared<Network>(config.model, config.objectives);
  for (const auto& [name, param] : collect_params(*network)) {
    const int64_t trained = param.fixed() ? 0 : param.value().numel();
    d.optimizer_bytes += static_cast<double>(moment_bytes(config.optimizer, param.value().sizes(), param.stacked()));
    // Parameters of all blocks share one row.
    std::string shown = name;
    if (const auto digit = name.find_first_of("0123456789"); digit != std::string::npos && name[digit - 1] == '.') {
      const auto dot = name.find('.', digit);
      shown = name.substr(0, digit) + "*" + name.substr(dot);
      const auto row = std::find_if(d.layers.begin(), d.layers.end(), [&](const auto& r) { return r.name == shown; });
      if (row != d.layers.end()) {
        row->parameters += param.value().numel(), d.parameters += trained;
        continue;
      }
    }
    std::string shape;
    for (const auto size : param.value().sizes())
      shape += (shape.empty() ? "" : " x ") + (!d.vocab_known && size == 1 ? std::string("V") : std::to_string(size));
    d.layers.push_back({shown + (param.fixed() ? " (not trained)" : ""), shape, param.value().numel()});
    d.parameters += trained;
  }
  const auto rows = expected_rows(config);
  const double tokens = total(rows, &RowSizes::length);
  d.predicted_share = total(rows, &RowSizes::predicted) / tokens;
  const double batch = mean_training_flops(*network, config);
  d.flops_per_token = batch / tokens;
  d.flops_per_step = batch * static_cast<double>(config.train.accumulation);
  const double n = static_cast<double>(d.parameters);
  const bool bf16 = config.train.precision == Precision::bf16;
  const double element = bf16 ? 2 : 4, h = static_cast<double>(m.hidden_size),
               f = static_cast<double>(m.intermediate_size);
  d.weight_bytes = d.gradient_bytes = 4 * n;
  d.shadow_bytes = bf16 ? 2 * n : 0;
  // Saved by each block for the backward pass: input, q k v, mixed values, two sums and their norms, two inner
  // activations.
  const double block = tokens * element * (8 * h + 2 * f);
  const double layers = static_cast<double>(m.num_hidden_layers);
  d.activation_bytes = (config.train.gradient_checkpointing ? layers * tokens * element * h + block : layers * block) +
                       tokens * element * h +
                       d.predicted_share * tokens * element * (static_cast<double>(m.vocab_size) + 4 * h);
  if (const auto* streams = as<TwoStreamConfig>(config.model); streams && streams->carries_mems())
    d.carried_bytes = static_cast<double>(config.train.batch_size * config.train.accumulation) * layers *
                      static_cast<double>(streams->mem_len) * h * element;
  return d;
}

std::string to_text(const Description& d) {
  std::string out;
  char line[256];
  for (const auto& row : d.layers) {
    std::snprintf(line, sizeof line, "%-52s %18s %16s\n", row.name.c_str(), row.shape.c_str(),
                  thousands(static_cast<uint64_t>(row.parameters)).c_str());
    out += line;
  }
  std::snprintf(line, sizeof line, "%-52s %18s %16s\n", "parameters", "",
                thousands(static_cast<uint64_t>(d.parameters)).c_str());
  out += line;
  if (!d.vocab_known)
    out +=
        "  (without the V rows of the vocabulary, whose size depends on the tokenizer; set it with --set "
        "model.vocab_size=N)\n";
  out += words("\nFLOPs      ", with_prefix(d.flops_per_token), " per token, ", with_prefix(d.flops_per_step),
               " per step (forward and backward; prediction head at ", significant(100 * d.predicted_share, 3),
               " % of the tokens)\n");
  const double total =
      d.weight_bytes + d.gradient_bytes + d.optimizer_bytes + d.shadow_bytes + d.activation_bytes + d.carried_bytes;
  out += words("memory     ", bytes(total), ": weights ", bytes(d.weight_bytes), ", gradients ",
               bytes(d.gradient_bytes), ", optimizer ", bytes(d.optimizer_bytes), ", bf16 copies ",
               bytes(d.shadow_bytes), ", activations about ", bytes(d.activation_bytes));
  if (d.carried_bytes > 0) out += ", recurrence memory " + bytes(d.carried_bytes);
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
            {"carried", d.carried_bytes}}}};
}

}  // namespace cloze
