#pragma once
// JSON files of Cloze, written and read by one list of their fields:
//
//   struct Shard { std::string file; uint64_t bytes = 0; };
//   template <class V> void describe(V& v, Shard& s) {
//     v("file", s.file);
//     v.or_else("bytes", s.bytes, 0);   // earlier versions did not write it
//   }
//   write_atomic(path, json_text(json_of(shard)));
//   auto shard = json_as<Shard>(parse_json(read_text(path)));
//
// Keys that the list does not have are left alone. What was given the wrong type is damage, whose place the error
// names.
#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "core/error.h"

namespace cloze {

template <class T>
nlohmann::json json_of(const T& value);
template <class T>
void read_json(const nlohmann::json& value, const std::string& place, T& field);

namespace json_detail {

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsList : std::false_type {};
template <class T>
struct IsList<std::vector<T>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T>
constexpr bool is_value =
    std::is_arithmetic_v<T> || std::is_same_v<T, std::string> || std::is_same_v<T, nlohmann::json>;

/// Writes the fields of a described struct.
class Writer {
 public:
  explicit Writer(nlohmann::json& out) : out_(out) { out_ = nlohmann::json::object(); }

  /// A field that is always there.
  template <class T>
  void operator()(const char* key, T& field) {
    if constexpr (IsOptional<T>::value) {
      if (field) out_[key] = json_of(*field);
    } else {
      out_[key] = json_of(field);
    }
  }
  /// The same, of a number that is not negative.
  template <class T>
  void count(const char* key, T& field) {
    (*this)(key, field);
  }
  /// A field that files of earlier versions lack.
  template <class T>
  void or_else(const char* key, T& field, const std::type_identity_t<T>&) {
    (*this)(key, field);
  }
  /// A number that may not be finite, which is null.
  void or_null(const char* key, double& field) { (*this)(key, field); }
  /// A field that is left out where it has this value.
  template <class T>
  void unless(const char* key, T& field, const std::type_identity_t<T>& usual) {
    if (!(field == usual)) (*this)(key, field);
  }
  /// Fields of an object inside.
  template <class Fields>
  void section(const char* key, const Fields& fields) {
    Writer inner(out_[key]);
    fields(inner);
  }
  /// The same, of one that is written if `is_there`, and may be missing.
  template <class Fields>
  void section_if(const char* key, bool is_there, const Fields& fields) {
    if (is_there) section(key, fields);
  }

 private:
  nlohmann::json& out_;
};

/// Reads the fields of a described struct.
class Reader {
 public:
  Reader(const nlohmann::json& in, std::string place) : in_(in), place_(std::move(place)) {
    require<DataError>(in.is_object(), place_, " is no object");
  }

  template <class T>
  void operator()(const char* key, T& field) {
    const auto at = in_.find(key);
    if constexpr (IsOptional<T>::value) {
      field.reset();
      if (at != in_.end()) read_json(*at, place_ + "/" + key, field.emplace());
    } else {
      require<DataError>(at != in_.end(), place_, "/", key, " is missing");
      read_json(*at, place_ + "/" + key, field);
    }
  }
  template <class T>
  void count(const char* key, T& field) {
    int64_t value = 0;
    (*this)(key, value);
    require<DataError>(value >= 0, place_, "/", key, " is negative");
    field = static_cast<T>(value);
  }
  template <class T>
  void or_else(const char* key, T& field, const std::type_identity_t<T>& otherwise) {
    field = otherwise;
    if (in_.contains(key)) (*this)(key, field);
  }
  void or_null(const char* key, double& field) {
    const auto at = in_.find(key);
    field = std::numeric_limits<double>::quiet_NaN();
    if (at == in_.end() || !at->is_null()) (*this)(key, field);
  }
  template <class T>
  void unless(const char* key, T& field, const std::type_identity_t<T>& usual) {
    or_else(key, field, usual);
  }
  template <class Fields>
  void section(const char* key, const Fields& fields) {
    require<DataError>(in_.contains(key), place_, "/", key, " is missing");
    Reader inner(in_[key], place_ + "/" + key);
    fields(inner);
  }
  template <class Fields>
  void section_if(const char* key, bool, const Fields& fields) {
    if (in_.contains(key)) section(key, fields);
  }

 private:
  const nlohmann::json& in_;
  std::string place_;
};

}  // namespace json_detail

/// A value, list, map or described struct as JSON. Numbers that are not finite are null in its text.
template <class T>
nlohmann::json json_of(const T& value) {
  if constexpr (json_detail::is_value<T>) {
    return value;
  } else if constexpr (json_detail::IsList<T>::value) {
    auto list = nlohmann::json::array();
    for (const auto& one : value) list.push_back(json_of(one));
    return list;
  } else if constexpr (json_detail::IsMap<T>::value) {
    auto map = nlohmann::json::object();
    for (const auto& [key, one] : value) map[key] = json_of(one);
    return map;
  } else {
    nlohmann::json out;
    json_detail::Writer writer(out);
    describe(writer, const_cast<T&>(value));  // one description reads and writes
    return out;
  }
}

/// Reads a value into `field`; null is a number that is not finite in a list. Throws DataError with the place for
/// another type, and for a signed integer beyond 2^53, which readers of JSON do not hold exactly.
template <class T>
void read_json(const nlohmann::json& value, const std::string& place, T& field) {
  const auto wants = [&](bool fits, const char* what) { require<DataError>(fits, place, " is no ", what); };
  if constexpr (std::is_same_v<T, nlohmann::json>) {
    field = value;
  } else if constexpr (std::is_same_v<T, bool>) {
    wants(value.is_boolean(), "truth value");
    field = value.template get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    constexpr auto most = int64_t{1} << 53;
    wants(value.is_number_integer() && (std::is_signed_v<T> || value.is_number_unsigned()), "count");
    if constexpr (std::is_signed_v<T>)
      wants(!(value.is_number_unsigned() && value.template get<uint64_t>() > static_cast<uint64_t>(most)) &&
                value.template get<int64_t>() >= -most,
            "count that can be");
    field = value.template get<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    wants(value.is_number(), "number");
    field = value.template get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    wants(value.is_string(), "text");
    field = value.template get<std::string>();
  } else if constexpr (json_detail::IsList<T>::value) {
    wants(value.is_array(), "list");
    field.clear();
    for (const auto& one : value) {
      auto& element = field.emplace_back();
      if constexpr (std::is_floating_point_v<typename T::value_type>) {
        if (one.is_null()) {
          element = std::numeric_limits<typename T::value_type>::quiet_NaN();
          continue;
        }
      }
      read_json(one, place + "/" + std::to_string(field.size() - 1), element);
    }
  } else if constexpr (json_detail::IsMap<T>::value) {
    wants(value.is_object(), "object");
    field.clear();
    for (const auto& [key, one] : value.items()) read_json(one, place + "/" + key, field[key]);
  } else {
    json_detail::Reader reader(value, place);
    describe(reader, field);
  }
}

/// A described struct from JSON. Throws DataError with the place of what is missing or of another type.
template <class T>
T json_as(const nlohmann::json& value) {
  T fields{};
  read_json(value, "", fields);
  return fields;
}

}  // namespace cloze
