#pragma once
// JSON files of Cloze, written and read by one list of their fields:
//
//   struct Shard { std::string file; uint64_t bytes = 0; };
//   template <class V> void describe(V& v, Shard& s) {
//     v("file", s.file);
//     v.or_else("bytes", s.bytes, 0);   // earlier versions did not write it
//   }
//   write_atomic(path, json_text(json(shard)));
//   auto shard = parse_json(read_text(path)).get<Shard>();   // throws json::exception for damage
//
// Keys that the list does not have are left alone.
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace cloze {

/// Writes the fields of a described struct.
struct JsonWriter {
  nlohmann::json& out;

  template <class T>
  void operator()(const char* key, T& field) {
    out[key] = field;
  }
  /// A number from 0 to 2^53, which every reader of JSON holds exactly.
  template <class T>
  void count(const char* key, T& field) {
    out[key] = field;
  }
  /// A number that may not be finite, which is null in the file; and a list of such.
  void number(const char* key, double& field) { out[key] = field; }
  void numbers(const char* key, std::vector<double>& field) { out[key] = field; }
  /// A field that files of earlier versions lack.
  template <class T>
  void or_else(const char* key, T& field, const std::type_identity_t<T>&) {
    out[key] = field;
  }
  /// A field that is left out where it has this value.
  template <class T>
  void unless(const char* key, T& field, const std::type_identity_t<T>& usual) {
    if (!(field == usual)) out[key] = field;
  }
  template <class T>
  void maybe(const char* key, std::optional<T>& field) {
    if (field) out[key] = *field;
  }
  /// Fields of an object inside; `section_if`: of one that is written if `is_there`, and may be missing.
  template <class Fields>
  void section(const char* key, const Fields& fields) {
    JsonWriter inner{out[key]};
    fields(inner);
  }
  template <class Fields>
  void section_if(const char* key, bool is_there, const Fields& fields) {
    if (is_there) section(key, fields);
  }
};

/// Reads them. Throws json::exception for what is missing and for a value of another type, std::out_of_range for a
/// count beyond 2^53.
struct JsonReader {
  const nlohmann::json& in;

  template <class T>
  void operator()(const char* key, T& field) {
    in.at(key).get_to(field);
  }
  template <class T>
  void count(const char* key, T& field) {
    const auto value = in.at(key).template get_ref<const uint64_t&>();
    if (value > uint64_t{1} << 53) throw std::out_of_range(key);
    field = static_cast<T>(value);
  }
  void number(const char* key, double& field) { field = value_of(in.at(key)); }
  void numbers(const char* key, std::vector<double>& field) {
    field.clear();
    for (const auto& value : in.at(key).get_ref<const nlohmann::json::array_t&>()) field.push_back(value_of(value));
  }
  template <class T>
  void or_else(const char* key, T& field, const std::type_identity_t<T>& otherwise) {
    field = otherwise;
    if (in.contains(key)) in[key].get_to(field);
  }
  template <class T>
  void unless(const char* key, T& field, const std::type_identity_t<T>& usual) {
    or_else(key, field, usual);
  }
  template <class T>
  void maybe(const char* key, std::optional<T>& field) {
    field = in.contains(key) ? std::optional(in[key].template get<T>()) : std::nullopt;
  }
  template <class Fields>
  void section(const char* key, const Fields& fields) {
    JsonReader inner{in.at(key)};
    static_cast<void>(inner.in.get_ref<const nlohmann::json::object_t&>());
    fields(inner);
  }
  template <class Fields>
  void section_if(const char* key, bool, const Fields& fields) {
    if (in.contains(key)) section(key, fields);
  }

 private:
  static double value_of(const nlohmann::json& value) {
    return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
  }
};

template <class T>
concept JsonDescribed = std::is_class_v<T> && requires(JsonWriter& writer, T& fields) { describe(writer, fields); };

template <JsonDescribed T>
void to_json(nlohmann::json& out, const T& fields) {
  out = nlohmann::json::object();
  JsonWriter writer{out};
  describe(writer, const_cast<T&>(fields));  // one description reads and writes
}

template <JsonDescribed T>
void from_json(const nlohmann::json& in, T& fields) {
  static_cast<void>(in.get_ref<const nlohmann::json::object_t&>());  // nothing else has fields
  JsonReader reader{in};
  describe(reader, fields);
}

}  // namespace cloze
