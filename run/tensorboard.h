#pragma once
// The bytes of TensorBoard event files: serialized tensorflow.Event messages in TFRecord framing.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cloze {

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
