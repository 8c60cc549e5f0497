#pragma once
// Suites of similarity of sentences.
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct SentenceSimilaritySuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<SentenceSimilaritySuite> read_sentence_similarity(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const SentenceSimilaritySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const SentenceSimilaritySuite& suite, const SuiteOptions& options);

}  // namespace cloze
