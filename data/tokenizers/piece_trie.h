#pragma once
// A trie of pieces: finds all pieces that are prefixes of a text in one pass.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace cloze {

/// A trie with its edges in one hash table.
class PieceTrie {
 public:
  void add(std::string_view piece, int32_t id) {
    uint32_t node = 0;
    for (const char c : piece) {
      if (2 * (nodes_.size() + 1) > edges_.size()) grow();
      auto& edge = edges_[find(key(node, c))];
      if (edge.to == 0) {
        edge = {key(node, c), static_cast<uint32_t>(nodes_.size())};
        nodes_.push_back(-1);
      }
      node = edge.to;
    }
    nodes_[node] = id;
  }

  /// Calls `f(bytes, id)` for each piece that is a prefix of `text`, the shortest first.
  template <class F>
  void each_prefix(std::string_view text, const F& f) const {
    if (edges_.empty()) return;
    uint32_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      node = edges_[find(key(node, text[i]))].to;
      if (node == 0) return;
      if (nodes_[node] >= 0) f(i + 1, nodes_[node]);
    }
  }

 private:
  struct Edge {
    uint32_t key = 0, to = 0;  // `to` 0: none, since no edge leads to the root
  };
  static uint32_t key(uint32_t node, char c) { return node << 8 | static_cast<uint8_t>(c); }
  size_t find(uint32_t wanted) const {
    size_t at = (wanted * 0x9E3779B1u) >> shift_;
    while (edges_[at].to != 0 && edges_[at].key != wanted) at = (at + 1) & (edges_.size() - 1);
    return at;
  }
  void grow() {
    const auto old = std::exchange(edges_, std::vector<Edge>(std::max<size_t>(1024, 2 * edges_.size())));
    shift_ = 32 - std::countr_zero(edges_.size());
    for (const auto& edge : old)
      if (edge.to != 0) edges_[find(edge.key)] = edge;
  }
  std::vector<Edge> edges_;
  std::vector<int32_t> nodes_{-1};
  int shift_ = 0;
};

}  // namespace cloze
