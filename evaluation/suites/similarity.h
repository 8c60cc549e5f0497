#pragma once
// Suites of word pairs with the similarity that people see between them, such as WordSim-353, SimVerb and MEN, and of
// sentence pairs, such as SICK and the STS benchmark.
//
// Figures: `spearman`, the rank correlation of the cosines of embeddings with the judgements, for each file, and as
// their mean for a folder; `mean_cosine` of the embeddings of all texts (Ethayarajh 2019), by which a small correlation
// may be explained. A file whose similarities or judgements are all equal has no correlation: it is NaN, not in the
// mean, and named by a note.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evaluation/suites/suite_files.h"
#include "evaluation/suites/suite_result.h"

namespace cloze {

/// Two words or sentences, and how similar people find them.
struct JudgedPair {
  std::string a, b;
  double judgement = 0;
  bool operator==(const JudgedPair&) const = default;
};
struct JudgedFile {
  std::string name;
  std::vector<JudgedPair> pairs{};
  std::vector<std::string> notes{};  ///< on pairs that are there twice
};
struct SimilaritySuite {
  std::vector<JudgedFile> files{};
};

/// Whether a line is two words and a number, separated by tabs or spaces.
bool is_judged_pair(std::string_view line);

/// The suite of words: a text file of `WORD WORD NUMBER` lines, separated by tabs or spaces, or a folder whose texts
/// are such files; none for files of another kind. Throws DataError with the place.
std::optional<SimilaritySuite> read_word_similarity(const SuiteFiles& files);

/// The suite of sentences: a table with tabs and the heads `sentence_A`, `sentence_B`, `relatedness_score` (SICK) or
/// `sentence1`, `sentence2`, `score` (STS), JSON lines with the latter, or a folder whose texts, or else whose JSON
/// lines, are such; none for files of another kind. Throws DataError with the place.
std::optional<SimilaritySuite> read_sentence_similarity(const SuiteFiles& files);

/// Why a run cannot answer it; empty if it can.
std::string reason_unsupported(const RunConfig& config, const SimilaritySuite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const SimilaritySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const SimilaritySuite& suite, const SuiteOptions& options);

}  // namespace cloze
