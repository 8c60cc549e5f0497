#pragma once
// The forms of a line of minimal pairs or completions.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "evaluation/suites/json_lines.h"
#include "evaluation/suites/ranking.h"

namespace cloze {

/// What the items of a file share, and what they have been called so far.
struct RankingSource {
  std::string name;                          ///< of the file: the paradigm of lines that name none
  std::map<std::string, int64_t> numbers{};  ///< items so far, by paradigm
};

/// A form of lines. Every line of a file has the keys of the first one's form.
struct RankingForm {
  const char* name;  ///< in words: `minimal pairs`
  /// The key that only its lines have; `OUTER.INNER`: a key of the object at OUTER. Null: a declaration says what they
  /// are.
  const char* signature;
  const char* keys;  ///< of a line, as a message lists them
  /// Appends the items of a line. Throws DataError.
  std::function<void(const SuiteLine& line, RankingSource& source, std::vector<RankingItem>& items)> read;
  const char* answer = nullptr;  ///< the key of the right answer; null: the first candidate, or people's preference

  bool is_declared() const { return signature == nullptr; }
  bool fits(const SuiteLine& line) const;  ///< whether a line has its signature
  /// Whether the program of BabyLM ranks such lines, so that its rules give an official score.
  bool is_official() const { return answer == nullptr; }
  /// Whether files of such lines are splits of one set, not paradigms.
  bool has_splits() const { return answer != nullptr; }
  /// Whether a line of this form has no answer, as those of test splits: no key, null, -1 or "".
  bool lacks_answer(const SuiteLine& line) const;
};

const std::vector<RankingForm>& ranking_forms();

// What lines are made of, for forms and declarations.

/// The name of the next item of a paradigm.
std::string item_name(const SuiteLine& line, const std::string& paradigm, RankingSource& source);
/// The index of the right answer at `key`. Throws DataError for one that is none of `count`.
size_t answer_of(const SuiteLine& line, const char* key, size_t count);
/// Takes the fraction of people who prefer the first of two candidates from `key`, and the answer of most. Throws
/// DataError.
void set_preference(RankingItem& item, const SuiteLine& line, const char* key);

/// The form of a line; null for none.
const RankingForm* form_of(const SuiteLine& line);

}  // namespace cloze
