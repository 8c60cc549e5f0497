// TorchScript of generative networks: forward, and generation with a key-value cache, without Cloze or Python.
#include <torch/csrc/jit/runtime/graph_executor.h>

#include "core/error.h"
#include "interchange/torchscript/torchscript_methods.h"
#include "interchange/torchscript/torchscript_parts.h"

namespace cloze {

namespace {

/// The state of a decoder of so many blocks, from the keys and values of all of them, [L, B, S, 2 H C].
DecoderState unstacked(int64_t layers, const Tensor& past, const Tensor& memory = {}) {
  DecoderState state;
  for (int64_t i = 0; i < layers; ++i) {
    state.of_tokens.push_back(past.select(0, i));
    state.of_source.push_back(memory.defined() ? memory.select(0, i) : Tensor());
  }
  return state;
}

/// The language modeling head, or null.
Objective* lm_head_of(Network& network) {
  for (const auto& objective : network.objectives)
    if (objective->head_name() == "lm") return objective.get();
  return nullptr;
}

/// Shapes and example inputs for tracing a generative network.
struct Shapes {
  int64_t layers;  ///< blocks of the decoder
  int64_t width;   ///< of keys and values of a token in one block, 2 H C
  at::ScalarType dtype;
  Tensor ids = at::zeros({2, 4}, at::kLong), mask = at::ones({2, 4}, at::kBool),
         one = at::zeros({2, 1}, at::kLong);  ///< examples
};

Shapes shapes_of(Network& network) {
  const auto& c = transformer_of(network.model_config());
  const auto* encoder_decoder = c.is_encoder_decoder() ? as<EncoderDecoderConfig>(network.model_config()) : nullptr;
  const int64_t heads = encoder_decoder ? encoder_decoder->decoder_heads() : c.num_attention_heads;
  const int64_t blocks = c.num_hidden_layers * part_of<LayerSharing>(network.model_config()).inner_group_num;
  return {.layers = encoder_decoder ? encoder_decoder->decoder_layers() : blocks,
          .width = 2 * (c.d_kv > 0 ? c.d_kv * heads : c.hidden_size),
          .dtype = network.backbone->token_embedding().value().scalar_type()};
}

/// Logits of the last position.
Tensor last_logits(Network& network, const Tensor& hidden) {
  return lm_head_of(network)->outputs(*network.backbone, hidden)[0].second.select(1, -1);
}

/// Adds `_memory` (keys and values of the cross-attention) and `_decode` of an encoder-decoder model.
void trace_encoder_decoder(torch::jit::Module& module, Network& network, const Shapes& s) {
  auto& backbone = *network.backbone;
  const auto states = at::zeros({2, 4, backbone_of(network.model_config()).hidden_size}, s.dtype);
  add_traced(module, "_memory", {states}, {"memory"}, [&](const auto& in) {
    DecoderState state;
    backbone.decode(s.one, {in[0], {}}, state);
    return std::vector<Tensor>{at::stack(state.of_source)};
  });
  const auto past = at::zeros({s.layers, 2, 3, s.width}, s.dtype),
             cross = at::zeros({s.layers, 2, 4, s.width}, s.dtype);
  add_traced(module, "_decode", {s.one, s.mask, past, cross}, {"ids", "attention_mask", "past", "memory"},
             [&](const auto& in) {
               auto state = unstacked(s.layers, in[2], in[3]);
               const auto hidden = backbone.decode(in[0], {states, in[1]}, state);
               return std::vector<Tensor>{last_logits(network, hidden), at::stack(state.of_tokens)};
             });
}

/// Adds `_decode` of a decoder without encoder.
void trace_decoder(torch::jit::Module& module, Network& network, const Shapes& s) {
  const auto past = at::zeros({s.layers, 2, 3, s.width}, s.dtype);
  add_traced(module, "_decode", {s.one, s.mask, past}, {"ids", "attention_mask", "past"}, [&](const auto& in) {
    auto state = unstacked(s.layers, in[2]);
    const auto hidden = network.backbone->decode(in[0], {}, state, in[1]);
    return std::vector<Tensor>{last_logits(network, hidden), at::stack(state.of_tokens)};
  });
}

/// Adds `_traced`, and `_encode` if there is an encoder; returns the result of forward as TorchScript.
std::string trace_forward(torch::jit::Module& module, Network& network, const Shapes& s) {
  const auto& c = backbone_of(network.model_config());
  std::vector<std::string> names;
  const auto outputs = [&](const Inputs& in) {
    std::vector<Tensor> tensors;
    names.clear();
    for (const auto& [name, tensor] : network.outputs(in)) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    return tensors;
  };
  if (c.is_encoder_decoder()) {
    const auto& decoded = decodes_text(network) ? s.ids : s.one;
    add_traced(module, "_traced", {s.ids, s.mask, decoded}, {"input_ids", "attention_mask", "decoder_input_ids"},
               [&](const auto& in) {
                 return outputs({.input_ids = in[0], .attention_mask = in[1], .decoder_input_ids = in[2]});
               });
    add_traced(module, "_encode", {s.ids, s.mask}, {"input_ids", "attention_mask"}, [&](const auto& in) {
      return std::vector<Tensor>{network.backbone->encode({.input_ids = in[0], .attention_mask = in[1]}).states};
    });
  } else {
    add_traced(module, "_traced", {s.ids, s.mask, at::zeros({2}, at::kLong)}, {"input_ids", "attention_mask", "prefix"},
               [&](const auto& in) {
                 return outputs(
                     {.input_ids = in[0], .attention_mask = in[1], .prefix = takes_prefix(network) ? in[2] : Tensor()});
               });
  }
  return outputs_code(names);
}

Placeholders placeholders_of(const ModelConfig& model, const Shapes& s, const std::string& outputs) {
  const auto& c = backbone_of(model);
  const auto decoding = decoding_ids_of(model);
  const bool two = c.is_encoder_decoder();
  const auto length =
      two ? length_check(c, "input_ids.size(1)") +
                length_check(c, "max_new_tokens + 1", "max_new_tokens is too large; lower it")
          : length_check(c, "input_ids.size(1) + max_new_tokens",
                         "the text with max_new_tokens is too long; shorten it, or lower max_new_tokens");
  const auto first = decoding.decoder_starts_with_last_target
                         ? "torch.gather(input_ids, 1, torch.clamp(torch.sum(torch.ne(input_ids, @PAD@), 1, "
                           "keepdim=True) - 1, min=0))"
                         : "torch.full_like(input_ids[:, :1], @START@)";
  const auto fill = c.pad_token_id == 0 && c.eos_token_id >= 0 ? c.eos_token_id : c.pad_token_id;
  return {{"CHECK_TEXT", ids_check(c, "input_ids", "attention_mask") + length_check(c, "input_ids.size(1)")},
          {"CHECK_DECODER_IDS", ids_check(c, "decoder_ids") + length_check(c, "decoder_ids.size(1)")},
          {"CHECK_IDS", ids_check(c, "ids")},
          {"CHECK_PAST", length_check(c, "cache.size(2) + ids.size(1)")},
          {"CHECK_LENGTH", ids_check(c, "input_ids", "attention_mask") + length},
          {"BEGINNING", two ? torchscript::encoder_beginning : torchscript::decoder_beginning},
          {"READ_MASK", read_mask},
          {"STEP", two ? "self._decode(tokens, mask, cache, cross)" : "self._decode(tokens, mask, cache)"},
          {"MASK_AFTER", two ? "mask" : "torch.cat([mask, torch.ones_like(mask[:, :1])], 1)"},
          {"SEQUENCE_MASK", two ? "torch.ones_like(sequences, dtype=11)" : "mask"},
          {"FIRST_DECODER_ID", first},
          {"OUTPUTS", outputs},
          {"HIDDEN", std::to_string(c.hidden_size)},
          {"LAYERS", std::to_string(s.layers)},
          {"WIDTH", std::to_string(s.width)},
          {"DTYPE", s.dtype == at::kBFloat16 ? "15" : "6"},
          {"START", std::to_string(decoding.decoder_start_token_id)},
          {"FIRST_TOKEN", std::to_string(decoding.forced_bos_token_id)},
          {"LAST_TOKEN", std::to_string(decoding.forced_eos_token_id)},
          {"EOS", std::to_string(c.eos_token_id)},
          {"FILL", std::to_string(fill)},
          {"PAD", std::to_string(c.pad_token_id)}};
}

}  // namespace

bool takes_prefix(const Network& network) {
  return part_of<PrefixAttention>(network.model_config()).prefix_lm ||
         std::any_of(network.objectives.begin(), network.objectives.end(),
                     [](const auto& objective) { return objective->uses_prefix(); });
}

bool can_generate(Network& network) { return lm_head_of(network) && network.backbone->decodes(); }

torch::jit::Module generative_module(Network& network) {
  const at::NoGradGuard no_grad;
  auto module = mirror(network, "Cloze");
  const auto& c = backbone_of(network.model_config());
  const auto shapes = shapes_of(network);
  const auto placeholders = placeholders_of(network.model_config(), shapes, trace_forward(module, network, shapes));
  const auto define = [&](const char* method) { module.define(substituted(method, placeholders)); };
  if (c.is_encoder_decoder()) {
    define(torchscript::encoder_decoder_forward_method);
    define(torchscript::encode_method);
  } else {
    define(takes_prefix(network) ? torchscript::prefix_forward_method : torchscript::decoder_forward_method);
  }
  if (!can_generate(network)) return module;
  if (c.is_encoder_decoder()) {
    trace_encoder_decoder(module, network, shapes);
    define(torchscript::decode_method);
  } else {
    trace_decoder(module, network, shapes);
  }
  define(torchscript::apply_rules_method);
  define(torchscript::generate_method);
  return module;
}

}  // namespace cloze
