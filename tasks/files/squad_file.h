#pragma once
// Answers in contexts: from places in code points, as files have them, to bytes; and the JSON of SQuAD.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tasks/files/records.h"
#include "tasks/item.h"

namespace cloze {

/// Places of a text in code points and in bytes.
class CodePoints {
 public:
  explicit CodePoints(const std::string& text);
  /// The byte at which a code point begins, that of the end included; -1 outside of the text.
  int64_t byte(int64_t code_point) const;

 private:
  int64_t size_;
  std::vector<uint32_t> bytes_;  // empty: each has one
};

/// The answers of a question, and whether all stand where they are said to be; `which` names it for a message.
bool place_answers(const std::string& context, const CodePoints& places, const std::vector<std::string>& texts,
                   const std::vector<int64_t>& starts, const std::string& which, TaskAnswer& gold, BadRecords& bad);

/// Gives the questions of a file of SQuAD, versions 1.1 and 2.0, to `take` one after another; `group` is the article.
/// Those of `bad` are left out. `line` counts questions, since such a file is one line. A question that `is_impossible`
/// has no answers, one without a list of them no gold. Throws DataError for a file of another form, and for one that is
/// impossible and has an answer. Source: rajpurkar/SQuAD-explorer.
void read_squad(const std::string& file, BadRecords& bad, const std::function<void(TaskItem)>& take);

}  // namespace cloze
