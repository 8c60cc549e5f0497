#include "cli/report_output.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/print.h"

namespace cloze {

namespace {

/// The format that was named, else that of the file name.
ReportFormat format_of(const ReportOptions& options) {
  if (options.json) return ReportFormat::json;
  if (options.format) return *options.format;
  const auto suffix = std::filesystem::path(options.output).extension().string();
  if (suffix == ".html" || suffix == ".htm") return ReportFormat::html;
  if (suffix == ".md") return ReportFormat::markdown;
  if (suffix == ".csv") return ReportFormat::csv;
  if (suffix == ".tex") return ReportFormat::latex;
  if (suffix == ".json") return ReportFormat::json;
  return ReportFormat::text;
}

std::string formatted(const StudyReport& report, ReportFormat format, int64_t columns) {
  switch (format) {
    case ReportFormat::text:
      return to_text(report, columns);
    case ReportFormat::markdown:
      return to_markdown(report);
    case ReportFormat::csv:
      return to_csv(report);
    case ReportFormat::latex:
      return to_latex(report);
    case ReportFormat::html:
      return to_html(report);
    case ReportFormat::json:
      break;
  }
  return json_text(to_json(report)) + "\n";
}

}  // namespace

int64_t terminal_columns() { return static_cast<int64_t>(terminal_columns(STDOUT_FILENO, 100)); }

void add_report_options(CLI::App& verb, ReportOptions& options, const std::string& output) {
  add_choice<ReportFormat>(
      verb, "--format", options.format,
      "format of the report (default: by the ending of " + output.substr(0, output.find(',')) + ", else text)");
  verb.add_option(output, options.output,
                  "file to write, - for standard output (default: standard output; a page on a terminal: report.html)");
  verb.add_flag("--json", options.json, json_help);
}

void put_report(const StudyReport& report, const ReportOptions& options, const std::string& page) {
  const auto format = format_of(options);
  const bool on_screen = options.output.empty() && isatty(1) == 1;
  const auto path = format == ReportFormat::html && on_screen ? page : options.output == "-" ? "" : options.output;
  if (!path.empty()) check_output_file("--output", path, options.read);
  const auto text = formatted(report, format, path.empty() ? terminal_columns() : 100);
  if (path.empty()) {
    return format == ReportFormat::text ? print_text(text) : print_data(text);
  }
  write_atomic(path, text);
  print_data(path + "\n");
}

}  // namespace cloze
