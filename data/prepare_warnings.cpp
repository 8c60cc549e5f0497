#include "data/prepare_warnings.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "core/shell_word.h"
#include "core/text.h"
#include "data/line_reader.h"
#include "data/text_lines.h"

namespace cloze {

namespace {

void warn_of_duplicates(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (options.dedup) {
    log_info("data", words(counted(split.removed, "document"), " of the text and ", thousands(split.removed_valid),
                           " of held-out text ", split.removed + split.removed_valid == 1 ? "was" : "were",
                           " removed as duplicates or near-duplicates"));
    return;
  }
  const uint64_t copies = split.copies + split.near_duplicates;
  if (copies * 20 > split.documents.size())
    log_warning("data", words(thousands(copies), " of ", counted(split.documents.size(), "document"),
                              copies == 1 ? " is a duplicate or near-duplicate of another; a model memorizes it: "
                                          : " are duplicates or near-duplicates of another; a model memorizes them: ",
                              "remove ", copies == 1 ? "it" : "them", " with --dedup"));
  if (split.leaked > 0)
    log_warning("data", words(thousands(split.leaked), " of ", counted(report.valid_documents, "held-out document"),
                              split.leaked == 1 ? " has" : " have",
                              " a duplicate or near-duplicate in the training text, which makes held-out losses too "
                              "low; remove it there with --dedup"));
}

/// Warns if the held-out share is far from the requested one.
void warn_of_share(double asked, const PrepareReport& report) {
  const double all = static_cast<double>(report.tokens + report.valid_tokens);
  const double share = static_cast<double>(report.valid_tokens) / all;
  if (share <= 2 * asked && share >= asked / 2) return;
  char text[160];
  std::snprintf(
      text, sizeof text,
      "%.3g %% of the tokens are held out, %.3g %% were requested: the documents are too few, or too long, to "
      "come closer",
      100 * share, 100 * asked);
  log_warning("data", text);
}

/// A line that is not blank, without the white space around it.
std::string_view trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t");
  return line.substr(first, last - first + 1);
}

/// Whether a line begins with a text in lower case, whatever the case of its own letters.
bool begins_with(std::string_view line, std::string_view text) {
  const auto is_same = [](char given, char own) { return std::tolower(static_cast<unsigned char>(own)) == given; };
  return line.size() >= text.size() && std::equal(text.begin(), text.end(), line.begin(), is_same);
}

/// Whether a line begins with a tag or a comment of HTML or XML.
bool has_markup(std::string_view line) {
  return line.size() > 1 && line[0] == '<' &&
         (std::isalpha(static_cast<unsigned char>(line[1])) != 0 || std::string_view("/!?").find(line[1]) != line.npos);
}

/// What the first line of a file says that is no prose; empty where it says nothing.
std::string seems_to_begin(std::string_view line, const std::string& file) {
  if (line.starts_with("{\\rtf")) return "RTF";
  const auto next = line.substr(1);
  const bool is_list = line[0] == '[' && (is_blank(next) || std::string_view("{[\"").find(next[0]) != next.npos);
  const bool is_object = line[0] == '{' && !nlohmann::json::accept(line);  // a whole object is read as JSON lines
  if (is_list || is_object) return "JSON";
  if (begins_with(line, "<!doctype html") || begins_with(line, "<html")) return "HTML";
  const auto name = unpacked_name(file);
  const bool named_table = name.ends_with(".csv") || name.ends_with(".tsv");
  return named_table || std::count(line.begin(), line.end(), '\t') > 1 ? "a table" : "";
}

/// Whether a line is two columns. A speaker before the text, as in transcripts (`*MOT:`), is no column.
bool has_two_columns(std::string_view line) {
  const auto tab = line.find('\t');
  return tab != line.npos && line.find('\t', tab + 1) == line.npos && line[tab - 1] != ':';
}

/// Commas between the cells of a line, those in quotes not counted; none for a line that reads as a sentence: with a
/// space after a comma and a stop at its end.
int separating_commas(std::string_view line) {
  const bool is_sentence = line.find(", ") != line.npos && std::string_view(".!?").find(line.back()) != line.npos;
  int commas = 0;
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"') is_quoted = !is_quoted;
    commas += c == ',' && !is_quoted ? 1 : 0;
  }
  return is_sentence ? 0 : commas;
}

/// Whether most lines have the same number of commas, two or more. `lines`: how many lines have each number of them.
bool are_rows(const std::map<int, int>& lines) {
  constexpr int enough = 8;
  int all = 0, rows = 0;
  for (const auto& [commas, count] : lines) {
    all += count;
    if (commas > 1) rows = std::max(rows, count);
  }
  return rows >= enough && 5 * rows >= 4 * all;
}

