#pragma once
// Machine-readable metrics of a run: metrics.jsonl, TensorBoard events.
#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>
#include <vector>

namespace cloze {

/// Appends JSON objects, one a line, to metrics.jsonl, and their numbers to a TensorBoard event file.
class Metrics {
 public:
  /// Opens `run`/metrics.jsonl, truncated to its first `keep_bytes`: a resumed run writes the rest again. TensorBoard
  /// is told to discard its events of steps after `step`.
  Metrics(const std::string& run, uint64_t keep_bytes, int64_t step);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  /// `row` has "step"; numbers that differ between identical runs (times, rates) belong under "time".
  void write(const nlohmann::json& row);
  /// Flushes everything to the disk; returns the length of metrics.jsonl.
  uint64_t sync();

 private:
  void scalar(int64_t step, const std::string& tag, double value);
  std::string path_;
  std::FILE *out_ = nullptr, *events_ = nullptr;
  bool lost_ = false;  // a line could not be written; this is reported once
};

/// One record of a TFRecord file: length, payload, and the masked CRC-32C of each.
std::string tf_record(const std::string& payload);
/// A serialized tensorflow.Event: this file continues from `step`, earlier events of later steps are void.
std::string session_start_event(double wall_time, int64_t step);
/// A serialized tensorflow.Event with one scalar.
std::string scalar_event(double wall_time, int64_t step, const std::string& tag, float value);

}  // namespace cloze
