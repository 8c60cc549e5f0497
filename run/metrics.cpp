#include "run/metrics.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <utility>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "core/open_file.h"
#include "run/tensorboard.h"

namespace cloze {

using nlohmann::json;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

Metrics::Metrics(const std::string& run, uint64_t keep_bytes, int64_t step) : path_(run + "/metrics.jsonl") {
  out_ = open_own(path_, "ab");
  require<CheckpointError>(out_ != nullptr, path_, ": cannot be written (", system_reason(), ")");
  struct stat info{};
  const bool is_longer = fstat(fileno(out_), &info) == 0 && static_cast<uint64_t>(info.st_size) > keep_bytes;
  const bool is_cut = !is_longer || ftruncate(fileno(out_), static_cast<off_t>(keep_bytes)) == 0;
  const auto reason = system_reason();
  if (!is_cut) std::fclose(out_);
  require<CheckpointError>(is_cut, path_, ": cannot be cut to what its checkpoint knows (", reason, ")");
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  events_path_ = concat(run, "/events.out.tfevents.", static_cast<int64_t>(now()), ".", host);
  add_event(file_version_event(now()));
  add_event(session_start_event(now(), step));
}

Metrics::~Metrics() {
  if (out_) {
    write_pending();
    std::fclose(out_);
  }
  if (events_) std::fclose(events_);
}

void Metrics::add_event(const std::string& event) {
  const auto record = tf_record(event);
  if (events_)
    std::fwrite(record.data(), 1, record.size(), events_);
  else if (!events_path_.empty())
    first_events_ += record;
}

void Metrics::open_events() {
  if (events_path_.empty()) return;
  events_ = open_own(std::exchange(events_path_, ""), "ab");
  if (events_) std::fwrite(first_events_.data(), 1, first_events_.size(), events_);
  first_events_.clear();
}

void Metrics::scalar(int64_t step, const std::string& tag, double value) {
  open_events();
  add_event(scalar_event(now(), step, tag, static_cast<float>(value)));
}

void Metrics::describe(const std::string& config, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string indented;  // TensorBoard renders Markdown, in which this is code
  std::istringstream lines(config);
  for (std::string line; std::getline(lines, line);) indented += "    " + line + "\n";
  add_event(text_event(now(), "config", indented));
  add_event(hparams_event(now(), values));
}

void Metrics::write_pending() {
  while (!pending_.empty()) {
    const auto written = ::write(fileno(out_), pending_.data(), pending_.size());
    if (written <= 0) {
      if (!std::exchange(lost_, true))
        log_warning("train", concat(path_, " cannot be written (", system_reason(),
                                    "); the run continues, and its lines are written when that is possible again"));
      return;
    }
    const auto count = static_cast<size_t>(written);
    const auto end = pending_.rfind('\n', count - 1);
    begun_ = end == std::string::npos ? begun_ + count : count - end - 1;
    pending_.erase(0, count);
  }
}

void Metrics::write(const json& row) {
  pending_ += json_text(row) + "\n";
  write_pending();
  const int64_t step = row.at("step");
  for (const auto& [key, value] : row.items()) {
    if (value.is_number() && key != "step") scalar(step, key, value.get<double>());
    if (!value.is_object()) continue;
    for (const auto& [inner, number] : value.items())
      if (number.is_number()) scalar(step, key + "/" + inner, number.get<double>());
  }
  if (events_) std::fflush(events_);
}

uint64_t Metrics::sync() {
  write_pending();
  fsync(fileno(out_));
  struct stat info{};
  const bool removed = fstat(fileno(out_), &info) != 0 || info.st_nlink == 0;
  if (!removed) return static_cast<uint64_t>(info.st_size) - begun_;
  if (!std::exchange(lost_, true))
    log_warning("train", concat(path_, " was removed while the run writes it; its lines so far are lost"));
  return 0;
}

}  // namespace cloze
