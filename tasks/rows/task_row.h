#pragma once
// Rows of a task as a network reads them. Without LibTorch.
#include <array>
#include <cstdint>
#include <vector>

#include "tasks/item.h"

namespace cloze {

/// The label of a token that no loss counts.
inline constexpr int64_t no_label = -100;

/// A row: an item, a window of it, or one of its candidates.
struct TaskRow {
  int64_t item = 0;                 ///< index in its part
  int64_t window = 0;               ///< of its item
  int64_t candidate = 0;            ///< of its item
  std::vector<int32_t> ids{};       ///< with special tokens, without padding
  std::vector<int32_t> segments{};  ///< token_type_ids; empty: the family has none
  int64_t class_token = 0;          ///< position of the token that stands for the row
  int64_t first_begin = 0;          ///< positions [first_begin, first_end) of the first text
  int64_t first_end = 0;
  int64_t second_begin = 0;  ///< positions [second_begin, second_end) of the second text
  int64_t second_end = 0;
  /// Tagging, by position: the word whose first token stands there, -1 for others. Of overlapping windows, the one with
  /// the most context on the narrower side has the word.
  std::vector<int64_t> words{};
  /// Spans, by position: bytes [begin, end) of the context; -1 outside of it.
  std::vector<std::array<int64_t, 2>> bytes{};

  std::vector<int32_t> target{};  ///< generation: the tokens that are right, to the end token; empty: nobody knows them

  /// What is right for the row, of the form of its item's. A label of choice: 1 of the right candidate, 0 of others.
  /// Labels: of multilabel 0 or 1 by label; of tagging by position, no_label but for first tokens; of spans the
  /// positions of the first and of the last token of the answer. Empty: no loss counts the row.
  TaskAnswer gold{};
};

}  // namespace cloze
