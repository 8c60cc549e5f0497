#pragma once
// Span corruption.
#include "objectives/terms.h"

namespace cloze {

/// What is done to a text, and what is written of it.
enum class Corruption { spans, iid, drop, mass, bert, deshuffle, prefix_lm };
constexpr auto choices(Corruption) {
  using enum Corruption;
  return std::array{Choice{spans, "spans", "runs of tokens, each after a sentinel"},
                    Choice{iid, "iid", "tokens one by one"},
                    Choice{drop, "drop", "tokens one by one, without sentinels"},
                    Choice{mass, "mass", "tokens masked, the whole text written"},
                    Choice{bert, "bert", "the same with a tenth of them random"},
                    Choice{deshuffle, "deshuffle", "all tokens in another order"},
                    Choice{prefix_lm, "prefix_lm", "the start read, the rest written"}};
}
/// What is missing is marked by sentinels.
inline bool uses_sentinels(Corruption c) { return c == Corruption::spans || c == Corruption::iid; }

/// Span corruption: an encoder reads a text with holes, the decoder writes what is missing; with the other objectives
/// that its paper compares. Source: Raffel et al. 2020, sections 3.1.4 and 3.3 (arXiv 1910.10683);
/// google-research/text-to-text-transfer-transformer, preprocessors.py.
struct SpanCorruptionConfig : NextTokenTerms {
  static constexpr const char* kind = "span_corruption";
  std::string like;
  Corruption corruption = Corruption::spans;
  double noise_density = 0.15;
  double mean_noise_span_length = 3;
};
template <class V>
void describe(V& v, SpanCorruptionConfig& c) {
  v.like(c, "corruption as in that code", {{"t5", [](SpanCorruptionConfig& m) {
                                              m.corruption = Corruption::spans, m.noise_density = 0.15,
                                              m.mean_noise_span_length = 3;
                                            }}});
  describe_next_token(v, c);
  v("corruption", c.corruption, "what is done to the text");
  v("noise_density", c.noise_density, "share of the tokens that is hidden; of spans at least one token",
    in_range(0, 1, open_end));
  v("mean_noise_span_length", c.mean_noise_span_length, "corruption spans: mean length of a run [tokens]",
    in_range(1, 1000));
}

}  // namespace cloze
