#pragma once
// The section `adaptation` of a run: how much of a network that begins with another one is trained.
#include <string>
#include <variant>
#include <vector>

#include "core/config/config_rule.h"
#include "core/config/kinds.h"

namespace cloze {

struct FullAdaptation {
  static constexpr const char* kind = "full";
  static constexpr const char* words = "all weights, but for what init.probe and freeze.layers keep";
};
template <class V>
void describe(V&, FullAdaptation&) {}

/// Source: Hu et al. 2021 (arXiv 2106.09685); its scale Kalajdzievski 2023 (arXiv 2312.03732).
struct LoraAdaptation {
  static constexpr const char* kind = "lora";
  static constexpr const char* words = "products of two thin matrices, added to matrices that stay";
  int64_t rank = 8;
  double alpha = 8;
  bool rank_stabilized = false;
  double dropout = 0;
  std::vector<std::string> targets{"query", "value"};
};
template <class V>
void describe(V& v, LoraAdaptation& c) {
  v("rank", c.rank, "rows of the first thin matrix, and columns of the second", in_range(1, 65536));
  v("alpha", c.alpha, "the product is multiplied by alpha / rank", in_range(0, 1e6, open_end));
  v("rank_stabilized", c.rank_stabilized, "it is multiplied by alpha / sqrt(rank) instead (rsLoRA)");
  v("dropout", c.dropout, "of what the first thin matrix multiplies", in_range(0, 1, open_end));
  v("targets", c.targets,
    "layers that have such a product: query, key, value, qkv (all three in one product), attention_output, "
    "intermediate, gate, output, and others that a refusal lists");
}

/// Source: Ben Zaken et al. 2022 (arXiv 2106.10199).
struct BitfitAdaptation {
  static constexpr const char* kind = "bitfit";
  static constexpr const char* words = "biases alone, those of norms among them";
};
template <class V>
void describe(V&, BitfitAdaptation&) {}

/// What is trained of the network that a run begins with. Heads of tasks are trained in every kind, and so is a pooler
/// below one.
struct AdaptationConfig : std::variant<FullAdaptation, LoraAdaptation, BitfitAdaptation> {
  using variant::variant;
  bool is_full() const { return std::holds_alternative<FullAdaptation>(*this); }
};
inline void keep_shared(const AdaptationConfig&, AdaptationConfig&) {}

/// `adaptation: {kind: lora}`.
struct AdaptationSection {
  AdaptationConfig kind{};
};
template <class V>
void describe(V& v, AdaptationSection& c) {
  v.kind("kind", c.kind, "what is trained of the weights of init.from");
}

}  // namespace cloze
