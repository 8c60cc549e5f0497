#include "data/tokenizers/sentencepiece.h"

#include <cmath>
#include <cstring>

#include "core/error.h"
#include "data/tokenizers/fields.h"

namespace cloze {

namespace {

/// Calls `f(field, number, bytes)` for each field of a protocol buffer message; stops at damaged data with false.
template <class F>
bool each_field(std::string_view message, const F& f) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint(), wire = tag & 7;
    const uint64_t number = wire == 0 || wire == 2 ? varint() : 0;
    const uint64_t size = wire == 2 ? number : wire == 5 ? 4 : wire == 1 ? 8 : 0;
    if (size > message.size() - at || wire == 3 || wire == 4 || wire > 5) return false;
    f(tag >> 3, number, message.substr(at, size));
    at += size;
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::string_view>> sentencepiece_charsmaps(std::string_view model) {
  std::vector<std::string_view> tables;
  bool intact = true;
  const bool all = each_field(model, [&](uint64_t part, uint64_t, std::string_view content) {
    if (part != 3 && part != 5) return;  // the normalizer spec and the denormalizer spec
    intact &= each_field(content, [&](uint64_t field, uint64_t, std::string_view table) {
      if (field == 2 && !table.empty()) tables.push_back(table);
    });
  });
  return all && intact ? std::optional(tables) : std::nullopt;
}

std::string fault_of_pieces(std::string_view model) {
  std::string fault;
  uint64_t id = 0;
  each_field(model, [&](uint64_t part, uint64_t, std::string_view content) {
    if (part != 1) return;
    const auto name = concat("piece ", id++);
    each_field(content, [&](uint64_t field, uint64_t, std::string_view bytes) {
      if (!fault.empty()) return;
      if (field == 1 && bytes.find('\0') != std::string_view::npos) fault = name + " has a NUL in it";
      if (field == 1 && bytes.size() > max_piece_bytes)
        fault =
            concat(name, " has ", bytes.size(), " bytes, more than the ", max_piece_bytes, " that a piece can have");
      if (field != 2 || bytes.size() != sizeof(float)) return;
      float score = 0;
      std::memcpy(&score, bytes.data(), sizeof score);
      if (!std::isfinite(score)) fault = name + " has a score that is not a number";
    });
  });
  return fault;
}

SentencePieceFacts sentencepiece_facts(std::string_view model) {
  SentencePieceFacts facts;
  each_field(model, [&](uint64_t part, uint64_t, std::string_view content) {
    if (part < 1 || part > 3) return;  // 1: a piece, 2: the trainer spec, 3: the normalizer spec
    if (part == 1) facts.types.push_back(1);
    each_field(content, [&](uint64_t field, uint64_t number, std::string_view text) {
      if (part == 1 && field == 3) facts.types.back() = number;
      if (part == 1 && field == 3 && number == 4) facts.user_defined = true;
      if (part == 2 && field == 24) facts.space_after_words = number != 0;
      if (part == 3 && field == 3) facts.dummy_prefix = number != 0;
      if (part == 3 && field == 4) facts.joins_spaces = number != 0;
      if (part == 2 && field == 3) facts.bpe = number == 2;
      if (part == 2 && field == 3) facts.unigram = number == 1;
      if (part == 2 && field == 35) facts.byte_fallback = number != 0;
      if (part == 3 && field == 1) facts.normalizer = text;
      if (part == 3 && field == 2) facts.charsmap = text;
    });
  });
  return facts;
}

}  // namespace cloze
