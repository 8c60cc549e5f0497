#include "analysis/describe.h"

#include <algorithm>

#include "core/log.h"
#include "core/tensor/param.h"
#include "objectives/objective.h"
#include "objectives/generative_rows.h"
#include "train/optimizer.h"

namespace cloze {

namespace {

/// Target tokens per source token.
double target_share(const RunConfig& config) {
  const auto* generative = generative_of(config.objectives);
  const auto* spans = generative ? std::get_if<SpanCorruptionConfig>(generative) : nullptr;
  if (!spans || spans->corruption != Corruption::spans) return 1;
  return std::min(1.0, static_cast<double>(targets_length(config.data.max_seq_length, spans->noise_density,
                                                          spans->mean_noise_span_length)) /
                           static_cast<double>(config.data.max_seq_length));
}

/// The share of a hybrid's rows that are causal.
double causal_share(const Objectives& objectives) {
  for (const auto& o : objectives)
    if (const auto* mntp = std::get_if<MntpConfig>(&o)) return mntp->causal_share;
  return 0;
}

/// The share of a decoder's rows that are bidirectional.
double bidirectional_share(const Objectives& objectives) {
  const bool some = std::any_of(objectives.begin(), objectives.end(),
                                [](const auto& o) { return std::holds_alternative<MntpConfig>(o); });
  return some ? 1 - causal_share(objectives) : 0;
}

/// The share of predicted tokens in a sequence of `length`.
double predicted_share(const Objectives& objectives, double length) {
  for (const auto& o : objectives)
    if (const auto* plm = std::get_if<PlmConfig>(&o))
      return plm->num_predict > 0 ? std::min(1.0, static_cast<double>(plm->num_predict) / length) : 1.0 / 6;
  double share = 0;
  for (const auto& masking : maskings_of(objectives)) share += masking.share * masking.mlm_probability;
  const double causal = causal_share(objectives);
  return (1 - causal) * share + causal;
}

}  // namespace

Cost cost_of(const RunConfig& config, double length) {
  const auto& m = backbone_of(config.model);
  const double h = static_cast<double>(m.hidden_size), f = static_cast<double>(m.intermediate_size),
               layers = static_cast<double>(m.num_hidden_layers);
  Cost cost;
  const double e = static_cast<double>(m.embedding_width()), vocab = static_cast<double>(m.vocab_size),
               inner = static_cast<double>(m.inner_group_num);
  const double projection = m.always_project_embeddings || m.embedding_width() != m.hidden_size ? e * h : 0;
  const double feed_forward_matrices = m.feed_forward == FeedForward::gated ? 3 : 2,
               heads = static_cast<double>(m.heads_width());
  cost.linear = layers * inner * (4 * h * heads + feed_forward_matrices * h * f) + projection;
  const double attended = m.is_decoder() ? 0.5 + 0.5 * bidirectional_share(config.objectives) : 1;
  double keys = length * layers * attended;  // per query, over all layers
  if (const auto* window = std::get_if<WindowAttention>(&m.attention)) {
    const auto& windows = window->attention_window;
    keys = 0;
    for (int64_t i = 0; i < m.num_hidden_layers; ++i)
      keys += std::min(length, static_cast<double>(of_layer(windows, i)) + 1);
    if (window->global_tokens == GlobalTokens::first)
      cost.linear += layers * 2 * h * h;  // keys and values of the global token
  } else if (const auto* alternating = std::get_if<AlternatingAttention>(&m.attention)) {
    keys = 0;
    for (int64_t i = 0; i < m.num_hidden_layers; ++i)
      keys +=
          alternating->is_global(i) ? length : std::min(length, 2.0 * static_cast<double>(alternating->window()) + 1);
  } else if (const auto* performer = std::get_if<PerformerAttention>(&m.attention)) {
    keys =
        layers * 2 * static_cast<double>(performer->nb_features) *
        (performer->kernel == FeatureKernel::trigonometric ? 2
                                                           : 1);  // features of queries and keys, then sums over them
  } else if (const auto* linformer = std::get_if<LinformerAttention>(&m.attention)) {
    keys = layers * 2 *
           static_cast<double>(m.max_position_embeddings / linformer->compressed);  // keys are projected, then scored
  } else if (const auto* blocks = std::get_if<BigBirdAttention>(&m.attention)) {
    keys = layers * std::min(length, static_cast<double>((5 + blocks->num_random_blocks) * blocks->block_size));
  } else if (m.has_relative_keys()) {
    keys += layers * static_cast<double>(m.max_position_embeddings) *
            (m.position_embeddings == PositionEmbeddings::relative_key_query ? 2 : 1);  // scores of all distances
  } else if (m.relative_positions > 0) {
    keys += layers * 2 * static_cast<double>(m.relative_positions);
  }
  // If few outputs of the last block are needed, all after its attention is computed only for these positions.
  const bool needs_all = m.is_decoder() || m.is_encoder_decoder() || m.is_two_stream() || layers == 0 ||
                         std::any_of(config.objectives.begin(), config.objectives.end(),
                                     [](const auto& o) { return std::holds_alternative<RtdConfig>(o); });
  if (!needs_all && !config.objectives.empty()) {
    const double tail = h * heads + feed_forward_matrices * h * f;
    cost.linear -= tail;
    for (const auto& objective : config.objectives) {
      if (std::holds_alternative<MlmConfig>(objective) || std::holds_alternative<MntpConfig>(objective))
        cost.head += tail;
      else if (!std::holds_alternative<SboConfig>(objective))
        cost.pooled += tail;
    }
  }
  const double predicted = predicted_share(config.objectives, length);
  const auto* streams = as<TwoStreamConfig>(config.model);
  const double mem_length = streams && streams->carries_mems() ? static_cast<double>(streams->mem_len) : 0;
  if (mem_length > 0) {  // keys and values of the mems are computed in every step
    cost.linear += layers * 2 * h * heads * mem_length / length;
  }
  // Scores by content and by distance, thus twice as many; predicted tokens also run through the query stream.
  if (m.is_two_stream()) {
    const double content = layers > 0 ? layers - 1 : 0;  // the content stream of the last layer is not needed
    keys = 2 * (length + mem_length) * (content + layers * predicted);
    cost.linear += (content + layers * predicted - layers) * (2 * h * h + 2 * h * f);
  }
  cost.attention = inner * 2 * keys * heads;
  if (m.is_encoder_decoder()) {  // the cost per target token is part of the head
    const auto& both = *as<EncoderDecoderConfig>(config.model);
    const double depth = static_cast<double>(both.decoder_layers()),
                 inside = static_cast<double>(both.decoder_inner_size());
    cost.linear += depth * 2 * h * heads;  // keys and values for the decoder
    cost.head += depth * (6 * h * heads + feed_forward_matrices * h * inside +
                          2 * (length * target_share(config) / 2 + length) * heads);
  }
  for (const auto& objective : config.objectives) {
    if (std::holds_alternative<MlmConfig>(objective)) {
      cost.head += h * e + e * vocab;
    } else if (const auto* rtd = std::get_if<RtdConfig>(&objective)) {
      cost.linear += h * h + h;
      if (rtd->replace_by != ReplaceBy::generator) continue;
      const auto g = generator_of(*rtd, m);
      const double gh = static_cast<double>(g.hidden_size), gf = static_cast<double>(g.intermediate_size),
                   gl = static_cast<double>(g.num_hidden_layers);
      cost.linear += gl * (4 * gh * gh + 2 * gh * gf) + (g.hidden_size != g.embedding_width() ? e * gh : 0);
      cost.attention += gl * 2 * length * gh;
      cost.linear -= gh * gh + 2 * gh * gf,
          cost.head += gh * gh + 2 * gh * gf;  // its last block, at masked positions only
      cost.head += gh * e + e * vocab;
    } else if (const auto* sbo = std::get_if<SboConfig>(&objective)) {
      cost.head += (2 * h + static_cast<double>(sbo->position_embedding_size)) * h + h * e + e * vocab;
    } else if (head_of(objective) == "lm") {
      cost.head += e * vocab + (has_transform(objective) ? h * e : 0);
    } else {
      cost.pooled += h * h + 2 * h;
    }
  }
  return cost;
}

double training_flops(const Cost& c, double tokens, double predicted, double sequences) {
  return 6 * (tokens * (c.linear + c.attention) + predicted * c.head + sequences * c.pooled);
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
  const double length = static_cast<double>(config.data.max_seq_length),
               rows = static_cast<double>(config.train.batch_size), tokens = rows * length;
  d.cost = cost_of(config, length);
  d.predicted_share = predicted_share(config.objectives, length);
  if (generative_of(config.objectives)) d.predicted_share = target_share(config);
  const double batch = training_flops(d.cost, tokens, d.predicted_share * tokens, rows);
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
    d.carried_bytes = rows * static_cast<double>(config.train.accumulation) * layers *
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
