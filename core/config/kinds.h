#pragma once
// Variants of structs that each name their kind.
#include <concepts>
#include <string>
#include <variant>

namespace cloze {

/// The name of the kind that a variant holds.
template <class V>
std::string kind_in(const V& variant) {
  return std::visit([](const auto& held) { return std::string(held.kind); }, variant);
}

/// What a variant holds, as one of its bases or itself; null: it holds another kind.
template <class Part, class V>
const Part* part_in(const V& variant) {
  return std::visit(
      []<class Held>(const Held& held) -> const Part* {
        if constexpr (std::derived_from<Held, Part>)
          return &held;
        else
          return nullptr;
      },
      variant);
}
template <class Part, class V>
Part* part_in(V& variant) {
  return const_cast<Part*>(part_in<Part>(static_cast<const V&>(variant)));
}

/// Gives `to` the values of `from` of each of `Parts` that both have.
template <class... Parts, class V>
void keep_parts(const V& from, V& to) {
  const auto keep = [&]<class Part>(const Part* had, Part* has) {
    if (had && has) *has = *had;
  };
  (keep(part_in<Parts>(from), part_in<Parts>(to)), ...);
}

/// Makes `Kind` what the variant holds. What the kinds share, as keep_shared(from, to) of the variant says, stays.
template <class Kind, class V>
Kind& choose(V& variant) {
  if (!std::holds_alternative<Kind>(variant)) {
    const V before = variant;
    variant.template emplace<Kind>();
    keep_shared(before, variant);
  }
  return std::get<Kind>(variant);
}

}  // namespace cloze
