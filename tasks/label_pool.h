#pragma once
// The texts of labels as files have them.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/error.h"

namespace cloze {

/// Texts by number, in the order in which they were first read: what labels are until their order is known. Throws
/// DataError for so many that they are none.
class LabelPool {
 public:
  int64_t number(std::string_view text) {
    const auto found = numbers_.find(std::string(text));
    if (found != numbers_.end()) return found->second;
    bytes_ += text.size();
    require<DataError>(bytes_ <= most_bytes, "the labels have more than ", most_bytes >> 20,
                       " MiB; `data.label` names no column of labels");
    texts_.emplace_back(text);
    return numbers_.emplace(texts_.back(), size() - 1).first->second;
  }
  const std::string& text(int64_t number) const { return texts_[static_cast<size_t>(number)]; }
  int64_t size() const { return static_cast<int64_t>(texts_.size()); }

 private:
  static constexpr uint64_t most_bytes = uint64_t{64} << 20;
  uint64_t bytes_ = 0;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int64_t> numbers_;
};

}  // namespace cloze
