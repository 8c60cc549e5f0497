#pragma once
// Suites of sentence pairs with the similarity that people see between them, such as SICK and the STS benchmark.
//
// Figures: `spearman`, the rank correlation of the cosines of embeddings with the judgements, for each file, and as
// their mean for a folder; `mean_cosine` of the embeddings of all sentences.
#include <optional>
#include <string>
#include <vector>

#include "suites/judged_pairs.h"
#include "suites/suite_result.h"

namespace cloze {

struct SentenceSimilaritySuite {
  std::vector<JudgedFile> files{};
};

/// The suite in a table with tabs and the heads `sentence_A`, `sentence_B`, `relatedness_score` (SICK) or `sentence1`,
/// `sentence2`, `score` (STS), in JSON lines with the latter, or in a folder whose texts_in, or else whose JSON lines,
/// are such; none for a file of another kind. Throws DataError with the place.
std::optional<SentenceSimilaritySuite> read_sentence_similarity(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const SentenceSimilaritySuite& suite, const SuiteOptions& options);

/// Throws DataError for a text that is longer than the model; computes nothing.
void check_fit(const LoadedRun& run, const SentenceSimilaritySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const SentenceSimilaritySuite& suite, const SuiteOptions& options);

}  // namespace cloze
