#pragma once
// Rows of a task's items: framed texts of natural length, cut or in windows, with what is right for them.
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "tasks/item.h"
#include "tasks/kind.h"
#include "tasks/rows/truncation.h"
#include "tasks/rows/special_token_template.h"
#include "tasks/rows/task_row.h"

namespace cloze {

/// How rows are made of items.
struct RowOptions {
  AnyTaskKind kind{};
  int64_t num_labels = 0;  ///< of sets of labels
  int64_t max_length = 0;  ///< tokens of a row with special ones; 0: as many as the model reads
  Truncation truncation = LongestTruncation{};
  int64_t max_question = 64;  ///< tokens that a question keeps; Source: google-research/bert, run_squad.py
  // Of generation.
  int64_t max_target = 0;  ///< tokens of a target with its end token; 0: as many as the model has room for
  int64_t most_new = 64;   ///< tokens of a generated text
  bool end_of_cut = true;  ///< a target that is cut keeps its end token
};

/// What became of one of the texts of items.
struct TextCounts {
  uint64_t texts = 0, tokens = 0;
  uint64_t empty = 0;       ///< texts without a token
  uint64_t cut_texts = 0;   ///< texts of which a row has less than all
  uint64_t cut_tokens = 0;  ///< tokens of them that no row has

  /// Counts a text of which rows have `kept` tokens.
  void add(int64_t all, int64_t kept) {
    ++texts;
    tokens += static_cast<uint64_t>(all);
    empty += all == 0;
    cut_texts += kept < all;
    cut_tokens += static_cast<uint64_t>(all - kept);
  }
};

/// A word of an item, for messages.
struct WordPlace {
  std::string item{};
  int64_t word = 0;
};

/// What rows have of a part's items, and what they lack.
struct RowCounts {
  uint64_t items = 0, rows = 0;
  uint64_t items_in_windows = 0;   ///< items of several windows
  TextCounts first{}, second{};    ///< of choice: the premise, each candidate with its question
  std::vector<int64_t> lengths{};  ///< of rows: how many have 0, 1, 2, ... tokens

  uint64_t words = 0, words_without_token = 0, cut_words = 0;  ///< tagging; cut: longer than a row
  std::vector<WordPlace> listed_words{};                       ///< the first of those without a token

  uint64_t items_without_answer = 0;    ///< spans: that have none
  uint64_t windows_without_answer = 0;  ///< of items with one
  uint64_t split_answers = 0;           ///< windows of those that have a part of the answer
  uint64_t lost_answers = 0;            ///< items whose answer no window has whole
  uint64_t answers_without_token = 0;   ///< items whose answer is no part of any token
};

/// Makes rows of the items of a task. Every const member may be called from many threads.
class TaskRowMaker {
 public:
  /// Throws ConfigError for a length that has no room for a text beside the special tokens.
  TaskRowMaker(const Tokenizer& tokenizer, const SpecialTokenTemplate& row_template, const RowOptions& options);

  /// Appends the rows of an item: one, or one for each of its windows or candidates. `number`: its index in its part.
  ///
  /// Throws DataError for a row without tokens, for an item of choice without candidates, and for a text of more
  /// windows than `most_windows`.
  void add(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;

  const RowOptions& options() const { return options_; }

  // Of which kinds of tasks make rows.
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const SpecialTokenTemplate& row_template() const { return row_template_; }
  /// Tokens of texts that a row has room for.
  int64_t room(bool is_pair) const { return max_length_ - row_template_.special_tokens(is_pair); }
  /// The most tokens of a target.
  int64_t most_target() const;
  /// The positions that a row takes of the model.
  int64_t length_of(const TaskRow& row) const;
  /// A row of tokens with special ones around them.
  TaskRow framed(std::span<const int32_t> first, std::span<const int32_t> second, bool is_pair) const;
  /// Rows of whole texts, whose target `set_target` sets: of windows (`cut: windows`) the logits are to be averaged; of
  /// a pair the longer text has the windows, and the shorter one keeps at most half of the room.
  void add_text(const TaskItem& item, int64_t number, const std::function<void(TaskRow&)>& set_target,
                std::vector<TaskRow>& rows, RowCounts& counts) const;
  /// A row for each candidate: the premise, and the candidate after the item's question. The premise is cut alike in
  /// all rows.
  void add_candidates(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;

 private:
  void make_room_for_target();

  Tokenizer tokenizer_;
  SpecialTokenTemplate row_template_;
  RowOptions options_;
  int64_t max_length_;
};

/// Rows that one loss belongs to: all rows of an item, whose windows or candidates have one answer together; of tagging
/// and of spans each row.
struct RowGroup {
  size_t first = 0, count = 0;
  bool operator==(const RowGroup&) const = default;
};
std::vector<RowGroup> row_groups(AnyTaskKind kind, std::span<const TaskRow> rows);

}  // namespace cloze
