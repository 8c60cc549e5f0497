#pragma once
// Suites of reading times.
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct ReadingSuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<ReadingSuite> read_reading(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const ReadingSuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const ReadingSuite& suite, const SuiteOptions& options);

}  // namespace cloze
