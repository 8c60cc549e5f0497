#pragma once
// The rules: the update of an optimizer, or of a group of its parameters, is one of them.
#include <variant>

#include "core/config/kinds.h"
#include "optimizers/adafactor.h"
#include "optimizers/adamw.h"
#include "optimizers/lamb.h"
#include "optimizers/lion.h"
#include "optimizers/muon.h"

namespace cloze {

/// The update of an optimizer step.
struct UpdateRule : std::variant<AdamW, Lamb, Adafactor, Muon, Lion> {
  using variant::variant;
};
inline void keep_shared(const UpdateRule& from, UpdateRule& to) { keep_parts<AdamMoments>(from, to); }

inline std::vector<Moment> moments_of(const UpdateRule& rule, const MatrixShape& shape) {
  return std::visit([&](const auto& kind) { return kind.moments(shape); }, rule);
}
/// The numbers that a rule keeps of a matrix.
inline int64_t moment_numbers(const UpdateRule& rule, const MatrixShape& shape) {
  int64_t sum = 0;
  for (const auto& moment : moments_of(rule, shape)) sum += numel(moment, shape);
  return sum;
}
/// The rule is for a group of matrices alone.
inline bool updates_matrices_alone(const UpdateRule& rule) {
  return std::visit([]<class Kind>(const Kind&) { return requires { Kind::matrices_alone; }; }, rule);
}

}  // namespace cloze
