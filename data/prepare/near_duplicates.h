#pragma once
// Near-duplicate documents by MinHash and locality-sensitive hashing, without comparing all pairs.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// The MinHash sketch of a document's shingles of eight bytes: the share of equal entries of two sketches estimates the
/// Jaccard similarity of the two sets of shingles (standard deviation at most 0.045, and 0.5 / sqrt(n) for texts of
/// n < 128 shingles). Source: Broder 1997, "On the resemblance and containment of documents";
/// one hash for all entries: Li, Owen & Zhang 2012, "One permutation hashing", and for entries without a shingle
/// Shrivastava 2017, "Optimal densification for fast and accurate minwise hashing"; eight bits per entry: Li & Koenig
/// 2010, "b-bit minwise hashing".
using Sketch = std::array<uint8_t, 128>;

/// The sketch of a text of lines; runs of white space and line ends count as one space.
Sketch sketch_of(const std::vector<std::string>& lines);

/// The Jaccard similarity of two texts, estimated from their sketches.
double resemblance(const Sketch& a, const Sketch& b);

/// Documents are near-duplicates from this similarity on.
inline constexpr double near_duplicate_threshold = 0.8;

/// Finds groups of near-duplicates. Sketches are kept in a file, with 20 bytes for each in memory.
///
/// Documents are compared if they agree in one of 16 bands of eight adjacent entries (with probability 0.95 for a
/// similarity of 0.8, 1 - 1e-4 for 0.9, 0.06 for 0.5); where many agree in a band, each is compared with the first 16
/// that are not near-duplicates of each other. Groups are transitive. Source: Leskovec, Rajaraman &
/// Ullman 2014, "Mining of massive datasets", section 3.4.
class NearDuplicates {
 public:
  /// Creates `file`, which the destructor removes. Throws DataError if it cannot be written.
  explicit NearDuplicates(const std::string& file);
  ~NearDuplicates();
  /// `hash`: of the whole text; equal for duplicates.
  void add(uint64_t hash, const Sketch& sketch);
  /// For each sketch, in the order of `add`, the index of the first one of its group.
  std::vector<uint32_t> groups();

 private:
  std::string path_;
  std::FILE* file_;
  uint64_t count_ = 0;
};

}  // namespace cloze
