#pragma once
// Machine-readable metrics of a run: metrics.jsonl, TensorBoard events.
#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

/// Appends JSON objects, one a line, to metrics.jsonl, and their numbers to a TensorBoard event file.
class Metrics {
 public:
  /// Opens `run`/metrics.jsonl, truncated to its first `keep_bytes`: a resumed run writes the rest again. TensorBoard
  /// is told to discard its events of steps after `step`; the file of events is created with the first number.
  Metrics(const std::string& run, uint64_t keep_bytes, int64_t step);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  /// Gives TensorBoard the config: as text (YAML), and its values as hyperparameters.
  void describe(const std::string& config, const std::vector<std::pair<std::string, std::string>>& values);
  /// `row` has "step"; numbers that differ between identical runs (times, rates) belong under "time".
  void write(const nlohmann::json& row);
  /// Flushes everything to the disk; returns the length of the whole lines of metrics.jsonl.
  uint64_t sync();

 private:
  /// Writes the lines that are not yet in the file; those for which that fails are tried again with the next one.
  void write_pending();
  void add_event(const std::string& event);
  void open_events();
  void scalar(int64_t step, const std::string& tag, double value);
  std::string path_;
  std::FILE* out_ = nullptr;
  std::string events_path_;
  std::string first_events_{};   // for the beginning of the file of events
  std::FILE* events_ = nullptr;  // null: not yet open, or cannot be written
  std::string pending_{};        // lines that are not in the file, the first without what is
  size_t begun_ = 0;             // bytes in the file of the first of them
  bool lost_ = false;            // a line could not be written; this is reported once
};

/// One record of a TFRecord file: length, payload, and the masked CRC-32C of each.
std::string tf_record(const std::string& payload);
/// The first event of a file: the version of its format.
std::string file_version_event(double wall_time);
/// A serialized tensorflow.Event: this file continues from `step`, earlier events of later steps are void.
std::string session_start_event(double wall_time, int64_t step);
/// A serialized tensorflow.Event with one scalar.
std::string scalar_event(double wall_time, int64_t step, const std::string& tag, float value);
/// An event with a text, as Markdown, for the plugin `text`.
std::string text_event(double wall_time, const std::string& tag, const std::string& markdown);
/// An event with the hyperparameters of a run, for the plugin `hparams`: numbers and booleans as such, other values as
/// text.
std::string hparams_event(double wall_time, const std::vector<std::pair<std::string, std::string>>& hparams);

}  // namespace cloze
