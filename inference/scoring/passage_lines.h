#pragma once
// The texts of a file to score.
#include <string>
#include <vector>

#include "inference/scoring/passage.h"

namespace cloze {

/// A completion after its context, with a space between them unless one of them has white space there.
Passage completed(const std::string& context, const std::string& completion);

/// The passages of a file, and where they stand.
struct PassageLines {
  std::string name{};  ///< of the file, for messages
  std::vector<Passage> passages{};
  std::vector<uint64_t> numbers{};  ///< of the lines of the passages
};

/// What `f` says of the passages of a file. An error in one of them is reported with its line.
template <class F>
auto with_lines(const PassageLines& file, const F& f) {
  try {
    return f();
  } catch (const PassageError& e) {
    fail<DataError>(file.name, ":", file.numbers.at(e.passage), ": ", e.what());
  }
}

/// The passages of a file, one a line; `-` is standard input, .gz and .xz are decompressed, blank lines are skipped. A
/// line is a text; a context and its completion with a tab between them; or a JSON object with `text`, with `context`
/// and `completion`, or with `left`, `scored` and `right`. The first line decides which; a file NAME.jsonl has objects,
/// NAME.tsv tabs, whose first line may be `context<TAB>completion`. A completion that does not begin with a space
/// follows its context after one. Throws DataError naming the line of another form, without a text, with a key twice,
/// or that is not UTF-8.
PassageLines read_passages(const std::string& file);

}  // namespace cloze
