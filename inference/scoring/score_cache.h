#pragma once
// Scores that were computed before, by the hash of weights and text.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "inference/scoring/passage.h"

namespace cloze {

/// A file of scores in a folder, `NAME.scores`, for one network scored in one way. Each record is complete or ignored:
/// processes append whole records under a lock, and what a killed one left half written is cut off.
class ScoreCache {
 public:
  /// Creates the folder, not yet the file. Throws Error with the system's reason.
  ScoreCache(const std::string& folder, const std::string& name);
  /// The numbers of a passage, or none: the log-probabilities of its tokens, and what else its scores have.
  std::optional<std::span<const double>> find(const Passage& passage) const;
  /// Remembers the numbers of a passage; written by `flush`.
  void add(const Passage& passage, std::vector<double> values);
  /// Appends what was added, after what other processes appended meanwhile. Throws Error with the system's reason; the
  /// file stays readable.
  void flush();
  const std::string& path() const { return path_; }

 private:
  struct Key {
    uint64_t low = 0, high = 0;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const { return static_cast<size_t>(key.low); }
  };
  static Key key_of(const Passage& passage);
  /// Reads the records after those already read; returns the length of the readable part.
  uint64_t read_new(int file);

  std::string path_;
  uint64_t read_ = 0;  // bytes of the file whose records are known
  std::unordered_map<Key, std::vector<double>, KeyHash> known_;
  std::string pending_;  // records to write
};

}  // namespace cloze
