#include "study/execution/runner.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "core/contains.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/print.h"
#include "core/text.h"

namespace cloze {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t cell_width = 8;

/// A text of exactly this width.
std::string fitted(const std::string& text, size_t width) { return padded(cut(text, width), width); }

/// The value of a run that is done; one that is judged later has none yet.
std::string value_text(const RunStatus& status) {
  return std::isfinite(status.value) ? fixed(status.value, std::abs(status.value) < 10 ? 4 : 2) : "done";
}

/// ` (held-out mlm loss)`: what the values of finished runs are.
std::string value_names(const std::vector<RunStatus>& statuses) {
  std::vector<std::string> names;
  for (const auto& status : statuses)
    if (status.state == RunState::done && std::isfinite(status.value) && !contains(names, status.metric))
      names.push_back(status.metric);
  return names.empty() ? "" : concat(" (", listed(names), ")");
}

std::string cell(const RunStatus& status) {
  switch (status.state) {
    case RunState::waiting:
      return status.progress > 0 ? "paused" : ".";
    case RunState::failed:
      return "failed";
    case RunState::stale:
      return "stale";
    case RunState::done:
      return value_text(status);
    case RunState::running:
      break;
  }
  return fixed(100 * status.progress, 0) + " %";
}

/// Seconds that the rest needs at the pace so far; NaN before there is one.
double seconds_left(const std::vector<RunStatus>& statuses) {
  double used = 0, progress = 0, running = 0;
  for (const auto& status : statuses) {
    used += status.seconds;
    progress += status.progress;
    running += status.state == RunState::running;
  }
  const double total = static_cast<double>(statuses.size());
  return progress > 0 ? used / progress * (total - progress) / std::max(running, 1.0) : std::nan("");
}

double field_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(name)) return std::atof(line.c_str() + name.size()) * 1024;
  return 0;
}

}  // namespace

double resident_bytes(int64_t pid) { return field_of(("/proc/" + std::to_string(pid) + "/status").c_str(), "VmHWM:"); }

double available_memory() { return field_of("/proc/meminfo", "MemAvailable:"); }

std::string progress_table(const Plan& plan, const std::vector<RunStatus>& statuses, int64_t columns) {
  size_t name_width = 4;
  for (const auto& arm : plan.arms) name_width = std::max(name_width, width_of(arm.name));
  name_width = std::min<size_t>(name_width, static_cast<size_t>(std::max<int64_t>(8, columns / 3)));
  const auto room = std::max<int64_t>(1, (columns - static_cast<int64_t>(name_width) - 1) / (cell_width + 1));
  const auto shown = std::min<int64_t>(room, static_cast<int64_t>(plan.seeds.size()));
  std::string table = fitted("seed", name_width);
  for (int64_t s = 0; s < shown; ++s)
    table += " " + fitted(std::to_string(plan.seeds[static_cast<size_t>(s)]), cell_width);
  table += "\n";
  for (size_t a = 0; a < plan.arms.size(); ++a) {
    table += fitted(plan.arms[a].name, name_width);
    for (size_t s = 0; s < static_cast<size_t>(shown); ++s)
      table += " " + fitted(cell(statuses[s * plan.arms.size() + a]), cell_width);
    table += "\n";
  }
  int64_t done = 0, failed = 0;
  for (const auto& status : statuses) {
    done += status.state == RunState::done;
    failed += status.state == RunState::failed;
  }
  const double left = seconds_left(statuses);
  table += concat(done, " of ", statuses.size(), " runs done", value_names(statuses),
                  failed > 0 ? concat(", ", failed, " failed") : "",
                  std::isfinite(left) && left > 0 ? ", about " + duration(left) + " left" : "", "\n");
  return table;
}

ProgressView::ProgressView(const Plan& plan, size_t selected)
    : plan_(plan), terminal_(isatty(STDERR_FILENO) == 1), selected_(selected), start_(Clock::now()) {}

void ProgressView::show(bool last) {
  if (!terminal_ || log_level() == LogLevel::quiet) return;
  if (!last && Clock::now() - last_ < std::chrono::milliseconds(500)) return;
  last_ = Clock::now();
  statuses_.resize(plan_.runs.size());
  for (size_t i = 0; i < statuses_.size(); ++i)
    if (statuses_[i].state != RunState::done) statuses_[i] = status_of(plan_, plan_.runs[i]);
  const auto table = progress_table(plan_, statuses_, static_cast<int64_t>(terminal_columns(STDERR_FILENO, 80)));
  std::string text;
  const bool is_last = said_ == interrupts().said;  // and not a sentence that a signal has said since
  if (drawn_ > 0 && is_last) text = "\033[" + std::to_string(drawn_) + "A\033[J";  // over the last table
  text += printable(table);
  std::fwrite(text.data(), 1, text.size(), stderr);
  drawn_ = std::count(table.begin(), table.end(), '\n');
  said_ = interrupts().said;
}

void ProgressView::note(const PlannedRun& run, const std::string& failure) {
  ++ended_;
  const auto name = run.name();
  const auto status = status_of(plan_, run);
  if (!failure.empty()) {
    drawn_ = 0;
    log_warning("study", concat(name, ": failed: ", failure, " (", log_path(run), ")"));
    return;
  }
  if (terminal_) return;
  const auto metric = std::isfinite(status.value) ? status.metric + " " : "";
  log_info("study", concat(name, ": ", metric, value_text(status), " in ", duration(status.seconds), ", ", ended_,
                           " of ", selected_));
}

}  // namespace cloze
