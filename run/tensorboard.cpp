#include "run/tensorboard.h"

#include <charconv>
#include <cstring>

namespace cloze {

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
