#pragma once
// Rows of a task's items: framed texts of natural length, cut or in windows, with what is right for them.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"
#include "tasks/item.h"
#include "tasks/rows/cut.h"
#include "tasks/rows/framing.h"
#include "tasks/rows/task_row.h"

namespace cloze {

/// How rows are made of items.
struct RowOptions {
  TaskKind kind = TaskKind::classification;
  int64_t num_labels = 0;  ///< of multilabel
  int64_t max_length = 0;  ///< tokens of a row with special ones; 0: as many as the model reads
  TaskCut cut = LongestCut{};
  int64_t max_question = 64;  ///< tokens that a question keeps; Source: google-research/bert, run_squad.py
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
  TaskRowMaker(const Tokenizer& tokenizer, const TaskFraming& framing, const RowOptions& options);

  /// Appends the rows of an item: one, or one for each of its windows or candidates. `number`: its index in its part.
  ///
  /// Classification, multilabel, regression: of windows (`cut: windows`) the logits are to be averaged; of a pair the
  /// longer text has the windows, and the shorter one keeps at most half of the room.
  /// Tagging: words are segmented one by one, after a space where the tokenizer's tokens have one, and the first token
  /// of a word has its tag. Further windows begin with a word; a word has its tag in one of them, that with the most
  /// tokens on the narrower side of the word.
  /// Spans: the question, at most half of a row, and a window of the context. A window with a whole
  /// answer (of the item's answers the first) points at the tokens around it, another one at the no-answer place.
  /// Choice: the premise, and each candidate after the item's question. The premise is cut alike in all rows.
  ///
  /// Throws DataError for a row without tokens, for an item of choice without candidates, and for a text of more
  /// windows than `most_windows`.
  void add(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;

  const RowOptions& options() const { return options_; }

 private:
  struct Encoded;
  struct WordTokens;
  void add_rows(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;
  void add_text(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;
  WordTokens tokens_of_words(const TaskItem& item, RowCounts& counts) const;
  void add_words(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;
  void add_spans(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;
  void add_candidates(const TaskItem& item, int64_t number, std::vector<TaskRow>& rows, RowCounts& counts) const;
  TaskRow framed(std::span<const int32_t> first, std::span<const int32_t> second, bool is_pair) const;
  int64_t room(bool is_pair) const { return max_length_ - framing_.special_tokens(is_pair); }

  Tokenizer tokenizer_;
  TaskFraming framing_;
  RowOptions options_;
  int64_t max_length_;
};

/// The tokens of a text with the bytes of it that an answer of these tokens takes: whole characters, without white
/// space and invisible characters at the ends of a token that has more.
std::vector<TokenSpan> context_tokens(const Tokenizer& tokenizer, std::string_view text);

/// The tokens of a word that stands alone, and of one inside a list of words: after a space where the tokenizer's
/// tokens have it, unless the word begins with one; none for an empty word.
/// Source: huggingface/tokenizers, `encode` of pre-tokenised input. Differs: a space, too, for byte-level tokenizers
/// without `add_prefix_space`, which transformers refuses (RoBERTa) or joins without (ModernBERT).
std::vector<int32_t> word_tokens(const Tokenizer& tokenizer, const std::string& word);

/// One tag for each word of an item.
///
/// words     of the item
/// rows      its rows
/// tags      of each row, by position
/// missing   tag of words without a token
std::vector<int64_t> tags_of_words(int64_t words, std::span<const TaskRow> rows,
                                   std::span<const std::vector<int64_t>> tags, int64_t missing);

/// Rows that one loss belongs to: all rows of an item, whose windows or candidates have one answer together; of tagging
/// and of spans each row.
struct RowGroup {
  size_t first = 0, count = 0;
  bool operator==(const RowGroup&) const = default;
};
std::vector<RowGroup> row_groups(TaskKind kind, std::span<const TaskRow> rows);

}  // namespace cloze