/// What a text looks like that is no prose, though it would be read as prose; empty for prose.
std::string seems_to_be(const std::string& file) {
  constexpr int enough = 4, looked_at = 50;  // lines that are a table or markup, and lines to look at
  LineReader lines(file);
  std::string_view line;
  int seen = 0, columns = 0, markup = 0;
  bool is_markup = true;  // at least every other line so far
  std::map<int, int> with_commas;
  while (seen < looked_at && lines.next(line)) {
    if (is_blank(line)) continue;
    const auto text = trimmed(line);
    if (seen == 0) {
      if (text.starts_with("<doc id=")) return "";
      if (const auto kind = seems_to_begin(text, file); !kind.empty()) return kind;
    }
    ++seen;
    columns += has_two_columns(text) ? 1 : 0;
    markup += has_markup(text) ? 1 : 0;
    is_markup = is_markup && 2 * markup >= seen;
    ++with_commas[separating_commas(text)];
  }
  if (columns == seen && columns >= enough) return "a table";
  if (is_markup && markup >= enough) return "HTML or XML";
  return are_rows(with_commas) ? "a table" : "";
}

/// How a text that is no prose is read as what it is.
const char* way_out(const std::string& kind) {
  if (kind == "RTF") return "save it as plain text (UTF-8)";
  return kind.starts_with("HTML") ? "extract its text with a program for that"
                                  : "write its text as JSON lines, or as pairs with --format pairs";
}

/// Warns of tokens that cover too little text each.
void warn_of_rate(const PrepareOptions& options, const PrepareReport& report) {
  constexpr uint64_t few_tokens = 1000;  // too few for a rate
  constexpr int64_t few_pieces = 256;    // asked for: such a vocabulary has little but characters
  const bool is_trained = options.tokenizer.empty();
  const uint64_t tokens = report.tokens + (options.valid_inputs.empty() ? report.valid_tokens : 0);
  if (tokens <= few_tokens || 3 * tokens <= 2 * report.bytes) return;
  if (is_trained && options.vocab_size < few_pieces) return;
  char rate[32];
  std::snprintf(rate, sizeof rate, "%.2f", static_cast<double>(report.bytes) / static_cast<double>(tokens));
  log_warning("data", words("a token covers ", rate,
                            " bytes of text, where 3 to 5 are usual; the tokenizer does not fit the text: ",
                            is_trained ? "raise --vocab-size, or name more text to train it on"
                                       : "train one with --train, or name another --tokenizer"));
}

/// The command that converts a text of one byte a character.
std::string conversion_of(const std::string& file) {
  constexpr const char* filter = "iconv -f latin1 -t utf-8";
  std::error_code ignored;  // of a stream, which is no file
  const bool is_plain = std::filesystem::is_regular_file(file, ignored) && unpacked_name(file) == file;
  if (!is_plain) return words("... | ", filter, " | ...");
  return words(filter, " ", shell_word(file), " > ", shell_word(file + ".txt"));
}

/// Warns of bytes that were replaced, with the first of their lines.
void warn_of_invalid_utf8(const PrepareOptions& options, const PrepareReport& report) {
  if (report.invalid_utf8 == 0) return;
  const bool is_one = report.invalid_utf8 == 1;
  const auto& [file, line] = report.first_invalid;
  log_warning("data", words(counted(report.invalid_utf8, "invalid UTF-8 sequence"), is_one ? " was" : " were",
                            " replaced by U+FFFD, ", is_one ? "" : "the first ", "in ", file, ":", line,
                            "; if the text has another encoding, convert it (Latin-1: ", conversion_of(file), ")",
                            options.for_scoring ? "" : ", or have such lines refused with --invalid-utf8 refuse"));
}

}  // namespace

void warn_of_text(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (!options.for_scoring) warn_of_duplicates(options, split, report);
  if (options.valid_inputs.empty() && options.held_out > 0 && split.documents.size() > 1)
    warn_of_share(options.held_out, report);
  if (report.incomplete_pairs > 0)
    log_warning("data", words(counted(report.incomplete_pairs, "pair"), report.incomplete_pairs == 1
                                                                            ? " lacks a side and was skipped"
                                                                            : " lack a side and were skipped"));
  warn_of_invalid_utf8(options, report);
  warn_of_rate(options, report);
  const uint64_t all_tokens = report.tokens + report.valid_tokens;  // as unknown tokens are counted
  if (report.unknown_tokens * 20 > all_tokens)
    log_warning("data",
                words(thousands(report.unknown_tokens), " of ", counted(all_tokens, "token"),
                      report.unknown_tokens == 1 ? " is" : " are", " unknown; the tokenizer does not fit the text"));
}

void warn_of_tables(const PrepareOptions& options) {
  constexpr size_t looked_at = 8;
  if (options.format != TextFormat::automatic) return;
  for (size_t i = 0; i < std::min(options.inputs.size(), looked_at); ++i) {
    const auto& file = options.inputs[i];
    const auto name = unpacked_name(file);
    if (!can_be_read_again(file) || name.ends_with(".jsonl") || name.ends_with(".ndjson")) continue;
    const auto kind = seems_to_be(file);
    if (kind.empty()) continue;
    log_warning("data", words(file, " looks like ", kind, " and is read as prose, markup and all; ", way_out(kind),
                              ", or confirm it with --format text"));
    return;
  }
}

}  // namespace cloze
