#include "tasks/files/tag_file.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/reading/text_lines.h"
#include "tasks/files/records.h"

namespace cloze {

namespace {

constexpr std::array conllu_columns{"id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"};

int64_t tag_column(const std::string& name, bool is_conllu, const char* key) {
  int64_t position = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), position);
  if (error == std::errc() && end == name.data() + name.size()) return position;
  require<ConfigError>(is_conllu, "'", key, "' is '", shortened(name),
                       "', and columns of a word a line have no names; write a position, 0 or -1 for the last");
  const auto found = std::find(conllu_columns.begin(), conllu_columns.end(), name);
  require<ConfigError>(found != conllu_columns.end(), "'", key, "' is '", shortened(name),
                       "', which CoNLL-U has not; choose one of ", listed(conllu_columns));
  return found - conllu_columns.begin();
}

void split_columns(std::string_view line, std::vector<std::string_view>& cells) {
  cells.clear();
  const bool has_tabs = line.find('\t') != line.npos;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(has_tabs ? '\t' : ' ', at), line.size());
    if (has_tabs || end > at) cells.push_back(line.substr(at, end - at));
    at = end + 1;
  }
}

/// A line without a column. A no-break space alone is a word.
bool ends_sentence(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

/// The letter of a tag of a scheme, and the type after the hyphen.
struct PhraseTag {
  char letter = 0;
  std::string_view type{};
};

/// Which letters a scheme has, and what they ask of neighbours.
struct SchemeForm {
  std::string_view letters{};
  bool begins = true;  ///< I and E follow a tag of their phrase
  bool ends = false;   ///< B and I are followed by one
};

SchemeForm form_of(TagScheme scheme) {
  using enum TagScheme;
  switch (scheme) {
    case none:
    case bio:
      break;
    case bioes:
      return {.letters = "BIES", .ends = true};
    case bmes:
      return {.letters = "BMES", .ends = true};
    case bilou:
      return {.letters = "BILU", .ends = true};
    case iob1:
      return {.letters = "BI", .begins = false};
    case ioe1:
      return {.letters = "IE", .begins = false};
    case ioe2:
      return {.letters = "IE", .begins = false, .ends = true};
  }
  return {.letters = "BI"};
}

/// `O, B-TYPE or I-TYPE`
std::string forms_of_tags(std::string_view letters) {
  std::string text = "O";
  for (size_t i = 0; i < letters.size(); ++i)
    text += concat(i + 1 < letters.size() ? ", " : " or ", letters[i], "-TYPE");
  return text;
}

/// A tag with the letters of BIOES. A letter alone has no type, as where there is one kind of phrase.
PhraseTag phrase_tag(const std::string& tag, TagScheme scheme, const std::string& where) {
  if (tag == "O") return {'O', {}};
  const auto letters = form_of(scheme).letters;
  const bool has_form = !tag.empty() && (tag.size() == 1 || (tag.size() > 2 && tag[1] == '-'));
  if (!has_form || letters.find(tag[0]) == letters.npos)
    fail<DataError>(where, ": tag '", shortened(tag), "' is none of ", scheme, ", ", forms_of_tags(letters),
                    "; name another `data.scheme` or `data.label`, or name tags that are numbers with `labels`");
  const char letter = tag[0];
  const char as_bioes = letter == 'M' ? 'I' : letter == 'L' ? 'E' : letter == 'U' ? 'S' : letter;
  return {as_bioes, std::string_view(tag).substr(std::min<size_t>(tag.size(), 2))};
}

/// The columns of the first word, which lines of comments need not have; 0 for a file without one.
size_t columns_of_words(const std::string& file) {
  LineReader lines(file);
  std::vector<std::string_view> cells;
  for (std::string_view line; lines.next(line);) {
    if (ends_sentence(line) || line[0] == '#' || line.starts_with("-DOCSTART-")) continue;
    split_columns(line, cells);
    return cells.size();
  }
  return 0;
}

/// The tags in a file, without those of lines that may be comments.
std::set<std::string> tags_of_words(const std::string& file, int64_t position, size_t columns) {
  std::set<std::string> tags;
  LineReader lines(file);
  std::vector<std::string_view> cells;
  bool is_inside = false;
  for (std::string_view line; lines.next(line);) {
    const bool is_word = !ends_sentence(line) && (is_inside || line[0] != '#');
    is_inside = is_word;
    if (!is_word) continue;
    split_columns(line, cells);
    const auto at = position < 0 ? position + std::ssize(cells) : position;
    if (cells.size() == columns) tags.emplace(without_white_space_around(cells[static_cast<size_t>(at)]));
  }
  return tags;
}

}  // namespace

