#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "cli/engine.h"
#include "cli/verbs.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

/// The lines of a file, or of standard input (`-`). Throws DataError.
std::vector<std::string> lines_of(const std::string& file) {
  const bool piped = file == "-";
  const auto name = piped ? std::string("standard input") : file;
  std::ifstream stream;
  if (!piped) {
    require<DataError>(!std::filesystem::is_directory(file), file, ": is a folder; name a file with one text per line");
    stream.open(file);
    require<DataError>(stream.good(), file, ": cannot be read (", system_reason(), ")");
  }
  const InterruptibleReads may_wait;  // for a pipe
  std::vector<std::string> lines;
  for (std::string line; !interrupted && std::getline(piped ? std::cin : static_cast<std::istream&>(stream), line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
    const auto bad = find_invalid_utf8(line);
    require<DataError>(bad == std::string::npos, name, ":", lines.size(), ": byte ", bad + 1,
                       " is not UTF-8; convert the text to UTF-8");
  }
  if (interrupted) throw Interrupted("stopped; nothing was written to a file");
  require<DataError>(!lines.empty(), name, ": is empty; write one text per line");
  return lines;
}

/// True if standard input is a pipe or a file.
bool texts_are_piped() {
  struct stat about{};
  return fstat(STDIN_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISREG(about.st_mode));
}

}  // namespace

void add_generate(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("generate", "generate text with a decoder");
  auto c = std::make_shared<GenerateCommand>();
  auto file = std::make_shared<std::string>();
  verb->add_option("run", c->run, run_help)->required();
  verb->add_option("text", c->texts, "prompts (gpt2), or texts for the encoder");
  verb->add_option("--file", *file,
                   "file with one text per line, or - for standard input (default without texts: standard input, if "
                   "piped)");
  add_search_options(*verb, c->search, c->batch_size);
  verb->add_option("--num-return-sequences", c->search.num_return_sequences, "texts per prompt, best first")
      ->capture_default_str();
  verb->add_flag("--json", c->json,
                 "print one line of JSON per prompt: prompt, prompt_ids, generated (text, ids, score)");
  verb->footer(
      "Examples:\n  cloze generate runs/gpt2 \"In the beginning\" --sample --top-p 0.9\n"
      "  cloze generate runs/en-de --file test.en --num-beams 4 > test.de\n\n"
      "Without beam search, a single text is printed token by token.");
  verb->callback([c, file, verb, &globals] {
    check_search_options(*verb, c->search);
    for (auto& line : c->texts) {
      if (!line.empty() && line[0] == bracket_guard) line.erase(0, 1);
      check_text(line);
    }
    if (!file->empty()) {
      require<ConfigError>(c->texts.empty(), "texts are given both as arguments and by --file; use one of them");
      c->texts = lines_of(*file);
    } else if (c->texts.empty() && texts_are_piped()) {
      c->texts = lines_of("-");
    }
    if (c->texts.empty()) c->texts.emplace_back();  // an empty prompt
    globals.exit_code = run_engine(*c);
  });
}

}  // namespace cloze
