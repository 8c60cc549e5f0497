#include "data/prepare_warnings.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "data/line_reader.h"
#include "data/text_lines.h"

namespace cloze {

namespace {

void warn_of_duplicates(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (options.dedup) {
    log_info("data", words(thousands(split.removed), " documents of the text and ", thousands(split.removed_valid),
                           " of held-out text were removed as duplicates or near-duplicates"));
    return;
  }
  const uint64_t copies = split.copies + split.near_duplicates;
  if (copies * 20 > split.documents.size())
    log_warning("data", words(thousands(copies), " of ", thousands(split.documents.size()),
                              " documents are duplicates or near-duplicates of another; a model memorizes them: remove "
                              "them with --dedup"));
  if (split.leaked > 0)
    log_warning("data", words(thousands(split.leaked), " of ", thousands(report.valid_documents),
                              " held-out documents have a duplicate or near-duplicate in the training text, "
                              "which makes held-out losses too low; remove it there with --dedup"));
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

/// What a text looks like that is no prose, though it would be read as prose; empty for prose.
std::string seems_to_be(const std::string& file) {
  LineReader lines(file);
  std::string_view line;
  while (lines.next(line))
    if (!is_blank(line)) break;
  const auto first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line.starts_with("<doc id=")) return "";
  const auto next = line.substr(first + 1);
  const bool is_list = line[first] == '[' && (is_blank(next) || std::string_view("{[\"").find(next[0]) != next.npos);
  const bool is_object = line[first] == '{' && !nlohmann::json::accept(line);  // a whole object is read as JSON lines
  if (is_list || is_object) return "JSON";
  const bool named_table = file.ends_with(".csv") || file.ends_with(".tsv");
  return named_table || std::count(line.begin(), line.end(), '\t') > 1 ? "a table" : "";
}

}  // namespace

void warn_of_text(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (!options.for_scoring) warn_of_duplicates(options, split, report);
  if (options.valid_inputs.empty() && options.held_out > 0 && split.documents.size() > 1)
    warn_of_share(options.held_out, report);
  if (report.incomplete_pairs > 0)
    log_warning("data", words(thousands(report.incomplete_pairs), " pairs lack a side and were skipped"));
  if (report.invalid_utf8 > 0)
    log_warning("data", words(thousands(report.invalid_utf8), " invalid UTF-8 sequences were replaced by U+FFFD"));
  const uint64_t tokens = report.tokens + (options.valid_inputs.empty() ? report.valid_tokens : 0);
  constexpr uint64_t few_tokens = 1000;  // too few for a rate
  if (!options.tokenizer.empty() && tokens > few_tokens && 3 * tokens > 2 * report.bytes) {
    char rate[32];
    std::snprintf(rate, sizeof rate, "%.2f", static_cast<double>(report.bytes) / static_cast<double>(tokens));
    log_warning("data", words("a token covers ", rate,
                              " bytes of text; the tokenizer does not fit the text, which 3 to 5 "
                              "bytes would: train one with --train, or name another --tokenizer"));
  }
  const uint64_t all_tokens = report.tokens + report.valid_tokens;  // as unknown tokens are counted
  if (report.unknown_tokens * 20 > all_tokens)
    log_warning("data", words(thousands(report.unknown_tokens), " of ", thousands(all_tokens),
                              " tokens are unknown; the tokenizer does not fit the text"));
}

void warn_of_tables(const PrepareOptions& options) {
  constexpr size_t looked_at = 8;
  if (options.format != TextFormat::automatic) return;
  for (size_t i = 0; i < std::min(options.inputs.size(), looked_at); ++i) {
    const auto& file = options.inputs[i];
    if (!can_be_read_again(file) || file.ends_with(".jsonl") || file.ends_with(".ndjson")) continue;
    const auto kind = seems_to_be(file);
    if (kind.empty()) continue;
    log_warning("data", words(file, " looks like ", kind,
                              " and is read as prose, markup and all; write its text as JSON "
                              "lines, or as pairs with --format pairs, or confirm it with --format text"));
    return;
  }
}

}  // namespace cloze
