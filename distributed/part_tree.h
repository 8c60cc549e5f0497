#pragma once
// The parts of a step, and the one order in which their gradients are added, whichever process has which of them.
#include <cstdint>
#include <vector>

#include "core/part_range.h"

namespace cloze {

/// Where the parts of a node of the tree divide into those of its two children: after the largest power of two that
/// leaves some.
inline int64_t middle_of(PartRange node) {
  int64_t left = 1;
  while (2 * left < node.size()) left *= 2;
  return node.begin + left;
}

/// The largest subtrees of `node` that lie in `own`, from left to right.
inline std::vector<PartRange> subtrees_in(PartRange node, PartRange own) {
  if (own.end <= node.begin || own.begin >= node.end) return {};
  if (own.begin <= node.begin && node.end <= own.end) return {node};
  const int64_t middle = middle_of(node);
  auto nodes = subtrees_in({node.begin, middle}, own);
  for (const auto& right : subtrees_in({middle, node.end}, own)) nodes.push_back(right);
  return nodes;
}

/// The sum of a subtree: what `given(node)` has of it, or else the sum of its left child and of its right one, which
/// `add(left, right)` adds to the left. Children are asked for from left to right.
template <class Given, class Add>
auto sum_of_tree(PartRange node, const Given& known_sum, const Add& add) ->
    typename decltype(known_sum(node))::value_type {
  if (auto known = known_sum(node)) return *known;
  const int64_t middle = middle_of(node);
  auto left = sum_of_tree({node.begin, middle}, known_sum, add);
  auto right = sum_of_tree({middle, node.end}, known_sum, add);
  add(left, right);
  return left;
}

}  // namespace cloze
