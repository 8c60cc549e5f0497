#include "data/tokenizers/bpe_join.h"

#include <algorithm>

namespace cloze {

namespace {

struct Candidate {
  int32_t rank, left, id;
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }  // the top of a heap is its maximum
};

}  // namespace

void join_pairs(const BpeMerges& merges, std::vector<BpeSymbol>& symbols) {
  thread_local std::vector<Candidate> heap;
  heap.clear();
  const auto add = [&](int32_t left) {
    if (left < 0 || symbols[static_cast<size_t>(left)].after < 0) return false;
    const auto& first = symbols[static_cast<size_t>(left)];
    const auto merge = merges.find(bpe_pair(first.id, symbols[static_cast<size_t>(first.after)].id));
    if (merge == merges.end()) return false;
    heap.push_back({merge->second.rank, left, merge->second.id});
    return true;
  };
  const auto offer = [&](int32_t left) {
    if (add(left)) std::push_heap(heap.begin(), heap.end());
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) add(static_cast<int32_t>(i));
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const auto best = heap.back();
    heap.pop_back();
    auto& left = symbols[static_cast<size_t>(best.left)];
    if (left.joined || left.after < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.after)];
    const auto found = merges.find(bpe_pair(left.id, right.id));
    if (found == merges.end() || found->second.id != best.id) continue;  // stale: its neighbour has changed
    left.id = best.id;
    left.end = std::max(left.end, right.end);
    left.after = right.after;
    right.joined = true;
    if (right.after >= 0) symbols[static_cast<size_t>(right.after)].before = best.left;
    offer(left.before);
    offer(best.left);
  }
}

}  // namespace cloze
