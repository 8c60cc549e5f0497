#include "objectives/task_heads/published_heads.h"

#include <cmath>
#include <string>

#include "models/families/families.h"

namespace cloze {

namespace {

template <class... Families>
bool is_one_of(const std::string& kind) {
  return ((kind == Families::kind) || ...);
}

/// The models of BART's code: dropout, dense, tanh, dropout over the decoder's state at the last end token.
bool is_like_bart(const std::string& kind) { return is_one_of<BartConfig, MBartConfig, PegasusConfig>(kind); }

/// The token that stands for a text where its head reads one. In a decoder the first one is the same for every text.
ClassToken class_token_of(const ModelConfig& model) {
  const auto& m = transformer_of(model);
  if (as<EncoderDecoderConfig>(model)) return ClassToken::last_end;
  return m.is_two_stream() || m.is_decoder() ? ClassToken::last : ClassToken::first;
}

/// Dropout, dense, activation, dropout, output.
PublishedHead dense_head(Activation activation, double dropout) {
  return {.dropout_before = true, .dense = true, .activation = activation, .dropout = dropout};
}

/// The head of a text in transformers.
PublishedHead head_of_texts(const ModelConfig& model, HeadUse use) {
  const auto& m = transformer_of(model);
  const auto kind = kind_of(model);
  const double hidden = m.hidden_dropout_prob;
  const bool choice = use == HeadUse::candidates;
  if (is_one_of<BertConfig>(kind)) return {.pooler = true, .dropout = hidden};
  if (is_one_of<AlbertConfig>(kind)) return {.pooler = true, .dropout = 0.1};
  if (choice && is_one_of<RobertaConfig, LongformerConfig, BigBirdConfig>(kind))
    return {.pooler = true, .dropout = hidden};
  if (choice && is_one_of<ElectraConfig>(kind)) return {.dense = true, .activation = Activation::gelu, .dropout = 0.1};
  if (is_one_of<ElectraConfig>(kind)) return dense_head(Activation::gelu, hidden);
  if (is_one_of<BigBirdConfig>(kind)) return dense_head(m.hidden_act, hidden);
  if (is_one_of<DistilBertConfig>(kind)) return {.dense = true, .activation = Activation::relu, .dropout = 0.2};
  if (is_one_of<XlnetConfig>(kind)) return {.dense = true, .dropout = 0.1};
  if (is_one_of<T5Config>(kind) || is_like_bart(kind)) return dense_head(Activation::tanh, 0);
  if (is_one_of<Gpt2Config>(kind)) return {.output_bias = false};
  return dense_head(Activation::tanh, hidden);
}

/// The head of tags in transformers: dropout and output.
PublishedHead head_of_tags(const ModelConfig& model) {
  const auto kind = kind_of(model);
  if (is_one_of<AlbertConfig, Gpt2Config>(kind)) return {.dropout = 0.1};
  if (is_one_of<XlnetConfig, T5Config>(kind) || is_like_bart(kind)) return {};
  return {.dropout = transformer_of(model).hidden_dropout_prob};
}

/// The head of spans in transformers: the output alone, in most families.
PublishedHead head_of_spans(const ModelConfig& model) {
  const auto kind = kind_of(model);
  if (is_one_of<DistilBertConfig>(kind)) return {.dropout = 0.1};
  return {.block = is_one_of<BigBirdConfig>(kind)};
}

/// The dense layer, activation and norm of ModernBERT, which all its heads begin with.
PublishedHead head_of_modernbert(const TransformerConfig& m) {
  return {.dense = true, .dense_bias = m.classifier_bias, .activation = Activation::gelu, .norm = true};
}

/// The first weights of transformers.
void set_first_weights(PublishedHead& head, const ModelConfig& model) {
  const auto& m = transformer_of(model);
  const double by_width = 1 / std::sqrt(static_cast<double>(m.hidden_size));
  head.dense_range = head.output_range = m.initializer_range;
  if (kind_of(model) == T5Config::kind) head.dense_range = head.output_range = by_width;
  if (kind_of(model) != ModernBertConfig::kind) return;
  head.weights = FirstWeights::truncated;
  head.dense_range = m.initializer_range / std::sqrt(2.0 * static_cast<double>(m.num_hidden_layers));
  head.output_range = by_width;
}

/// Changes the head of transformers into that of the authors.
void make_original(PublishedHead& head, const ModelConfig& model, HeadUse use) {
  const auto kind = kind_of(model);
  if (is_one_of<BertConfig, AlbertConfig>(kind)) {
    head.weights = FirstWeights::truncated;
    head.dense_range = head.output_range = 0.02;
    head.dropout = 0.1;  // whatever the network has
  } else if (is_one_of<ElectraConfig>(kind)) {
    head = {.token = head.token, .dropout = 0.1, .weights = FirstWeights::glorot};
  } else if (is_one_of<RobertaConfig>(kind) || is_like_bart(kind)) {
    head.weights = FirstWeights::torch_linear;
    head.dropout = 0;
  } else if (is_one_of<Gpt2Config>(kind) && reads_texts(use)) {
    head.output_bias = true;
    head.dropout = 0.1;
  }
}

/// The head of BabyLM's program, the same for every family; an encoder-decoder's first token is the start token of its
/// decoder.
PublishedHead head_of_babylm(ClassToken token) {
  return {.token = token,
          .dense = true,
          .activation = Activation::gelu,
          .plain_norms = true,
          .dropout = 0.1,
          .weights = FirstWeights::torch_linear};
}

}  // namespace

PublishedHead published_head(const ModelConfig& model, HeadUse use, HeadDesign design) {
  PublishedHead head;
  if (kind_of(model) == ModernBertConfig::kind)
    head = head_of_modernbert(transformer_of(model));
  else if (use == HeadUse::tokens)
    head = head_of_tags(model);
  else if (use == HeadUse::spans)
    head = head_of_spans(model);
  else
    head = head_of_texts(model, use);
  head.token = class_token_of(model);
  set_first_weights(head, model);
  switch (design) {
    case HeadDesign::huggingface:
      break;
    case HeadDesign::original:
      make_original(head, model, use);
      break;
    case HeadDesign::mean:
      head.mean = true;
      break;
    case HeadDesign::first:
      head.token = ClassToken::first;
      break;
    case HeadDesign::last:
      head.token = ClassToken::last;
      break;
    case HeadDesign::babylm:
    case HeadDesign::babylm_left:
      return head_of_babylm(ClassToken::first);
    case HeadDesign::babylm_pooled:
      return head_of_babylm(head.token);
  }
  return head;
}

}  // namespace cloze
