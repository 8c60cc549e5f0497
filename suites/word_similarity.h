#pragma once
// Suites of similarity of words.
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct WordSimilaritySuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<WordSimilaritySuite> read_word_similarity(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const WordSimilaritySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const WordSimilaritySuite& suite, const SuiteOptions& options);

}  // namespace cloze
