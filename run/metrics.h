#pragma once
// What a run leaves for programs: metrics.jsonl, TensorBoard events.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace cloze {

/// Appends JSON objects, one a line, to metrics.jsonl, and their numbers to a TensorBoard event file.
class Metrics {
 public:
  /// Opens `run`/metrics.jsonl cut to its first `keep_bytes`: what a resumed run will write again. TensorBoard is told
  /// to forget what it knows of steps after `step`.
  Metrics(const std::string& run, uint64_t keep_bytes, int64_t step);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  /// `row` has "step"; numbers that differ between equal runs (times, rates) belong under "time".
  void write(const nlohmann::json& row);
  /// Makes sure that everything is on the disk; returns the length of metrics.jsonl.
  uint64_t sync();

 private:
  void scalar(int64_t step, const std::string& tag, double value);
  std::string path_;
  std::FILE *out_ = nullptr, *events_ = nullptr;
  bool lost_ = false;  // a line could not be written, which was said
};

/// One record of a TFRecord file: length, payload, and the masked CRC-32C of each.
std::string tf_record(const std::string& payload);
/// A serialized tensorflow.Event that says: this file goes on from `step`, what is known of later steps is void.
std::string session_start_event(double wall_time, int64_t step);
/// A serialized tensorflow.Event with one scalar.
std::string scalar_event(double wall_time, int64_t step, const std::string& tag, float value);

}  // namespace cloze
