#pragma once
// Words with their values, as text, as JSON and as a page.
#include <nlohmann/json_fwd.hpp>

#include "evaluation/attribution/faithfulness.h"

namespace cloze {

/// All that is said of one score.
struct ShownScore {
  const Explained& explained;
  const Attribution& attribution;
  const Faithfulness& faithfulness;
};

/// What a method promises, in words: `completeness error 0.02 %`; empty: nothing.
std::string check_words(AttributionMethod method, const Attribution& attribution);

/// In lines of at most `columns`: words that raise the score are green, those that lower it red, bold where they do so
/// by half of the most; without colours their values follow them. Words of less than a tenth of the most stay as they
/// are.
std::string text_of(const ShownScore& shown, AttributionMethod method, bool has_colours, int64_t columns);

/// {"item", "part"?, "label"?, "predicted", "gold"?, "method", "score", "baseline", "probability"?,
/// "completeness_error" | "efficiency_error" | "r_squared", "points"?, "words": [{"word", "text"?, "value"}],
/// "faithfulness"}
nlohmann::ordered_json json_of(const ShownScore& shown, AttributionMethod method);

/// A part of a page: the words over blue where they raise the score, over orange where they lower it.
std::string html_of(const ShownScore& shown, AttributionMethod method);

/// What an option is called: `integrated gradients`.
std::string words_of(AttributionMethod method);

/// What is explained, for a page and for the line before a text.
struct AttributionFacts {
  std::string run{};
  AttributionMethod method{};
  std::string baseline{};  ///< the token
  uint64_t items = 0;
};

/// One page without references to anything outside it. `body`: the parts of all scores.
std::string page_of(const AttributionFacts& facts, const std::string& body, const FaithfulnessMeans& means);

/// What the measures of faithfulness mean, in a sentence.
extern const char* const faithfulness_words;

}  // namespace cloze
