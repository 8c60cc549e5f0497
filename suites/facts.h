#pragma once
// Suites of cloze facts (LAMA).
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct FactSuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<FactSuite> read_facts(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const FactSuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const FactSuite& suite, const SuiteOptions& options);

}  // namespace cloze
