#pragma once
// Typed access to tokenizer.json: every value knows its path, so that errors name it.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace cloze {

/// Steps of kind Sequence within each other.
inline constexpr int max_sequence_depth = 16;
/// Steps of a normalizer, a pre-tokenizer or a decoder: each reads the whole text; published tokenizers have at most a
/// dozen.
inline constexpr size_t max_steps = 32;
/// Pieces of a vocabulary; the largest published ones have 1,000,000.
inline constexpr size_t max_pieces = size_t{1} << 21;
/// Bytes of a piece that is searched for from each character of a text; published ones have fewer than a hundred.
inline constexpr size_t max_piece_bytes = 1024;

/// A value of a JSON file and its path there, as `tokenizer.json: pre_tokenizer.pattern`.
/// Every accessor throws DataError with that path if the value has another type.
class Field {
 public:
  using Json = nlohmann::json;
  Field(const Json& value, std::string path) : value_(&value), path_(std::move(path)) {}

  /// A member; null if absent.
  Field operator[](const char* key) const {
    static const Json none;
    const bool exists = value_->is_object() && value_->contains(key);
    return {exists ? (*value_)[key] : none, path_ + (path_.ends_with(": ") ? "" : ".") + key};
  }
  /// The members of a list; none for null.
  std::vector<Field> list() const {
    std::vector<Field> fields;
    if (value_->is_null()) return fields;
    if (!value_->is_array()) refuse("is not a list");
    for (size_t i = 0; i < value_->size(); ++i)
      fields.emplace_back((*value_)[i], path_ + "[" + std::to_string(i) + "]");
    return fields;
  }
  bool is_null() const { return value_->is_null(); }
  const Json& json() const { return *value_; }
  const std::string& text() const {
    if (!value_->is_string()) refuse("is not a text");
    return value_->get_ref<const std::string&>();
  }
  std::string text_or(const char* fallback) const { return is_null() ? fallback : text(); }
  bool flag(bool fallback) const {
    if (is_null()) return fallback;
    if (!value_->is_boolean()) refuse("is neither true nor false");
    return value_->get<bool>();
  }
  /// A whole number from 0 to `max`.
  int64_t count(int64_t fallback, int64_t max) const {
    if (is_null()) return fallback;
    const bool is_count = value_->is_number_unsigned() || (value_->is_number_integer() && value_->get<int64_t>() >= 0);
    if (!is_count || value_->get<uint64_t>() > static_cast<uint64_t>(max))
      refuse(concat("is ", shown(), ", not a whole number from 0 to ", max));
    return value_->get<int64_t>();
  }
  double number() const {
    if (!value_->is_number()) refuse("is not a number");
    return value_->get<double>();
  }
  /// The value, truncated, for a message.
  std::string shown() const {
    const auto all = json_text(*value_);
    return all.size() <= 60 ? all : all.substr(0, 57) + "...";
  }
  /// Refuses a step after `count` others.
  void require_steps(size_t count) const {
    if (count > max_steps) refuse(concat("is one of more than ", max_steps, " steps; merge some of them"));
  }
  /// Refuses a list of more than `max_pieces`.
  void require_pieces() const {
    if (value_->size() > max_pieces)
      refuse(concat("has ", value_->size(), " entries, more than the ", max_pieces, " that a vocabulary can have"));
  }
  [[noreturn]] void refuse(const std::string& why) const { fail<DataError>(path_, " ", why); }

 private:
  const Json* value_;
  std::string path_;
};

/// The steps of a normalizer, a pre-tokenizer or a decoder: those of a Sequence, which has them under `list` and may
/// have others within, else its own. `add(field, type, steps)` appends the step of a type.
template <class Step, class Add>
std::vector<Step> read_steps(const Field& field, const char* list, const Add& add) {
  std::vector<Step> steps;
  const auto read = [&](const auto& again, const Field& one, int depth) -> void {
    if (one.is_null()) return;
    const auto& type = one["type"].text();
    if (type != "Sequence") {
      add(one, type, steps);
      return one.require_steps(steps.size());
    }
    if (depth >= max_sequence_depth)
      one.refuse(concat("is a sequence within ", max_sequence_depth, " others; flatten the steps"));
    for (const auto& inner : one[list].list()) again(again, inner, depth + 1);
  };
  read(read, field, 0);
  return steps;
}

}  // namespace cloze
