#pragma once
// Suites of word analogies.
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct AnalogySuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<AnalogySuite> read_analogies(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const AnalogySuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const AnalogySuite& suite, const SuiteOptions& options);

}  // namespace cloze
