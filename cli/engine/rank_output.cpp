#include "cli/engine/rank_output.h"

#include <fcntl.h>

#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "core/print.h"

namespace cloze {

namespace {

void send_output_to(int file) {
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
}

void write_text(int file, const std::string& text) {
  [[maybe_unused]] const auto written = write(file, text.data(), text.size());
}

}  // namespace

RankOutput::RankOutput(int64_t rank) : rank_(rank), started_at_(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3)) {
  send_output_to(early_.descriptor());
}

void RankOutput::open(const std::string& folder) {
  if (is_open_) return;
  const auto path = concat(folder, "/", rank_, ".log");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const int file = open_own(path, O_WRONLY | O_CREAT | O_APPEND);
  const auto reason = system_reason();
  send_output_to(file >= 0 ? file : started_at_);
  write_text(STDERR_FILENO, early_.text());
  is_open_ = true;
  if (file >= 0) {
    close(file);
    return;
  }
  set_log_prefix(concat("rank ", rank_, ": "));
  log_warning("processes", concat(path, " cannot be written (", reason, "); this process speaks here"));
}

void RankOutput::speak(const Failure& failure, bool for_all) const {
  if (is_open_) write_failure(failure, STDERR_FILENO);
  if (for_all) write_failure(failure, started_at_);
}

void write_failure(const Failure& failure, int file) {
  const auto* const kind = failure.exit_code > 128 ? "cloze: " : "cloze: error: ";
  write_text(file, concat(isatty(file) == 1 ? "\n" : "", kind, readable(failure.sentence), "\n"));
}

}  // namespace cloze
