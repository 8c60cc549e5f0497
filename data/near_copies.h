#pragma once
// Near copies of documents, without comparing every two of them.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cloze {

/// A sketch of a document's shingles, eight bytes in a row each: how many entries of two sketches agree is about the
/// share of their shingles that both have (Jaccard's coefficient of the two sets; standard deviation at most 0.045, and
/// of texts of n < 128 shingles 0.5 / sqrt(n)). Source: Broder 1997, "On the resemblance and containment of documents";
/// one hash for all entries: Li, Owen & Zhang 2012, "One permutation hashing", and for entries without a shingle
/// Shrivastava 2017, "Optimal densification for fast and accurate minwise hashing"; eight bits of each: Li & Koenig
/// 2010, "b-bit minwise hashing".
using Sketch = std::array<uint8_t, 128>;

/// The sketch of a text of lines; runs of white space and line ends count as one space.
Sketch sketch_of(const std::vector<std::string>& lines);

/// The share of the shingles of two texts, as estimated from their sketches.
double resemblance(const Sketch& a, const Sketch& b);

/// Documents are near copies from this resemblance on.
inline constexpr double near_copy = 0.8;

/// Finds groups of near copies. Sketches lie in a file; in memory are 20 bytes for each.
///
/// Compared are documents that agree in eight entries side by side, of 16 such bands (two of resemblance 0.8 do with
/// probability 0.95, of 0.9 always but for 1e-4, of 0.5 with 0.06); in a band of many that agree, each with the first
/// 16 that are no near copies of each other. Near copies of near copies are one group. Source: Leskovec, Rajaraman &
/// Ullman 2014, "Mining of massive datasets", section 3.4.
class NearCopies {
 public:
  /// `file` is made, and removed again by the destructor. Throws DataError where it cannot be written.
  explicit NearCopies(const std::string& file);
  ~NearCopies();
  /// `hash`: of the whole text; equal ones are copies.
  void add(uint64_t hash, const Sketch& sketch);
  /// For each sketch, in the order of `add`, the number of the first one of its group.
  std::vector<uint32_t> groups();

 private:
  std::string path_;
  std::FILE* file_;
  uint64_t count_ = 0;
};

}  // namespace cloze
