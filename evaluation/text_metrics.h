#pragma once
// Measures of generated text against one reference each. Each throws std::invalid_argument for lists of different
// lengths.
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

/// F-measures, 0 to 1, each the mean of the examples' own.
struct Rouge {
  double rouge1 = 0, rouge2 = 0, rougeL = 0;
};

/// BLEU of a corpus (Papineni et al. 2002, section 2.3), with the tokens of mteval-v13a and the smoothing of sacrebleu
/// (Post 2018).
Bleu bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
/// chrF2 of a corpus, 0 to 100: code points without white space in n-grams up to six (Popović 2015), as sacrebleu
/// averages them.
double chrf(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
/// ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004, sections 2 and 3.1) with beta = 1, of words of a-z and 0-9 in lower case,
/// without stemming.
Rouge rouge(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);
/// Share of hypotheses that equal their references but for white space around them.
double exact_match(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);

}  // namespace cloze
