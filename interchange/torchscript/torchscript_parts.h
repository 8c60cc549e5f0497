#pragma once
// Building blocks of TorchScript export: modules, traced methods, and methods written in TorchScript.
#include <torch/csrc/jit/api/module.h>

#include "objectives/network.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

/// The module tree of a layer with the same tensors, so that the tracer finds them as parameters.
torch::jit::Module mirror(const Layer& layer, const std::string& type);

/// Adds a method `name` to `module`, traced from `f` on the inputs `example`; f returns tensors, the method a tuple of
/// them.
void add_traced(torch::jit::Module& module, const std::string& name, const torch::jit::Stack& example,
                const std::vector<std::string>& arguments,
                const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f);

/// TorchScript assertions that the ids in the variable `name` are in the vocabulary, and that `mask` has their shape.
std::string ids_check(const BackboneConfig& model, const std::string& name, const std::string& mask = "");

/// A TorchScript assertion that the expression `length` is at most the maximum length of the model; `message` says what
/// is too long and what to do. Empty for a model without a maximum length.
std::string length_check(const BackboneConfig& model, const std::string& length,
                         const std::string& message = "a text is too long; shorten it");

/// Values of the placeholders @NAME@ in TorchScript templates.
using Placeholders = std::vector<std::pair<std::string, std::string>>;
/// The variable `mask` of a text: true = may be attended to; everything without attention_mask.
inline constexpr const char* read_mask = R"(    mask = torch.ones_like(input_ids, dtype=11)
    if attention_mask is not None:
        mask = torch.ne(attention_mask, 0))";
/// Replaces the placeholders of a template, in order; a value may contain placeholders that come later.
std::string substituted(std::string text, const Placeholders& placeholders);

/// A TorchScript dictionary of the elements of the tuple `out`, by these names.
std::string outputs_code(const std::vector<std::string>& names);

/// The module of an encoder, or of a two-stream network: its forward alone.
torch::jit::Module encoder_module(Network& network);

/// True for a decoder whose `forward` takes the prefix of each row that is bidirectional.
bool takes_prefix(const Network& network);

/// What the head of a task gives outputs for; none where the network has no such head.
std::optional<HeadUse> head_use_of(const Network& network);

/// True for the head of a task on an encoder-decoder, whose decoder reads the whole text too.
bool decodes_text(const Network& network);

/// True if the exported file has `generate`: the network has a next-token head and a key-value cache.
bool can_generate(Network& network);

/// The module of a decoder, with or without an encoder. It has forward, which returns hidden states if there is no
/// head; encode, if there is an encoder; generate, if can_generate(); decode, if both.
torch::jit::Module generative_module(Network& network);
/// True if the model is exported with generative_module(): an encoder-decoder model, one of a family of decoders, or a
/// decoder with a prefix.
bool is_exported_as_generative(const Network& network);

}  // namespace cloze
