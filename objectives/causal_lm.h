#pragma once
// Causal language modelling.
#include "core/limits.h"
#include "objectives/terms.h"

namespace cloze {

/// Causal language modelling: each token is predicted from the tokens before it.
/// Source: Radford et al. 2018, section 3.1.
struct ClmConfig : NextTokenTerms {
  static constexpr const char* kind = "clm";
  bool continues_source() const { return true; }
};
template <class V>
void describe(V& v, ClmConfig& c) {
  describe_next_token(v, c);
  v("transform", c.transform,
    "the head has a dense layer, an activation and a norm before the output embedding, as in BertLMHeadModel; false = "
    "the output embedding only, as in GPT-2");
}

void check_limits(const ClmConfig& objective, const ObjectiveSetting& in, Limits& limits);
void expect_rows(const ClmConfig& objective, const ObjectiveSetting& in, std::vector<RowSizes>& rows);
std::string prediction_words(const ClmConfig& objective);

}  // namespace cloze
