#pragma once
// The rules between the options of a config, collected so that all mistakes are reported at once.
#include <string>
#include <vector>

#include "core/error.h"

namespace cloze {

/// The rules that a config breaks, one sentence each: the value, its key and a remedy.
class Limits {
 public:
  /// Adds the sentence of a rule that is `broken`.
  template <class... Parts>
  void forbid(bool broken, const Parts&... sentence) {
    if (broken) broken_.push_back(concat(sentence...));
  }
  const std::vector<std::string>& broken() const { return broken_; }

 private:
  std::vector<std::string> broken_;
};

}  // namespace cloze
