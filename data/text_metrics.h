#pragma once
// Metrics of generated texts (hypotheses) against one or several references each.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

/// F-measures, 0 to 1; of several texts their mean.
struct Rouge {
  double rouge1 = 0, rouge2 = 0, rougeL = 0, rougeLsum = 0;
};

/// How many n-grams of one order there are, and how many match.
struct NgramCounts {
  double hypothesis = 0, reference = 0, both = 0;
};

/// What the metrics of a corpus are made of: sums over its texts.
struct TextSums {
  std::array<NgramCounts, 4> words{};       ///< of BLEU; `reference` is that of the closest length, of 1-grams alone
  std::array<NgramCounts, 6> characters{};  ///< of chrF, by the reference with the best one
  Rouge rouge{};                            ///< each by the best reference
  double exact = 0;                         ///< texts that equal a reference after trimming white space
  double texts = 0;

  /// Adds those of other texts, so many times.
  void add(const TextSums& other, double times = 1);
};

/// Those of one text. Throws std::invalid_argument without references.
TextSums text_sums(const std::string& hypothesis, const std::vector<std::string>& references);
/// Those of texts with one reference each. Throws std::invalid_argument for lists of different lengths.
TextSums text_sums(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references);

struct Bleu {
  double score = 0;                       ///< 0 to 100
  std::array<double, 4> precisions = {};  ///< of 1-grams to 4-grams, 0 to 100, smoothed
  double brevity_penalty = 1;
  double hypothesis_length = 0, reference_length = 0;  ///< tokens
};

/// BLEU of a corpus (Papineni et al. 2002, section 2.3), with the tokenization of mteval-v13a and the smoothing of
/// sacrebleu (Post 2018). An n-gram matches as often as the reference has it that has it most.
Bleu bleu(const TextSums& sums);
/// chrF2 of a corpus, 0 to 100: n-grams of up to six code points without white space (Popović 2015), averaged
/// as in sacrebleu.
double chrf(const TextSums& sums);
/// ROUGE-1, ROUGE-2, ROUGE-L and, over the lines of texts, ROUGE-Lsum (Lin 2004, sections 2, 3.1 and 3.2) with beta =
/// 1, on lower-cased words of a-z and 0-9, without stemming: those of rouge_score, of several references by its
/// score_multi.
Rouge rouge(const TextSums& sums);
/// Share of hypotheses that equal a reference after trimming white space.
double exact_match(const TextSums& sums);

/// How sacrebleu says what its numbers are of: `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`.
/// `references`: of each text; 0: their number varies.
std::string bleu_signature(size_t references);
std::string chrf_signature(size_t references);

}  // namespace cloze
