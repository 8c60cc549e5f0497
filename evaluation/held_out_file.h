#pragma once
// What a held-out evaluation measures by, and the content of held_out.json (run/held_out_record.h).
#include <string>
#include <vector>

#include "evaluation/evaluate.h"

namespace cloze {

/// A description of the held-out evaluation of a resolved config: losses are compared only if their descriptions are
/// equal.
std::string evaluation_protocol(const RunConfig& config, const TokenStore& store);

/// The content of held_out.json.
std::string held_out_file(int64_t step, const std::string& measured, const std::vector<HeldOut>& losses,
                          const std::vector<Measure>& measures, int64_t batch_size);

}  // namespace cloze
