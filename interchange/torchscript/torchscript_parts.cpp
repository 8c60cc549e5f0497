#include "interchange/torchscript/torchscript_parts.h"

#include <torch/csrc/jit/frontend/tracer.h>

#include <algorithm>

#include "core/error.h"
#include "objectives/task_heads/published_heads.h"

namespace cloze {

torch::jit::Module mirror(const Layer& layer, const std::string& type) {
  torch::jit::Module module{c10::QualifiedName(type)};
  module.register_attribute("training", c10::BoolType::get(), false);
  for (const auto& [name, param] : layer.own_params())
    module.register_parameter(name, param.value(), /*is_buffer=*/false);
  for (const auto& [name, child] : layer.children()) {
    const bool number = std::isdigit(static_cast<unsigned char>(name[0])) != 0;
    module.register_module(name, mirror(*child, type + (number ? "_" : ".") + name));
  }
  return module;
}

void add_traced(torch::jit::Module& module, const std::string& name, const torch::jit::Stack& example,
                const std::vector<std::string>& arguments,
                const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& f) {
  at::NoGradGuard no_grad;
  const auto [state, result] = torch::jit::tracer::trace(
      example,
      [&](torch::jit::Stack in) -> torch::jit::Stack {
        std::vector<Tensor> inputs;
        for (const auto& value : in) inputs.push_back(value.toTensor());
        std::vector<c10::IValue> tensors;
        for (const auto& tensor : f(inputs)) tensors.emplace_back(tensor);
        return {c10::ivalue::Tuple::create(std::move(tensors))};
      },
      [](const torch::autograd::Variable&) { return std::string(); }, /*strict=*/true, /*force_outplace=*/false,
      &module, arguments);
  module.type()->addMethod(module._ivalue()->compilation_unit()->create_function(
      c10::QualifiedName(*module.type()->name(), name), state->graph));
}

std::string outputs_code(const std::vector<std::string>& names) {
  std::string code;
  for (size_t i = 0; i < names.size(); ++i) code += concat(i ? ", " : "{", '"', names[i], "\": out[", i, "]");
  return code + "}";
}

std::string ids_check(const BackboneConfig& model, const std::string& name, const std::string& mask) {
  const auto max_id = std::to_string(model.vocab_size - 1);
  std::string code = "    assert " + name + ".dim() == 2 and " + name + ".numel() > 0, \"ids are [batch, length]\"\n" +
                     "    assert int(torch.min(" + name + ")) >= 0 and int(torch.max(" + name + ")) <= " + max_id +
                     ", \"ids of this model are from 0 to " + max_id + "\"\n";
  if (!mask.empty())
    code += "    if " + mask + " is not None:\n        assert " + mask + ".size() == " + name + ".size(), \"" + mask +
            " must have the shape of " + name + "\"\n";
  return code;
}

std::string length_check(const BackboneConfig& model, const std::string& length, const std::string& message) {
  if (model.max_input_length() == BackboneConfig::unlimited_length) return "";
  return concat("    assert ", length, " <= ", model.max_input_length(), ", \"this model accepts at most ",
                model.max_input_length(), " tokens: ", message, "\"\n");
}

std::string substituted(std::string text, const Placeholders& placeholders) {
  for (const auto& [name, value] : placeholders) {
    const auto marked = "@" + name + "@";
    for (size_t at = 0; (at = text.find(marked, at)) != std::string::npos; at += value.size())
      text.replace(at, marked.size(), value);
  }
  return text;
}

std::optional<HeadUse> head_use_of(const Network& network) {
  for (const auto& objective : network.objectives)
    for (const auto& head : task_heads())
      if (objective->name() == task_head_of(head)->name()) return task_head_of(head)->use();
  return {};
}

bool decodes_text(const Network& network) {
  return backbone_of(network.model_config()).is_encoder_decoder() && head_use_of(network).has_value();
}

bool is_exported_as_generative(const Network& network) {
  const auto& model = network.model_config();
  return backbone_of(model).is_encoder_decoder() || default_architecture(model) == Architecture::decoder ||
         takes_prefix(network);
}

}  // namespace cloze
