#pragma once
// Whether a list has a value; C++23 has std::ranges::contains.
#include <algorithm>
#include <iterator>

namespace cloze {

template <class List, class Value>
bool contains(const List& list, const Value& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

}  // namespace cloze
