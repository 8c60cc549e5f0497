#pragma once
// Suites of ages at which children know words.
#include <optional>
#include <string>

#include "suites/suite_result.h"

namespace cloze {

struct AcquisitionSuite {};

/// The suite at `path`; none for a file of another kind. Throws DataError.
std::optional<AcquisitionSuite> read_acquisition(const std::string& path);

/// Why a run cannot answer it; empty if it can.
std::string fault_of(const RunConfig& config, const AcquisitionSuite& suite, const SuiteOptions& options);

SuiteResult run_suite(const LoadedRun& run, const AcquisitionSuite& suite, const SuiteOptions& options);

}  // namespace cloze