TagFile::TagFile(const std::string& file, const TaskDataConfig& data, TaskFormat format, bool needs_tags)
    : lines_(file),
      is_conllu_(format == TaskFormat::conllu),
      needs_tags_(needs_tags),
      word_(tag_column(!data.text.empty() ? data.text
                       : is_conllu_       ? "form"
                                          : "0",
                       is_conllu_, "data.text")),
      tag_(tag_column(!data.label.empty() ? data.label.front()
                      : is_conllu_        ? "upos"
                                          : "-1",
                      is_conllu_, "data.label")),
      count_(is_conllu_ ? 0 : columns_of_words(file)) {}

std::string_view TagFile::cell(int64_t position) const {
  const auto size = static_cast<int64_t>(cells_.size());
  if (position < -size || position >= size)
    fail<DataError>(lines_.where(), ": has ", counted(cells_.size(), "column"), ", none at position ", position,
                    "; positions count from 0");
  return cells_[static_cast<size_t>(position < 0 ? position + size : position)];
}

bool TagFile::has_tags() const {
  const auto size = static_cast<int64_t>(cells_.size());
  const auto from_first = [&](int64_t position) { return position < 0 ? position + size : position; };
  const auto tag = from_first(tag_);
  return needs_tags_ || (tag >= 0 && tag < size && tag != from_first(word_));
}

/// Whether a line before the words of a sentence is no word: with other columns than words have, `# KEY = VALUE`, or
/// what would be its tag is none.
bool TagFile::is_comment(std::string_view line) {
  if (line[0] != '#') return false;
  const auto is_sign = [&](size_t i) { return i < cells_.size() && cells_[i] == "="; };
  if (is_conllu_ || cells_.size() != count_ || is_sign(1) || is_sign(2)) return true;
  return has_tags() && !is_tag_of_words(std::string(without_white_space_around(cell(tag_))));
}

/// Whether another word has a tag, of those that begin with `#` only within sentences; or it marks a phrase: `B-x`.
bool TagFile::is_tag_of_words(const std::string& text) {
  if (text.size() > 2 && text[1] == '-') return true;
  if (!tags_) tags_ = tags_of_words(lines_.name, tag_, count_);
  return tags_->contains(text);
}

/// Adds the word of a line; false for a line that has none.
bool TagFile::add(std::string_view line, TaggedSentence& sentence) {
  require_utf8(line, [&] { return lines_.where(); });
  split_columns(line, cells_);
  if ((is_conllu_ || sentence.words.empty()) && is_comment(line)) {
    if (!is_conllu_ && comments_.count++ == 0) comments_.first = lines_.where();
    return false;
  }
  if (!is_conllu_ && cells_[0] == "-DOCSTART-") return false;
  if (count_ == 0) count_ = cells_.size();
  if (cells_.size() != count_)
    fail<DataError>(lines_.where(), ": has ", counted(cells_.size(), "column"), ", the first word has ", count_,
                    "; write the same number for every word");
  if (is_conllu_ && cells_[0].find_first_of("-.") != std::string_view::npos) return false;
  if (sentence.words.empty()) sentence.line = lines_.number;
  sentence.words.emplace_back(cell(word_));
  if (!has_tags()) return true;
  sentence.tags.emplace_back(without_white_space_around(cell(tag_)));
  if (sentence.tags.back().empty())
    fail<DataError>(lines_.where(), ": the word '", shortened(sentence.words.back()),
                    "' has an empty tag; give it one");
  return true;
}

bool TagFile::next(TaggedSentence& sentence) {
  sentence = {};
  for (std::string_view line; lines_.next(line);) {
    if (!ends_sentence(line))
      add(line, sentence);
    else if (!sentence.words.empty())
      return true;
  }
  return !sentence.words.empty();
}

void TagCheck::add(const std::vector<std::string>& tags, const std::string& where) {
  if (scheme_ == TagScheme::none) return;
  const auto form = form_of(scheme_);
  PhraseTag before{'O', {}};
  const auto is_open = [&](const PhraseTag& tag) {  // the phrase goes on after it, or may
    return tag.letter == 'B' || tag.letter == 'I';
  };
  const auto note = [&](const std::string& tag) {
    if (broken_++ == 0) first_ = concat(where, " ('", shortened(tag), "')");
  };
  for (const auto& text : tags) {
    const auto tag = phrase_tag(text, scheme_, where);
    const bool goes_on = tag.letter == 'I' || tag.letter == 'E';
    const bool fits = goes_on && is_open(before) && before.type == tag.type;
    if ((form.begins && goes_on && !fits) || (form.ends && is_open(before) && !fits)) note(text);
    before = tag;
  }
  if (form.ends && is_open(before)) note(tags.back());
}

std::string TagCheck::note() const {
  if (broken_ == 0) return "";
  return concat(counted(broken_, "tag"), broken_ == 1 ? " breaks " : " break ", name_of(scheme_), ", first ", first_);
}

}  // namespace cloze
