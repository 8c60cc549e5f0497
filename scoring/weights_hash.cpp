#include "scoring/weights_hash.h"

#include <xxhash.h>

#include "core/fingerprint.h"
#include "run/config_io.h"
#include "scoring/forward.h"
#include "scoring/rows.h"

namespace cloze {

namespace {

/// Raised when the rows or the head of a score change.
constexpr int rules = 3;

uint64_t hash_of_weights(const Network& network) {
  uint64_t hash = 0;
  for (const auto& [name, param] : collect_params(network)) {
    const auto values = param.value().detach().to(at::kCPU).contiguous();
    hash = XXH3_64bits_withSeed(name.data(), name.size(), hash);
    hash = XXH3_64bits_withSeed(values.data_ptr(), values.nbytes(), hash);
  }
  return hash;
}

}  // namespace

std::string scores_name(const LoadedRun& run, ScoringForm form, int64_t stride, Precision precision) {
  RunConfig described;
  described.model = run.config.model;
  described.objectives = run.config.objectives;
  return hash_hex(concat("rules ", rules, "\nweights ", hash_of_weights(*run.network), "\ntokenizer ",
                         run.tokenizer.fingerprint(), "\nform ", name_of(form), "\nstride ", stride, "\nrow ",
                         row_length(run, static_cast<size_t>(stride)),
                         computes_in_bf16(*run.network, precision) ? "\nbf16\n" : "\n", to_yaml(described)));
}

}  // namespace cloze
