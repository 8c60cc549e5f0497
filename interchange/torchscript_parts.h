#pragma once
// What makes TorchScript modules of networks. Used by torchscript.cpp and torchscript_generation.cpp.
#include <torch/csrc/jit/api/module.h>

#include "objectives/network.h"

namespace cloze {

/// The module tree of a layer, holding the same tensors, so that the tracer knows them.
torch::jit::Module mirror(const Layer& layer, const std::string& type);

/// Gives `module` a method `name` that computes what `f` computes from `example`; f returns tensors, the method a tuple
/// of them.
void add_traced(torch::jit::Module& module, const std::string& name, const torch::jit::Stack& example,
                const std::vector<std::string>& arguments,
                const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f);

/// Lines of TorchScript that stop with a sentence where the ids called `name` are none of the model's, or `mask` has
/// not their shape.
std::string ids_check(const BackboneConfig& model, const std::string& name, const std::string& mask = "");

/// A line of TorchScript that stops with a sentence where `length`, an expression, is more than the model's tokens;
/// `what` says what is too long and how to mend it. Nothing for a model that reads any length.
std::string length_check(const BackboneConfig& model, const std::string& length,
                         const std::string& what = "a text is too long; shorten it");

/// Facts of a model that stand for names in TorchScript.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// The dictionary of a method that returns the tuple `out` by these names.
std::string outputs_code(const std::vector<std::string>& names);

/// True where the exported file has `generate`: the network scores the next token and keeps what it read.
bool can_generate(Network& network);

/// The module of a decoder, with an encoder or alone: forward; encode of an encoder; where it can generate, generate,
/// and decode of a decoder that reads an encoder. Without a head forward gives hidden states.
torch::jit::Module generative_module(Network& network);

}  // namespace cloze
