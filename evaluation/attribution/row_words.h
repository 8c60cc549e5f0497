#pragma once
// The words of a row, each with its tokens.
#include <cstdint>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "tasks/kind.h"
#include "tasks/rows/task_row.h"

namespace cloze {

/// A word of a row.
struct RowWord {
  std::string text{};
  bool is_second = false;            ///< it is of the second text
  std::vector<int64_t> positions{};  ///< of its tokens in the row, ascending
};

/// The words of a row of an item: of tagging those of the item, else those that the tokenizer cuts its texts into. Each
/// token that is no special one is of one of them.
std::vector<RowWord> words_of_row(const TaskItem& item, const TaskRow& row, AnyTaskKind kind,
                                  const Tokenizer& tokenizer);

}  // namespace cloze
