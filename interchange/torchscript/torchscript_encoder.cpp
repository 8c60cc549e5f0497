// TorchScript of encoders and two-stream networks: forward, without Cloze or Python.
#include "interchange/torchscript/torchscript_parts.h"
#include "models/attention/kinds.h"
#include "objectives/task_heads/published_heads.h"

namespace cloze {

namespace {

// ---- Methods in TorchScript. @NAME@ is a placeholder; one of several lines has a line of its own. ----

constexpr const char* read_types = R"(    types = torch.zeros_like(input_ids)
    if token_type_ids is not None:
        types = token_type_ids)";

constexpr const char* forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None,
            token_type_ids: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
@READ_MASK@
@READ_TYPES@
    out = self._traced(input_ids, mask, types)
    return @OUTPUTS@
)";

/// Of window attention. The order of the arguments is that of Hugging Face's classes.
constexpr const char* window_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None,
            global_attention_mask: Optional[Tensor] = None,
            token_type_ids: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_TEXT@
@READ_MASK@
@READ_TYPES@
@CHECK_GLOBAL@    everywhere = @GLOBAL_TOKENS@
    if global_attention_mask is not None:
        everywhere = torch.ne(global_attention_mask, 0)
    out = self._traced(input_ids, mask, types, everywhere)
    return @OUTPUTS@
)";

/// Outputs of the content stream at all positions.
constexpr const char* two_stream_forward_method = R"(
def forward(self, input_ids: Tensor, attention_mask: Optional[Tensor] = None,
            token_type_ids: Optional[Tensor] = None, perm_mask: Optional[Tensor] = None,
            target_mapping: Optional[Tensor] = None) -> Dict[str, Tensor]:
@CHECK_IDS@
@READ_MASK@
@READ_TYPES@
    visible = torch.ones([input_ids.size(0), input_ids.size(1), input_ids.size(1)], dtype=11, device=input_ids.device)
    if perm_mask is not None:
        visible = torch.eq(perm_mask, 0)
@READ_TARGETS@
    out = self._content(input_ids, mask, types, visible)
    return @OUTPUTS@
)";

/// With target_mapping, the outputs of the query stream at its target positions.
constexpr const char* read_targets = R"(    if target_mapping is not None:
        targets = torch.argmax(target_mapping, -1)
        targets = torch.where(torch.eq(torch.sum(target_mapping, -1), 0), torch.full_like(targets, -1), targets)
        out = self._query(input_ids, mask, types, visible, targets)
        return @OUTPUTS@)";

/// Of the head of a task that reads the last token of a text, which target positions may lack.
constexpr const char* refuse_targets =
    R"(    assert target_mapping is None, "the head of this model reads whole texts: leave target_mapping out")";

/// Which tokens are global where a window has a head of a task follows from what is asked.
struct GlobalRule {
  bool is_first = false;  ///< without global_attention_mask
  std::string check{};    ///< a line of TorchScript; empty: none is needed
};

GlobalRule global_rule(const WindowAttention& window, std::optional<HeadUse> use) {
  const auto must_mark = [](const std::string& tokens) {
    return "    assert global_attention_mask is not None, \"mark the tokens of " + tokens +
           " in global_attention_mask\"\n";
  };
  if (use == HeadUse::spans) return {.check = must_mark("the question")};
  if (use == HeadUse::candidates) return {.check = must_mark("the candidate")};
  return {.is_first = window.global_tokens == GlobalTokens::first || (use && reads_texts(*use))};
}

/// The outputs of a network, and their names.
struct NamedOutputs {
  Network& network;
  std::vector<std::string> names{};

  std::vector<Tensor> of(const Inputs& inputs) {
    std::vector<Tensor> tensors;
    names.clear();
    for (const auto& [name, tensor] : network.outputs(inputs)) {
      names.push_back(name);
      tensors.push_back(tensor);
    }
    return tensors;
  }
};

torch::jit::Module single_stack_module(Network& network) {
  auto module = mirror(network, "Cloze");
  const auto& model = transformer_of(network.model_config());
  const auto* window = std::get_if<WindowAttention>(&*model.attention);
  NamedOutputs outputs{network};
  const auto ids = at::zeros({2, 4}, at::kLong);
  torch::jit::Stack example{ids, at::ones({2, 4}, at::kBool), ids};
  std::vector<std::string> arguments{"input_ids", "attention_mask", "token_type_ids"};
  if (window) {
    auto global = at::zeros({2, 4}, at::kBool);
    global[0][0] = true;
    example.emplace_back(global);
    arguments.emplace_back("global_attention_mask");
  }
  add_traced(module, "_traced", example, arguments, [&](const std::vector<Tensor>& in) {
    return outputs.of({.input_ids = in[0],
                       .attention_mask = in[1],
                       .token_type_ids = in[2],
                       .global_attention_mask = window ? in[3] : Tensor()});
  });
  const auto rule = window ? global_rule(*window, head_use_of(network)) : GlobalRule{};
  module.define(substituted(
      window ? window_forward_method : forward_method,
      {{"CHECK_TEXT", ids_check(model, "input_ids", "attention_mask") + length_check(model, "input_ids.size(1)")},
       {"READ_MASK", read_mask},
       {"READ_TYPES", read_types},
       {"CHECK_GLOBAL", rule.check},
       {"GLOBAL_TOKENS", rule.is_first ? "torch.eq(torch.cumsum(torch.ones_like(input_ids), 1), 1)"
                                       : "torch.zeros_like(input_ids, dtype=11)"},
       {"OUTPUTS", outputs_code(outputs.names)}}));
  return module;
}

torch::jit::Module two_stream_module(Network& network) {
  auto module = mirror(network, "Cloze");
  NamedOutputs outputs{network};
  const auto ids = at::zeros({2, 4}, at::kLong), mask = at::ones({2, 4}, at::kBool),
             visible = at::ones({2, 4, 4}, at::kBool), targets = at::ones({2, 2}, at::kLong);
  const auto run = [&](const std::vector<Tensor>& in) {
    return outputs.of({.input_ids = in[0],
                       .attention_mask = in[1],
                       .token_type_ids = in[2],
                       .visible = in[3],
                       .target_positions = in.size() > 4 ? in[4] : Tensor()});
  };
  add_traced(module, "_content", {ids, mask, ids, visible},
             {"input_ids", "attention_mask", "token_type_ids", "visible"}, run);
  const auto use = head_use_of(network);
  const bool takes_targets = !use || !reads_texts(*use);
  if (takes_targets)
    add_traced(module, "_query", {ids, mask, ids, visible, targets},
               {"input_ids", "attention_mask", "token_type_ids", "visible", "target_positions"}, run);
  module.define(substituted(two_stream_forward_method, {{"CHECK_IDS", ids_check(backbone_of(network.model_config()),
                                                                                "input_ids", "attention_mask")},
                                                        {"READ_MASK", read_mask},
                                                        {"READ_TYPES", read_types},
                                                        {"READ_TARGETS", takes_targets ? read_targets : refuse_targets},
                                                        {"OUTPUTS", outputs_code(outputs.names)}}));
  return module;
}

}  // namespace

torch::jit::Module encoder_module(Network& network) {
  return backbone_of(network.model_config()).is_two_stream() ? two_stream_module(network)
                                                             : single_stack_module(network);
}

}  // namespace cloze
