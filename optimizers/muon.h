#pragma once
#include "core/config/config_rule.h"
#include "optimizers/rule.h"

namespace cloze {

/// The factor on a step of Muon.
enum class MuonScale { rows, adamw };
constexpr auto choices(MuonScale) {
  return std::array{
      Choice{MuonScale::rows, "rows", "sqrt(max(1, rows / columns)) (Jordan et al. 2024)"},
      Choice{MuonScale::adamw, "adamw",
             "0.2 sqrt(max(rows, columns)), by which steps are as long as those of AdamW (Liu et al. 2025)"}};
}

/// Source: Jordan et al. 2024; the scale `adamw`: Liu et al. 2025, section 2.2 (arXiv 2502.16982).
struct Muon {
  static constexpr const char* kind = "muon";
  static constexpr const char* words =
      "the step of a matrix is made orthogonal by five Newton-Schulz iterations; for a group of matrices";
  static constexpr bool matrices_alone = true;
  double momentum = 0.95;
  MuonScale scale = MuonScale::rows;

  static std::vector<Moment> moments(const MatrixShape&) { return {{"momentum", Extent::elements}}; }
  void update(const optimizers::Step& step, const optimizers::Target& target) const;
  void update(const optimizers::Step& step, const optimizers::DeviceBuffers& buffers) const;
};
template <class V>
void describe(V& v, Muon& c) {
  v("momentum", c.momentum, "decay of Nesterov's momentum", in_range(0, 1, open_end));
  v("scale", c.scale, "the factor on the step of a matrix");
}

}  // namespace cloze
