#pragma once
// held_out.json of a run: its last held-out losses sequence by sequence, which statistics over runs resample.
//
//   {"step", "measured", "losses": {NAME: {"sum": [E], "count": [E], "bytes": [E]}}, "xxh3"}
//
// `measured` describes objectives, rows, masks and tokens: losses of equal descriptions can be compared example by
// example. `bytes`, of the source text of the predicted tokens, is there for generative objectives, unless the tokens
// were prepared without them.
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
