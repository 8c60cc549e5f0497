#pragma once
// Suites of word pairs with the similarity that people see between them, such as WordSim-353, SimVerb and MEN.
//
// Figures: `spearman`, the rank correlation of the cosines of embeddings with the judgements, for each file, and as
// their mean for a folder; `mean_cosine` of the embeddings of all words (Ethayarajh 2019), by which a small correlation
// may be explained.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "suites/judged_pairs.h"
#include "suites/suite_result.h"

namespace cloze {

struct WordSimilaritySuite {
  std::vector<JudgedFile> files{};
};

/// Whether a line is two words and a number, separated by tabs or spaces.
bool is_judged_pair(std::string_view line);

/// The suite at `path`: a text file of `WORD WORD NUMBER` lines, separated by tabs or spaces, or a folder whose
/// texts_in are such files; none for a file of another kind. Throws DataError with the place.
std::optional<WordSimilaritySuite> read_word_similarity(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const WordSimilaritySuite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const WordSimilaritySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const WordSimilaritySuite& suite, const SuiteOptions& options);

}  // namespace cloze
