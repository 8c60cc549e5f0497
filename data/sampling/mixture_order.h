#pragma once
// The order in which the texts of a mixture give rows, as a pure function of the row's number.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cloze {

/// A row of one text of a mixture.
struct RowOfPart {
  size_t part = 0;
  uint64_t row = 0;  ///< among the rows of this text
};

/// Rows of several texts in fixed shares: after any multiple of 32 rows, each text has given its share of them, to
/// within as many rows as there are texts; which rows of 32 are whose is drawn anew every time. The rows of a text come
/// in their own order, none left out and none twice.
class MixtureOrder {
 public:
  /// rows   of each text in an epoch of the mixture, positive; need not be whole
  /// key    of the random stream
  MixtureOrder(const std::vector<double>& rows, uint64_t key);
  /// Rows of an epoch.
  uint64_t size() const { return size_; }
  /// The share of the rows that a text gives.
  double share(size_t part) const { return of_all_[part]; }
  /// Row `index` of the endless order.
  RowOfPart at(uint64_t index) const;

 private:
  size_t part_at(uint64_t position) const;
  uint64_t rows_before(uint64_t position, size_t part) const;

  uint64_t key_, size_ = 0;
  std::vector<double> of_all_;
  std::vector<uint64_t> of_rest_;  ///< 2^-32 of the rows that the texts before it leave
};

}  // namespace cloze
