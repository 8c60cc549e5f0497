#include "run/config.h"

#include <algorithm>
#include <map>
#include <vector>

#include "run/yardstick.h"

namespace cloze {

namespace {

void check_architecture(const ModelConfig& model, std::vector<std::string>& broken) {
  const auto architecture = backbone_of(model).architecture;
  const auto* encoder_decoder = as<EncoderDecoderConfig>(model);
  if (!has_architecture(model, architecture))
    broken.push_back(words("model.architecture ", architecture, " is not available for ", kind_of(model), "; choose ",
                           architectures_of(model)));
  if (encoder_decoder && encoder_decoder->d_kv == 0 &&
      encoder_decoder->hidden_size % encoder_decoder->decoder_heads() != 0 &&
      encoder_decoder->decoder_attention_heads > 0)
    broken.push_back(words("model.hidden_size ", encoder_decoder->hidden_size,
                           " is not a multiple of model.decoder_attention_heads ",
                           encoder_decoder->decoder_attention_heads, "; choose a number of heads that divides it"));
}

void check_model(const BackboneConfig& m, std::vector<std::string>& broken) {
  const char* attention = std::visit([](const auto& a) { return a.kind; }, m.attention);
  if (m.relative_attention_num_buckets > 0 &&
      (!std::holds_alternative<FullAttention>(m.attention) || m.relative_positions > 0))
    broken.push_back(
        words("model.relative_attention_num_buckets needs attention of kind full and relative_positions 0, they are ",
              attention, " and ", m.relative_positions, "; choose those, or another model"));
  if (m.relative_attention_num_buckets > 0 && m.relative_attention_max_distance <= m.relative_attention_num_buckets / 2)
    broken.push_back(words("model.relative_attention_max_distance ", m.relative_attention_max_distance,
                           " leaves no distances for the logarithmic buckets; raise it above ",
                           m.relative_attention_num_buckets / 2));
  if (m.has_relative_keys() && (!std::holds_alternative<FullAttention>(m.attention) || m.relative_positions > 0 ||
                                m.relative_attention_num_buckets > 0 || m.is_encoder_decoder() || m.prefix_lm))
    broken.push_back(words("model.position_embeddings ", m.position_embeddings,
                           " needs an encoder-only or decoder-only model, attention of kind full, and neither other "
                           "relative positions nor prefix_lm; choose other position embeddings"));
  const bool rotary = m.position_embeddings == PositionEmbeddings::rotary;
  const auto* alternating = std::get_if<AlternatingAttention>(&m.attention);
  if (rotary && ((!std::holds_alternative<FullAttention>(m.attention) && !alternating) || m.relative_positions > 0))
    broken.push_back(
        words("model.position_embeddings rotary needs attention of kind full or alternating and "
              "relative_positions 0, they are ",
              attention, " and ", m.relative_positions, "; choose those, or other positions"));
  if (rotary && m.head_width() % 2 != 0)
    broken.push_back(words("model.position_embeddings rotary rotates pairs of numbers, and heads of width ",
                           m.head_width(),
                           " are odd; choose model.hidden_size and num_attention_heads with an even "
                           "quotient"));
  if (alternating && !alternating->global_layers.empty()) {
    const auto last = *std::max_element(alternating->global_layers.begin(), alternating->global_layers.end());
    if (last >= m.num_hidden_layers)
      broken.push_back(words("model.attention.global_layers names layer ", last, " of a stack with ",
                             m.num_hidden_layers, ", whose first one is 0; leave it out"));
  }
  if (m.d_kv == 0 && m.hidden_size % m.num_attention_heads != 0)
    broken.push_back(words("model.hidden_size ", m.hidden_size, " is not a multiple of model.num_attention_heads ",
                           m.num_attention_heads, "; choose a width that is divisible by the number of heads"));
  if (const auto* window = std::get_if<WindowAttention>(&m.attention)) {
    const auto fits = [&](const char* name, const std::vector<int64_t>& list) {
      const auto count = static_cast<int64_t>(list.size());
      if (count != 1 && count != m.num_hidden_layers)
        broken.push_back(words("model.attention.", name, " has ", count, " values for ", m.num_hidden_layers,
                               " layers; give one value, or one per layer"));
    };
    fits("attention_window", window->attention_window);
    fits("attention_dilation", window->attention_dilation);
    if (window->dilated_heads > m.num_attention_heads)
      broken.push_back(words("model.attention.dilated_heads ", window->dilated_heads,
                             " is more than model.num_attention_heads ", m.num_attention_heads, "; lower it"));
  }
  if (const auto* linformer = std::get_if<LinformerAttention>(&m.attention))
    if (linformer->compressed > m.max_position_embeddings)
      broken.push_back(words("model.attention.compressed ", linformer->compressed,
                             " is more than model.max_position_embeddings ", m.max_position_embeddings, "; lower it"));
  const bool supports_causal =
      std::holds_alternative<FullAttention>(m.attention) || std::holds_alternative<PerformerAttention>(m.attention);
  if (m.is_decoder() && !supports_causal)
    broken.push_back(words("model.attention of kind ", attention,
                           " is bidirectional; set model.architecture: encoder, or choose kind: full or performer"));
  if (m.prefix_lm && (!std::holds_alternative<FullAttention>(m.attention) || m.relative_positions > 0))
    broken.push_back(words("model.prefix_lm needs attention of kind full without relative positions, it has kind ",
                           attention, " and relative_positions ", m.relative_positions,
                           "; choose those, or set prefix_lm to false"));
  if (m.relative_positions > 0 && !std::holds_alternative<FullAttention>(m.attention))
    broken.push_back(words("model.relative_positions needs attention of kind full, it is ", attention,
                           "; set relative_positions to 0, or choose kind: full"));
  if (m.num_hidden_groups > m.num_hidden_layers)
    broken.push_back(words("model.num_hidden_groups ", m.num_hidden_groups, " is more than model.num_hidden_layers ",
                           m.num_hidden_layers, "; lower it"));
  if (m.vocab_size > 0 && m.pad_token_id >= m.vocab_size)
    broken.push_back(words("model.pad_token_id ", m.pad_token_id, " is outside model.vocab_size ", m.vocab_size,
                           "; name an id of the vocabulary"));
}

void check_masking(const std::string& name, const Masking& o, std::vector<std::string>& broken) {
  if (o.mask_prob + o.random_prob > 1 + 1e-9)
    broken.push_back(words(name, ": mask_prob ", shortest(o.mask_prob), " and random_prob ", shortest(o.random_prob),
                           " add up to more than 1; lower one of them"));
  if (o.draw_per == DrawPer::word && (o.unit == MaskingUnit::token || o.unit == MaskingUnit::token_span))
    broken.push_back(
        name + ": draw_per: word needs a unit of whole words; choose unit: word, ngram or span, or draw_per: token");
  if (o.count == CountRule::bernoulli && o.unit != MaskingUnit::token && o.unit != MaskingUnit::word)
    broken.push_back(words(name, ": count: bernoulli draws single tokens or words; with unit: ", o.unit,
                           " choose count: rounded, ceil or stochastic"));
  if (o.mask_special && o.unit == MaskingUnit::span)
    broken.push_back(
        name + ": mask_special is not supported with unit: span; choose another unit, or set mask_special to false");
}

/// A masking whose share changes over training needs the number of steps.
void check_decay(const std::string& name, const Masking& o, int64_t steps, std::vector<std::string>& broken) {
  if (o.initial_mlm_probability > 0 && o.decay_steps == 0 && steps == 0)
    broken.push_back(
        words(name, ": initial_mlm_probability ", shortest(o.initial_mlm_probability),
              " changes to mlm_probability over train.budget.steps, which is 0; set it, or decay_steps, or set "
              "initial_mlm_probability to 0"));
}

void check_maskings(const std::string& name, const MlmConfig& o, std::vector<std::string>& broken) {
  if (o.mixture.empty()) check_masking(name, o, broken);
  for (size_t i = 0; i < o.mixture.size(); ++i) check_masking(words(name, ".mixture.", i), o.mixture[i], broken);
  if (!o.mixture.empty() &&
      std::all_of(o.mixture.begin(), o.mixture.end(), [](const auto& part) { return part.share == 0; }))
    broken.push_back(name + ".mixture: the shares sum to 0; give at least one masking a `share` above 0");
}

/// The limits of an objective within this run.
std::vector<std::string> limits_of(const ObjectiveConfig& objective, const RunConfig& c) {
  ObjectiveSetting setting{
      .model = c.model, .data = c.data, .rows_per_step = c.train.batch_size * c.train.accumulation};
  for (const auto& other : c.objectives)
    if (&other != &objective)
      setting.companions.push_back(std::visit([](const auto& o) { return std::string(o.kind); }, other));
  return std::visit(
      [&](const auto& o) -> std::vector<std::string> {
        if constexpr (requires { limits_of(o, setting); }) return limits_of(o, setting);
        return {};
      },
      objective);
}

/// Rows of plm: mems, segment pairs, backward text.
void check_permuted_rows(const RunConfig& c, const TwoStreamConfig& model, std::vector<std::string>& broken) {
  const auto& data = c.data;
  const int64_t max_reuse = data.max_seq_length - 5;  // A [SEP] B [SEP] [CLS] follow the reused tokens
  if (model.same_length && model.mem_len == 0)
    broken.push_back(
        "model.same_length needs mems, and model.mem_len 0 keeps none in training; raise mem_len, or set same_length "
        "to "
        "false");
  if (model.bi_data && c.train.batch_size % 2 != 0)
    broken.push_back(words("model.bi_data reverses half of the rows of a batch, and train.batch_size ",
                           c.train.batch_size, " is odd; make it even, or set bi_data to false"));
  if (data.packing == RowPacking::sentence_pair)
    broken.push_back(
        "objective plm does not support data.packing sentence_pair; choose segment_pair, or a packing of one segment");
  if (model.mem_len > 0 && (model.reuse_len < 1 || model.reuse_len > max_reuse))
    broken.push_back(words("model.mem_len ", model.mem_len,
                           " carries the first model.reuse_len tokens of a row to the next one, and that is ",
                           model.reuse_len, "; give it 1 to ", max_reuse,
                           " (data.max_seq_length - 5), or set mem_len to 0"));
  if (model.mem_len > 0 && data.packing != RowPacking::full && data.packing != RowPacking::segment_pair)
    broken.push_back(words("model.mem_len ", model.mem_len,
                           " needs rows that continue the rows of the step before, and data.packing is ", data.packing,
                           "; choose full or segment_pair, or set mem_len to 0"));
  if ((model.mem_len > 0 || data.packing == RowPacking::segment_pair) && data.short_seq_prob > 0)
    broken.push_back(words("rows of plm with mems or with pairs have a fixed length, and data.short_seq_prob is ",
                           shortest(data.short_seq_prob), "; set it to 0"));
}

}  // namespace

bool same_losses(const RunConfig& config, int64_t a, int64_t b) {
  return std::all_of(config.objectives.begin(), config.objectives.end(), [&](const ObjectiveConfig& objective) {
    const auto* rtd = std::get_if<RtdConfig>(&objective);
    const bool same_stage = !rtd || (a < rtd->generator_steps) == (b < rtd->generator_steps);
    return same_stage && std::visit([&](const auto& o) { return o.active(a) == o.active(b); }, objective);
  });
}

void validate(const RunConfig& c) {
  std::vector<std::string> broken;
  const auto& model = backbone_of(c.model);
  check_architecture(c.model, broken);
  check_model(model, broken);
  if (c.data.max_seq_length > model.max_input_length())
    broken.push_back(words("data.max_seq_length ", c.data.max_seq_length,
                           " is longer than model.max_position_embeddings ", model.max_position_embeddings,
                           model.positions_after_padding
                               ? words(" allows: ", model.max_input_length(), " (positions start at pad_token_id + 1)")
                               : "",
                           "; shorten the sequences or give the model more positions"));
  if (c.objectives.empty()) broken.push_back("objectives is empty; name at least one, for instance `- kind: mlm`");
  std::map<std::string, int> given;
  for (const auto& objective : c.objectives) {
    const std::string name = std::visit([](const auto& o) { return std::string(o.kind); }, objective);
    if (++given[name] == 2) broken.push_back("objective " + name + " is given twice; keep one of them");
    if (const auto* o = std::get_if<MlmConfig>(&objective)) check_maskings("mlm", *o, broken);
    if (const auto* o = std::get_if<RtdConfig>(&objective)) check_maskings("rtd.mlm", o->mlm, broken);
    if (const auto* o = std::get_if<MntpConfig>(&objective)) check_masking("mntp", *o, broken);
    for (const auto& masking : maskings_of({objective})) check_decay(name, masking, c.train.budget.steps, broken);
  }
  const auto kind = kind_of(c.model);
  for (const auto& objective : c.objectives) {
    const std::string name = std::visit([](const auto& o) { return std::string(o.kind); }, objective);
    const bool generates = is_generative(objective), permutes = name == PlmConfig::kind,
               shifts = name == MntpConfig::kind;
    if (const auto* streams = as<TwoStreamConfig>(c.model); permutes && streams)
      check_permuted_rows(c, *streams, broken);
    for (const auto& limit : limits_of(objective, c)) broken.push_back(limit);
    const bool uses_lm_head = generates || shifts;
    if (uses_lm_head && !has_transform(objective) && model.tie_word_embeddings &&
        model.embedding_width() != model.hidden_size)
      broken.push_back(words("objective ", name, " multiplies hidden states of width ", model.hidden_size,
                             " by the token embeddings of width ", model.embedding_width(),
                             "; set model.embedding_size to 0, tie_word_embeddings to false, or give ",
                             shifts ? name : "clm", " a transform"));
    if (model.prefix_lm && (!generates || name == "clm"))
      broken.push_back(words("objective ", name,
                             " has no input prefix, which model.prefix_lm needs; choose "
                             "pairs, or span_corruption with corruption: prefix_lm, or set prefix_lm to false"));
    if (permutes && !model.is_two_stream())
      broken.push_back(
          words("objective plm needs a query stream, which ", kind, " does not have; choose model kind: xlnet"));
    if (!permutes && model.is_two_stream())
      broken.push_back(
          words("objective ", name,
                " does not support xlnet, which predicts from its query stream; choose objective kind: plm"));
    if (permutes && given.size() > 1)
      broken.push_back(
          "objective plm makes its own rows and cannot be combined with other objectives; keep one of them");
    if (generates && !model.is_two_stream() && !model.is_generative())
      broken.push_back(words("objective ", name, " needs a generative model, ", kind,
                             " is bidirectional; choose gpt2, t5, bart, mbart, pegasus or transformer, or set "
                             "model.architecture: decoder"));
    if (!generates && !shifts && model.is_encoder_decoder())
      broken.push_back(
          words("objective ", name, " needs an encoder-only model, ", kind,
                " has a decoder; choose span_corruption, denoising, gap_sentences or pairs, or another model"));
    if (!generates && !permutes && !shifts && kind == "gpt2")
      broken.push_back(words("objective ", name,
                             " needs bidirectional attention, and gpt2 is causal; choose clm, or another model"));
    if (generates && c.data.short_seq_prob != 0 && c.data.short_seq_prob != DataConfig{}.short_seq_prob)
      broken.push_back(words("objective ", name, " makes rows of full length, and data.short_seq_prob is ",
                             shortest(c.data.short_seq_prob), "; set it to 0"));
    if (name == "pairs" && c.data.packing != RowPacking::document)
      broken.push_back(
          words("objective pairs makes one row per pair, and data.packing is ", c.data.packing, "; choose document"));
    if (name == "gap_sentences" && c.data.packing == RowPacking::full)
      broken.push_back(
          "objective gap_sentences masks whole sentences, and data.packing full cuts them; choose doc_sentences or "
          "full_sentences");
    if (name == "clm" && model.is_encoder_decoder())
      broken.push_back(words("objective clm has no input for the encoder of ", kind,
                             "; choose gpt2, or span_corruption with corruption: prefix_lm"));
    if (generates && given.size() > 1)
      broken.push_back(words("objective ", name,
                             " makes its own rows and cannot be combined with other objectives; keep one of them"));
  }
  if (given["rtd"] && given["mlm"])
    broken.push_back("rtd does its own masking (rtd.mlm) and cannot be combined with mlm; remove mlm");
  if (given["rtd"] && model.is_decoder())
    broken.push_back("rtd needs a bidirectional generator; set model.architecture: encoder");
  if (given["nsp"] && given["sop"]) broken.push_back("nsp and sop need different pairs of segments; keep one of them");
  const bool packed_pairs = is_pair(c.data.packing);
  for (const std::string pair : {"nsp", "sop", "data.packing"}) {
    const bool needs_pairs = pair == "data.packing" ? packed_pairs && !given["nsp"] && !given["sop"] : given[pair] > 0;
    if (!needs_pairs) continue;
    const auto subject = pair == "data.packing" ? words(pair, " ", c.data.packing) : pair,
               remedy = pair == "data.packing" ? "choose another packing" : "remove " + pair + " from the objectives";
    if (model.type_vocab_size < 2 || !model.token_types)
      broken.push_back(words(subject, " needs two segment types, ",
                             !model.token_types
                                 ? words(kind_of(c.model), " has none; choose another model")
                                 : words("model.type_vocab_size is ", model.type_vocab_size, "; raise it to 2"),
                             ", or ", remedy));
    if (c.data.max_seq_length < 5)
      broken.push_back(words(subject, " needs room for two segments, data.max_seq_length is ", c.data.max_seq_length,
                             "; raise it to at least 5"));
  }
  if (given["sbo"] && !given["mlm"])
    broken.push_back("sbo predicts the spans that mlm chooses; add mlm (like: spanbert) to the objectives");
  for (const auto& objective : c.objectives)
    if (const auto* o = std::get_if<RtdConfig>(&objective);
        o && o->generator_steps > 0 &&
        (o->replace_by != ReplaceBy::generator || o->generator_hidden_size != 1 || o->generator_layers != 1 ||
         o->tie != EmbeddingTie::none))
      broken.push_back(
          "rtd.generator_steps: the discriminator starts with the generator's weights, so both need the same shape and "
          "separate embeddings; set replace_by: generator, generator_hidden_size: 1, generator_layers: 1 and tie: "
          "none");
  // Some loss must be active in every step; the active losses change only at from_step and until_step.
  std::vector<int64_t> changes{0};
  const auto terms = [](const ObjectiveConfig& o) -> const ObjectiveTerms& {
    return std::visit([](const auto& t) -> const ObjectiveTerms& { return t; }, o);
  };
  for (const auto& objective : c.objectives) {
    const auto& t = terms(objective);
    changes.push_back(t.from_step), changes.push_back(t.until_step);
    if (t.until_step > 0 && t.until_step <= t.from_step)
      broken.push_back(words("objective ", std::visit([](const auto& o) { return o.kind; }, objective), ": until_step ",
                             t.until_step, " is not after from_step ", t.from_step, "; raise it, or set it to 0"));
  }
  std::sort(changes.begin(), changes.end());
  for (const int64_t step : changes)
    if (!c.objectives.empty() &&
        std::none_of(c.objectives.begin(), c.objectives.end(), [&](const auto& o) { return terms(o).active(step); })) {
      broken.push_back(words("no objective is active at step ", step,
                             "; let one begin earlier or end later (from_step, until_step)"));
      break;
    }
  const auto& budget = c.train.budget;
  if (budget.steps == 0 && budget.tokens == 0 && budget.minutes == 0)
    broken.push_back("train.budget has no limit; give steps, tokens or minutes");
  if (c.schedule.warmup >= 1 && budget.steps > 0 && c.schedule.warmup >= static_cast<double>(budget.steps))
    broken.push_back(words("schedule.warmup ", shortest(c.schedule.warmup), " is not shorter than train.budget.steps ",
                           budget.steps, "; shorten it"));
  if (c.init.probe && c.init.from.empty())
    broken.emplace_back("init.probe trains heads on the backbone of another run; name it with init.from");
  const auto& device = c.train.device;
  if (device != "cpu" && device != "cuda" && device.rfind("cuda:", 0) != 0)
    broken.push_back(words("train.device '", device, "' is unknown; use cpu, cuda or cuda:N"));
  const auto& evaluation = c.evaluation;
  if (broken.empty() && (!evaluation.objectives.empty() || evaluation.max_seq_length > 0 ||
                         evaluation.packing != EvaluationConfig{}.packing))
    broken = evaluation_errors(c);
  std::string text;
  for (const auto& line : broken) text += (text.empty() ? "" : "\n") + line;
  if (!text.empty()) throw ConfigError(text);
}

}  // namespace cloze
