#include "run/metrics.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

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

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

std::string tf_record(const std::string& payload) {
  const auto length = raw(static_cast<uint64_t>(payload.size()));
  return length + masked_crc(length) + payload + masked_crc(payload);
}

std::string session_start_event(double wall_time, int64_t step) {
  return "\x09" + raw(wall_time) + "\x10" + varint(static_cast<uint64_t>(step)) +
         field(7, "\x08\x01");  // SessionLog {status = START}
}

std::string scalar_event(double wall_time, int64_t step, const std::string& tag, float value) {
  const std::string summary_value = field(1, tag) + "\x15" + raw(value);  // Summary.Value {tag = 1, simple_value = 2}
  return "\x09" + raw(wall_time) + "\x10" + varint(static_cast<uint64_t>(step)) + field(5, field(1, summary_value));
}

Metrics::Metrics(const std::string& run, uint64_t keep_bytes, int64_t step) : path_(run + "/metrics.jsonl") {
  if (fs::exists(path_) && fs::file_size(path_) > keep_bytes) fs::resize_file(path_, keep_bytes);
  out_ = std::fopen(path_.c_str(), "ab");
  require<CheckpointError>(out_ != nullptr, path_, ": cannot be written (", system_reason(), ")");
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  const auto events = words(run, "/events.out.tfevents.", static_cast<int64_t>(now()), ".", host);
  events_ = std::fopen(events.c_str(), "ab");
  if (!events_) return;
  const auto first = tf_record("\x09" + raw(now()) + field(3, "brain.Event:2"));
  std::fwrite(first.data(), 1, first.size(), events_);
  const auto start = tf_record(session_start_event(now(), step));
  std::fwrite(start.data(), 1, start.size(), events_);
}

Metrics::~Metrics() {
  if (out_) std::fclose(out_);
  if (events_) std::fclose(events_);
}

void Metrics::scalar(int64_t step, const std::string& tag, double value) {
  if (!events_) return;
  const auto record = tf_record(scalar_event(now(), step, tag, static_cast<float>(value)));
  std::fwrite(record.data(), 1, record.size(), events_);
}

void Metrics::write(const json& row) {
  const auto line = row.dump() + "\n";
  const bool written = std::fwrite(line.data(), 1, line.size(), out_) == line.size() && std::fflush(out_) == 0;
  if (!written && !std::exchange(lost_, true))
    log_warning("train", words(path_, " cannot be written (", system_reason(), "); the run continues without it"));
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
  std::fflush(out_);
  fsync(fileno(out_));
  struct stat info{};
  const bool removed = fstat(fileno(out_), &info) != 0 || info.st_nlink == 0;
  if (!removed) return static_cast<uint64_t>(info.st_size);
  if (!std::exchange(lost_, true))
    log_warning("train", words(path_, " was removed while the run writes it; its lines so far are lost"));
  return 0;
}

}  // namespace cloze
