#pragma once
// Metrics of generated texts (hypotheses) against one reference each. All throw std::invalid_argument for lists of
// different lengths.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

struct Bleu {
  double score = 0;                       ///< 0 to 100
  std::array<double, 4> precisions = {};  ///< of 1-grams to 4-grams, 0 to 100, smoothed
  double brevity_penalty = 1;
  uint64_t hypothesis_length = 0, reference_length = 0;  ///< tokens
};

/// F-measures, 0 to 1, averaged over the examples.
struct Rouge {
  double rouge1 = 0, rouge2 = 0, rougeL = 0;
};

/// BLEU of a corpus (Papineni et al. 2002, section 2.3), with the tokenization of mteval-v13a and the smoothing of
/// sacrebleu (Post 2018).
Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
/// chrF2 of a corpus, 0 to 100: n-grams of up to six code points without white space (Popović 2015), averaged
/// as in sacrebleu.
double chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
/// ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004, sections 2 and 3.1) with beta = 1, on lower-cased words of a-z and 0-9,
/// without stemming.
Rouge rouge(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
/// Share of hypotheses that equal their references after trimming white space.
double exact_match(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);

}  // namespace cloze
