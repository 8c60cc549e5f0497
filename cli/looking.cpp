#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/engine.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "data/tokenizer.h"

namespace cloze {

namespace {

using nlohmann::json;

struct Counted {
  uint64_t texts = 0, bytes = 0, tokens = 0, unknown = 0;
};

void tokenize(const Tokenizer& tokenizer, const std::string& text, bool as_json, Counted& counted) {
  const auto pieces = tokenizer.encode_with_offsets(text);
  ++counted.texts, counted.bytes += text.size(), counted.tokens += pieces.size();
  for (const auto& piece : pieces) counted.unknown += piece.id == tokenizer.special().unk;
  if (as_json) {
    json ids = json::array(), names = json::array(), places = json::array();
    for (const auto& piece : pieces)
      ids.push_back(piece.id), names.push_back(tokenizer.piece(piece.id)), places.push_back({piece.begin, piece.end});
    std::printf("%s\n", json{{"text", text}, {"ids", ids}, {"pieces", names}, {"offsets", places}}
                            .dump(-1, ' ', false, json::error_handler_t::replace)
                            .c_str());
    return;
  }
  std::printf("%8s  %-24s %s\n", "id", "piece", "bytes");
  for (const auto& piece : pieces)
    std::printf("%8d  %-24s %zu..%zu  %s\n", piece.id, tokenizer.piece(piece.id).c_str(), piece.begin, piece.end,
                text.substr(piece.begin, piece.end - piece.begin).c_str());
}

void add_inspect(CLI::App& app, Globals& globals) {
  auto* inspect = app.add_subcommand("inspect", "look at what a config does to text");
  inspect->require_subcommand(1);
  inspect->footer("Example:\n  cloze inspect objective configs/bert/tiny.yaml --set data.tokens=tokens");
  auto* objective = inspect->add_subcommand(
      "objective", "real examples, then statistics held against the rules; exit 1 when one is broken");
  auto file = std::make_shared<std::string>();
  auto set = std::make_shared<std::vector<std::string>>();
  auto command = std::make_shared<InspectCommand>();
  objective->add_option("config", *file, "YAML file")->required();
  objective->add_option("--set", *set, "override: key.of.value=value")->allow_extra_args(false);
  objective->add_option("--examples", command->examples, "sequences to show")->capture_default_str();
  objective->add_option("--sequences", command->sequences, "sequences to count over")->capture_default_str();
  objective->add_option("--picture", command->picture, "histograms of lengths, an .svg or .png file");
  objective->add_flag("--json", command->json, "one line of JSON on standard output");
  objective->footer(
      "Example:\n  cloze inspect objective configs/bert/tiny.yaml --set data.tokens=tokens --picture lengths.svg");
  objective->callback([=, &globals] {
    command->config = read_config(*file, *set);
    globals.exit_code = run_engine(*command);
  });
}

}  // namespace

void add_looking_verbs(CLI::App& app, Globals& globals) {
  add_inspect(app, globals);
  auto* verb = app.add_subcommand("tokenize", "pieces, ids and places of a text");
  auto path = std::make_shared<std::string>();
  auto texts = std::make_shared<std::vector<std::string>>();
  auto as_json = std::make_shared<bool>(false);
  verb->add_option("tokenizer", *path, "folder or file of a tokenizer; a run's or prepared folder's is its `tokenizer`")
      ->required();
  verb->add_option("text", *texts, "texts; without any, the lines of standard input");
  verb->add_flag("--json", *as_json, "one line of JSON for each text");
  verb->footer("Example:\n  cloze tokenize tokens/tokenizer \"the mouse ate the cheese\"");
  verb->callback([=] {
    const auto tokenizer = Tokenizer::open(*path);
    Counted counted;
    for (auto& text : *texts) {
      if (!text.empty() && text[0] == bracket_guard) text.erase(0, 1);
      tokenize(tokenizer, text, *as_json, counted);
    }
    if (texts->empty()) {
      const InterruptibleReads may_wait;
      for (std::string line; !interrupted && std::getline(std::cin, line);)
        tokenize(tokenizer, line, *as_json, counted);
      if (interrupted) throw Interrupted("stopped before the end of standard input");
    }
    if (*as_json) return;
    const double tokens = static_cast<double>(std::max<uint64_t>(counted.tokens, 1));
    std::printf("%llu texts, %llu tokens, %.2f bytes a token, %.2f %% unknown\n",
                static_cast<unsigned long long>(counted.texts), static_cast<unsigned long long>(counted.tokens),
                static_cast<double>(counted.bytes) / tokens, 100 * static_cast<double>(counted.unknown) / tokens);
  });
}

}  // namespace cloze
