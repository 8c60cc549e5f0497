#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/json.h"
#include "core/print.h"
#include "core/spelling.h"
#include "core/text.h"
#include "data/tokenizer.h"
#include "run/run_tokenizer.h"

namespace cloze {

namespace {

using nlohmann::json;

struct Totals {
  uint64_t texts = 0, bytes = 0, tokens = 0, unknown = 0;
};

/// Prints the tokens of one text, and adds them to `totals`.
void tokenize(const Tokenizer& tokenizer, const std::string& text, bool as_json, Totals& totals) {
  const auto tokens = tokenizer.encode_with_offsets(text);
  ++totals.texts;
  totals.bytes += text.size();
  totals.tokens += tokens.size();
  for (const auto& token : tokens) totals.unknown += token.id == tokenizer.special().unk;
  if (as_json) {
    json ids = json::array(), names = json::array(), offsets = json::array(), words = json::array();
    for (const auto& token : tokens) {
      ids.push_back(token.id);
      names.push_back(tokenizer.piece(token.id));
      offsets.push_back({token.begin, token.end});
      words.push_back(token.word);
    }
    const json row{{"text", text}, {"ids", ids}, {"pieces", names}, {"offsets", offsets}, {"words", words}};
    print_data(json_text(row) + "\n");
    return;
  }
  print_text("      id  token                    bytes\n");
  for (const auto& token : tokens)
    print_text(concat(aligned_right(std::to_string(token.id), 8), "  ",
                      padded(visible(tokenizer.readable_piece(token.id)), 24), " ", token.begin, "..", token.end, "  ",
                      visible(text.substr(token.begin, token.end - token.begin)), "\n"));
}

}  // namespace

void add_tokenize(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("tokenize", "show the tokens, ids and byte offsets of a text");
  auto path = std::make_shared<std::string>();
  auto texts = std::make_shared<std::vector<std::string>>();
  auto as_json = std::make_shared<bool>(false);
  verb->add_option("tokenizer", *path, "tokenizer file or folder, or a run or prepared text, whose tokenizer it is")
      ->required();
  verb->add_option("text", *texts, "texts to tokenize (default: lines of standard input)");
  verb->add_flag("--json", *as_json, "print one line of JSON per text");
  verb->footer("Example:\n  cloze tokenize tokens \"the mouse ate the cheese\"");
  verb->callback([=] {
    std::ranges::for_each(*texts, check_text);
    check_tokenizer_path(*path);
    const auto folder = tokenizer_of(*path);
    const auto tokenizer = is_run_path(*path)
                               ? open_run_tokenizer(std::filesystem::path(folder).parent_path().string()).value()
                               : Tokenizer::open(folder);
    Totals totals;
    const auto tokenize_text = [&](const std::string& text) { tokenize(tokenizer, text, *as_json, totals); };
    std::ranges::for_each(*texts, tokenize_text);
    if (texts->empty()) each_line("-", tokenize_text);
    if (*as_json) return;
    const double tokens = static_cast<double>(std::max<uint64_t>(totals.tokens, 1));
    std::printf("%llu %s, %llu %s, %.2f bytes per token, %.2f %% unknown\n",
                static_cast<unsigned long long>(totals.texts), totals.texts == 1 ? "text" : "texts",
                static_cast<unsigned long long>(totals.tokens), totals.tokens == 1 ? "token" : "tokens",
                static_cast<double>(totals.bytes) / tokens, 100 * static_cast<double>(totals.unknown) / tokens);
  });
}

}  // namespace cloze
