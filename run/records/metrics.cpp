#include "run/records/metrics.h"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"

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

namespace {

uint32_t crc32c(const std::string& data) {
  uint32_t crc = ~0u;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
  }
  return ~crc;
}

template <class T>
std::string raw(T value) {
  std::string text(sizeof value, '\0');
  std::memcpy(text.data(), &value, sizeof value);
  return text;
}

std::string masked_crc(const std::string& data) {
  const uint32_t crc = crc32c(data);
  return raw(static_cast<uint32_t>((crc >> 15 | crc << 17) + 0xA282EAD8));
}

std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  return text + static_cast<char>(value);
}

/// A length-delimited field of a protobuf message.
std::string field(int number, const std::string& content) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

/// A field of type double.
std::string number_field(int number, double value) {
  return varint(static_cast<uint64_t>(number) << 3 | 1) + raw(value);
}

/// An event at step 0 with one Summary.Value: `content` under a tag, for a plugin.
std::string plugin_event(double wall_time, const std::string& tag, const std::string& plugin,
                         const std::string& plugin_content, const std::string& content) {
  std::string data = field(1, plugin);  // SummaryMetadata.PluginData {plugin_name = 1, content = 2}
  if (!plugin_content.empty()) data += field(2, plugin_content);
  const auto value = field(1, tag) + content + field(9, field(1, data));  // Summary.Value {tag = 1, metadata = 9}
  return number_field(1, wall_time) + field(5, field(1, value));
}

/// A google.protobuf.Value {number_value = 2, string_value = 3, bool_value = 4}.
std::string hparam_value(const std::string& text) {
  if (text == "true" || text == "false") return "\x20" + varint(text == "true");
  double value = 0;
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end) return number_field(2, value);
  return field(3, text);
}

}  // namespace

std::string tf_record(const std::string& payload) {
  const auto length = raw(static_cast<uint64_t>(payload.size()));
  return length + masked_crc(length) + payload + masked_crc(payload);
}

std::string file_version_event(double wall_time) { return number_field(1, wall_time) + field(3, "brain.Event:2"); }

std::string session_start_event(double wall_time, int64_t step) {
  return "\x09" + raw(wall_time) + "\x10" + varint(static_cast<uint64_t>(step)) +
         field(7, "\x08\x01");  // SessionLog {status = START}
}

std::string scalar_event(double wall_time, int64_t step, const std::string& tag, float value) {
  const std::string summary_value = field(1, tag) + "\x15" + raw(value);  // Summary.Value {tag = 1, simple_value = 2}
  return "\x09" + raw(wall_time) + "\x10" + varint(static_cast<uint64_t>(step)) + field(5, field(1, summary_value));
}

std::string text_event(double wall_time, const std::string& tag, const std::string& markdown) {
  // TensorProto {dtype = 1: DT_STRING, tensor_shape = 2 with one dimension of size 1, string_val = 8}
  const auto tensor = "\x08\x07" + field(2, field(2, "\x08\x01")) + field(8, markdown);
  return plugin_event(wall_time, tag + "/text_summary", "text", "", field(8, tensor));
}

std::string hparams_event(double wall_time, const std::vector<std::pair<std::string, std::string>>& hparams) {
  std::string session;  // SessionStartInfo {hparams = 1 (a map), start_time_secs = 5}
  for (const auto& [name, value] : hparams) session += field(1, field(1, name) + field(2, hparam_value(value)));
  session += number_field(5, wall_time);
  // HParamsPluginData {session_start_info = 3}
  return plugin_event(wall_time, "_hparams_/session_start_info", "hparams", field(3, session), "");
}

}  // namespace cloze
