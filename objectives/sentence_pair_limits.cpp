#include "objectives/limits.h"
#include "objectives/sentence_pair.h"

namespace cloze {

namespace {

void check_pair(const std::string& kind, const ObjectiveSetting& in, Limits& limits) {
  require_bidirectional(kind.c_str(), in, limits);
  require_segments(kind, "remove " + kind + " from the objectives", in, limits);
}

}  // namespace

void check_limits(const NspConfig& c, const ObjectiveSetting& in, Limits& limits) { check_pair(c.kind, in, limits); }

void check_limits(const SopConfig& c, const ObjectiveSetting& in, Limits& limits) {
  check_pair(c.kind, in, limits);
  limits.forbid(in.has<NspConfig>(), "nsp and sop need different pairs of segments; keep one of them");
}

}  // namespace cloze
