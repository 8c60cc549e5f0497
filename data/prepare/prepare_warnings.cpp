#include "data/prepare/prepare.h"

#include <cstdio>

#include "core/log.h"
#include "core/text.h"
#include "data/prepare/split.h"

namespace cloze {

namespace {

void warn_of_duplicates(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (options.dedup) {
    log_info("data", concat(counted(split.removed, "document"), " of the text and ", thousands(split.removed_valid),
                            " of held-out text ", split.removed + split.removed_valid == 1 ? "was" : "were",
                            " removed as duplicates or near-duplicates"));
    return;
  }
  const uint64_t copies = split.copies + split.near_duplicates;
  if (copies * 20 > split.documents.size())
    log_warning("data", concat(thousands(copies), " of ", counted(split.documents.size(), "document"),
                               copies == 1 ? " is a duplicate or near-duplicate of another; a model memorizes it: "
                                           : " are duplicates or near-duplicates of another; a model memorizes them: ",
                               "remove ", copies == 1 ? "it" : "them", " with --dedup"));
  if (split.leaked > 0)
    log_warning("data", concat(thousands(split.leaked), " of ", counted(report.valid_documents, "held-out document"),
                               split.leaked == 1 ? " has" : " have",
                               " a duplicate or near-duplicate in the training text, which makes held-out losses too "
                               "low; remove it there with --dedup"));
}

/// Warns if the held-out share is far from the requested one.
void warn_of_fraction(double wanted, const PrepareReport& report) {
  const double all = static_cast<double>(report.tokens + report.valid_tokens);
  const double fraction = static_cast<double>(report.valid_tokens) / all;
  if (fraction <= 2 * wanted && fraction >= wanted / 2) return;
  char text[160];
  std::snprintf(
      text, sizeof text,
      "%.3g %% of the tokens are held out, %.3g %% were requested: the documents are too few, or too long, to "
      "come closer",
      100 * fraction, 100 * wanted);
  log_warning("data", text);
}

/// Warns of tokens that cover too little text each.
void warn_of_rate(const PrepareOptions& options, const PrepareReport& report) {
  constexpr uint64_t few_tokens = 1000;  // too few for a rate
  constexpr int64_t few_pieces = 256;    // wanted for: such a vocabulary has little but characters
  const bool is_trained = options.tokenizer.empty();
  const uint64_t tokens = report.tokens + (options.valid_inputs.empty() ? report.valid_tokens : 0);
  if (tokens <= few_tokens || 3 * tokens <= 2 * report.bytes) return;
  if (is_trained && options.vocab_size < few_pieces) return;
  const auto rate = fixed(static_cast<double>(report.bytes) / static_cast<double>(tokens), 2);
  log_warning("data", concat("a token covers ", rate,
                             " bytes of text, where 3 to 5 are usual; the tokenizer does not fit the text: ",
                             is_trained ? "raise --vocab-size, or name more text to train it on"
                                        : "train one with --train, or name another --tokenizer"));
}

/// Warns of bytes that were replaced, with the first of their lines.
void warn_of_invalid_utf8(const PrepareOptions& options, const PrepareReport& report) {
  if (report.invalid_utf8 == 0) return;
  const bool is_one = report.invalid_utf8 == 1;
  const auto& [file, line] = report.first_invalid;
  log_warning("data", concat(counted(report.invalid_utf8, "invalid UTF-8 sequence"), is_one ? " was" : " were",
                             " replaced by U+FFFD, ", is_one ? "" : "the first ", "in ", file, ":", line,
                             "; if the text has another encoding, ",
                             options.for_scoring ? "convert it (iconv -f latin1 -t utf-8)"
                                                 : "name it (--encoding latin1), or have such lines refused with "
                                                   "--invalid-utf8 refuse"));
}

/// Warns of lines of JSON that were skipped, with the first of them.
void warn_of_skipped_lines(const PrepareReport& report) {
  if (report.skipped_lines == 0) return;
  const bool is_one = report.skipped_lines == 1;
  const auto& [file, line] = report.first_skipped;
  log_warning("data", concat(counted(report.skipped_lines, "line"), " of JSON ", is_one ? "was" : "were", " skipped, ",
                             is_one ? "" : "the first ", "in ", file, ":", line,
                             ": bytes that are not UTF-8, or an escaped half of a character; write the text as UTF-8"));
}

/// Warns of rows of tables, and of JSON lines, that have no text, with the first of them.
void warn_of_null_rows(const PrepareReport& report) {
  if (report.null_rows == 0) return;
  const bool is_one = report.null_rows == 1;
  const auto& [file, row] = report.first_null;
  log_warning("data",
              concat(counted(report.null_rows, "row"), is_one ? " has" : " have", " no text but null, ",
                     is_one ? "" : "the first ", "in ", file, ":", row, ", and ", is_one ? "is" : "are", " left out"));
}

/// Logs how many documents of each source are held out, where there are several, and not as many as files of a corpus.
void say_held_out(const PrepareReport& report) {
  constexpr size_t most = 10;
  std::vector<std::string> counts;
  for (const auto& [source, documents] : report.held_out)
    counts.push_back(concat(documents == 0 ? "none" : thousands(documents), " of ", source));
  if (report.valid_documents > 0 && !counts.empty() && counts.size() <= most)
    log_info("data", concat("documents held out: ", listed(counts)));
}

}  // namespace

void warn_of_text(const PrepareOptions& options, const Split& split, const PrepareReport& report) {
  if (!options.for_scoring) warn_of_duplicates(options, split, report);
  const bool is_held_out = options.valid_inputs.empty() && options.held_out > 0 && !options.for_scoring;
  if (is_held_out && report.valid_tokens == 0)
    log_warning("data", concat("no text is held out, which pretrain needs to measure losses: the text is one ",
                               options.format == TextFormat::pairs
                                   ? "pair; name held-out pairs with --valid"
                                   : "document without stops or line ends to divide it at; name held-out text with "
                                     "--valid, or break the text into lines"));
  else if (is_held_out && split.documents.size() > 1)
    warn_of_fraction(options.held_out, report);
  if (report.incomplete_pairs > 0)
    log_warning("data", concat(counted(report.incomplete_pairs, "pair"), report.incomplete_pairs == 1
                                                                             ? " lacks a side and was skipped"
                                                                             : " lack a side and were skipped"));
  say_held_out(report);
  warn_of_invalid_utf8(options, report);
  warn_of_skipped_lines(report);
  warn_of_null_rows(report);
  warn_of_rate(options, report);
  const uint64_t all_tokens = report.tokens + report.valid_tokens;  // as unknown tokens are counted
  if (report.unknown_tokens * 20 > all_tokens)
    log_warning("data",
                concat(thousands(report.unknown_tokens), " of ", counted(all_tokens, "token"),
                       report.unknown_tokens == 1 ? " is" : " are", " unknown; the tokenizer does not fit the text"));
}

}  // namespace cloze
