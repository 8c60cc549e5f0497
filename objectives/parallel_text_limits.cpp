#include "objectives/limits.h"
#include "objectives/parallel_text.h"

namespace cloze {

std::string prediction_words(const PairsConfig&) { return "the target of each source"; }

void check_limits(const PairsConfig& c, const ObjectiveSetting& in, Limits& limits) {
  require_generative(c.kind, c, in, limits);
  limits.forbid(in.data.packing != RowPacking::document, "objective pairs makes one row per pair, and data.packing is ",
                in.data.packing, "; choose document");
}

}  // namespace cloze
