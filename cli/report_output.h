#pragma once
// Options of verbs that report, and where their reports go.
#include <CLI/CLI.hpp>
#include <string>

#include "study/report/report.h"

namespace cloze {

struct ReportOptions {
  std::optional<ReportFormat> format{};
  std::string output{};
  bool json = false;
  std::vector<std::string> read{};  ///< files that the report does not replace
};

void add_report_options(CLI::App& verb, ReportOptions& options, const std::string& output);

/// Writes a report to the file that was named, whose path is printed, else to standard output. A page that nobody
/// redirects becomes `page`.
void put_report(const StudyReport& report, const ReportOptions& options, const std::string& page);

/// Columns of the terminal.
int64_t terminal_columns();

}  // namespace cloze
