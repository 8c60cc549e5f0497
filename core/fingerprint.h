#pragma once
// Short names of long texts.
#include <xxhash.h>

#include <cstdio>
#include <memory>
#include <string>

namespace cloze {

/// A number as 16 hexadecimal digits.
inline std::string hex_of(uint64_t value) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

/// XXH3 of a text, 16 hexadecimal digits.
inline std::string hash_hex(const std::string& text) { return hex_of(XXH3_64bits(text.data(), text.size())); }

/// XXH3 of bytes that come in parts.
class StreamHash {
 public:
  StreamHash() : state_(XXH3_createState(), &XXH3_freeState) { XXH3_64bits_reset(state_.get()); }
  void add(const void* data, size_t bytes) { XXH3_64bits_update(state_.get(), data, bytes); }
  uint64_t value() const { return XXH3_64bits_digest(state_.get()); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace cloze
