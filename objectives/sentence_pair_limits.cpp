#include "core/text.h"
#include "objectives/limits.h"
#include "objectives/sentence_pair.h"

namespace cloze {

namespace {

void check_pair(const std::string& kind, const ObjectiveSetting& in, Limits& limits) {
  require_bidirectional(kind.c_str(), in, limits);
  require_segments(kind, "remove " + kind + " from the objectives", in, limits);
}

}  // namespace

std::string prediction_words(const NspConfig& c) {
  return words("whether segment B follows A, as it does in ", in_percent(1 - c.random_next_prob), " of the pairs");
}

std::string prediction_words(const SopConfig& c) {
  return words("whether two segments are swapped, as they are in ", in_percent(c.swap_prob), " of the pairs");
}

void check_limits(const NspConfig& c, const ObjectiveSetting& in, Limits& limits) { check_pair(c.kind, in, limits); }

void check_limits(const SopConfig& c, const ObjectiveSetting& in, Limits& limits) {
  check_pair(c.kind, in, limits);
  limits.forbid(in.has<NspConfig>(), "nsp and sop need different pairs of segments; keep one of them");
}

}  // namespace cloze
