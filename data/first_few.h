#pragma once
// Lists in a message.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace cloze {

/// The first few of a list: `a, b, c and 4 more`.
inline std::string first_few(const std::vector<std::string>& all, std::string_view between = ", ") {
  constexpr size_t most = 3;
  std::string list;
  for (size_t i = 0; i < std::min(all.size(), most); ++i) list += (i > 0 ? std::string(between) : "") + all[i];
  return all.size() > most ? concat(list, " and ", all.size() - most, " more") : list;
}

}  // namespace cloze
