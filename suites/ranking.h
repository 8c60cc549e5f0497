#pragma once
// Suites of minimal pairs and completions.
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct RankingSuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<RankingSuite> read_ranking(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const RankingSuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const RankingSuite& suite, const SuiteOptions& options);

}  // namespace cloze
