#pragma once
// The texts of labels as files have them.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace cloze {

/// Texts by number, in the order in which they were first read: what labels are until their order is known.
class LabelPool {
 public:
  int64_t number(std::string_view text) {
    const auto found = numbers_.find(std::string(text));
    if (found != numbers_.end()) return found->second;
    texts_.emplace_back(text);
    return numbers_.emplace(texts_.back(), size() - 1).first->second;
  }
  const std::string& text(int64_t number) const { return texts_[static_cast<size_t>(number)]; }
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace cloze
