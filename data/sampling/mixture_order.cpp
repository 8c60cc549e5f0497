#include "data/sampling/mixture_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/random.h"

namespace cloze {

namespace {

constexpr uint64_t whole_share = uint64_t{1} << 32;
/// Rows among which the texts are shuffled: objectives that go by the parity of a row's number meet every text.
constexpr uint64_t shuffled_rows = 32;

/// floor(rows * share / 2^32), exactly: a rounded product would leave out a row, or give one twice.
uint64_t share_of(uint64_t rows, uint64_t share) {
  return (rows >> 32) * share + ((rows & (whole_share - 1)) * share >> 32);
}

}  // namespace

MixtureOrder::MixtureOrder(const std::vector<double>& rows, uint64_t key) : key_(key) {
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  size_ = std::max<uint64_t>(1, static_cast<uint64_t>(std::llround(all)));
  double rest = all;
  for (size_t part = 0; part < rows.size(); ++part) {
    const auto wanted = static_cast<uint64_t>(std::llround(rows[part] / rest * static_cast<double>(whole_share)));
    of_all_.push_back(rows[part] / all);
    of_rest_.push_back(part + 1 == rows.size() ? whole_share : std::clamp<uint64_t>(wanted, 1, whole_share - 1));
    rest -= rows[part];
  }
}

/// The text whose row stands at a position before shuffling: each takes every (2^32 / of_rest)-th row that is left.
size_t MixtureOrder::part_at(uint64_t position) const {
  size_t part = 0;
  for (;; ++part) {
    const auto before = share_of(position, of_rest_[part]);
    if (share_of(position + 1, of_rest_[part]) > before) return part;
    position -= before;
  }
}

/// The number of rows of a text before a position.
uint64_t MixtureOrder::rows_before(uint64_t position, size_t part) const {
  for (size_t earlier = 0; earlier < part; ++earlier) position -= share_of(position, of_rest_[earlier]);
  return share_of(position, of_rest_[part]);
}

RowOfPart MixtureOrder::at(uint64_t index) const {
  if (of_rest_.size() == 1) return {.row = index};
  const uint64_t block = index / shuffled_rows, first = block * shuffled_rows;
  const Permutation shuffled(shuffled_rows, mix(key_, block));
  const auto part_of = [&](uint64_t row) { return part_at(first + shuffled(row - first)); };
  RowOfPart part{.part = part_of(index)};
  part.row = rows_before(first, part.part);
  for (uint64_t row = first; row < index; ++row) part.row += part_of(row) == part.part;
  return part;
}

}  // namespace cloze
