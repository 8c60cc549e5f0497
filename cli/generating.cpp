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

void add_search_options(CLI::App& verb, SearchConfig& s, int64_t& batch_size) {
  verb.add_option("--max-new-tokens", s.max_new_tokens, "most tokens to write")->capture_default_str();
  verb.add_option("--min-new-tokens", s.min_new_tokens, "no end before these")->capture_default_str();
  verb.add_option("--num-beams", s.num_beams, "texts that are followed at once; 1 = always the likeliest token")
      ->capture_default_str();
  verb.add_option("--length-penalty", s.length_penalty, "beams: a text's score is divided by its length to this power")
      ->capture_default_str();
  verb.add_option("--early-stopping", s.early_stopping,
                  "beams: true = at num-beams finished texts, false = when better ones are unlikely, never = when "
                  "there can be none")
      ->check(CLI::IsMember({"true", "false", "never"}))
      ->capture_default_str();
  verb.add_option("--num-beam-groups", s.num_beam_groups, "groups of beams that are kept apart by --diversity-penalty")
      ->capture_default_str();
  verb.add_option("--diversity-penalty", s.diversity_penalty,
                  "taken off a token's score for each earlier group that chose it")
      ->capture_default_str();
  verb.add_option("--no-repeat-ngram-size", s.no_repeat_ngram_size, "no run of so many tokens twice; 0 = allowed")
      ->capture_default_str();
  verb.add_option("--repetition-penalty", s.repetition_penalty,
                  "scores of tokens that stand there already are divided by it")
      ->capture_default_str();
  verb.add_flag("--do-sample,--sample", s.do_sample, "draw tokens instead of taking the likeliest");
  verb.add_option("--temperature", s.temperature, "sampling: scores are divided by it")->capture_default_str();
  verb.add_option("--top-k", s.top_k, "sampling: from the k likeliest; 0 = all")->capture_default_str();
  verb.add_option("--top-p", s.top_p, "sampling: from the likeliest that hold this share of the mass")
      ->capture_default_str();
  verb.add_option("--typical-p", s.typical_p,
                  "sampling: from those nearest to the expected surprise that hold this share")
      ->capture_default_str();
  verb.add_option("--forced-bos-token-id", s.forced_bos_token_id, "id that is written first; -1 = none")
      ->capture_default_str();
  verb.add_option("--forced-eos-token-id", s.forced_eos_token_id,
                  "id that is written last where the text does not end by itself; -1 = none")
      ->capture_default_str();
  verb.add_option("--seed", s.seed, "of the draws")->capture_default_str();
  verb.add_option("--batch-size", batch_size, "texts that are written at once")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
}

void check_text(const std::string& text) {
  const auto bad = find_invalid_utf8(text);
  require<ConfigError>(bad == std::string::npos, "byte ", bad + 1, " of a text is not UTF-8; write it in UTF-8");
}

void check_search_options(const CLI::App& verb, const SearchConfig& s) {
  for (const char* name : {"--temperature", "--top-k", "--top-p", "--typical-p", "--seed"})
    require<ConfigError>(verb.count(name) == 0 || s.do_sample, name,
                         " is read where tokens are drawn alone; add --do-sample, or leave it out");
  for (const char* name : {"--length-penalty", "--early-stopping"})
    require<ConfigError>(verb.count(name) == 0 || s.num_beams > 1, name,
                         " is read where several texts are followed alone; give --num-beams, or leave it out");
}

namespace {

/// The lines of a file, or of standard input (`-`). Throws DataError.
std::vector<std::string> lines_of(const std::string& file) {
  const bool piped = file == "-";
  const auto name = piped ? std::string("standard input") : file;
  std::ifstream stream;
  if (!piped) {
    require<DataError>(!std::filesystem::is_directory(file), file,
                       ": is a folder; name a file with a text in each line");
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
  require<DataError>(!lines.empty(), name, ": is empty; write a text in each line");
  return lines;
}

/// Standard input is a pipe or a file, and so holds texts.
bool texts_are_piped() {
  struct stat about{};
  return fstat(STDIN_FILENO, &about) == 0 && (S_ISFIFO(about.st_mode) || S_ISREG(about.st_mode));
}

}  // namespace

void add_generate(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("generate", "text that a decoder writes");
  auto c = std::make_shared<GenerateCommand>();
  auto file = std::make_shared<std::string>();
  verb->add_option("run", c->run, "run directory, or one of its step folders")->required();
  verb->add_option("text", c->texts, "beginnings (gpt2), or what an encoder reads");
  verb->add_option("--file", *file,
                   "a text in each line; - for standard input, which is read as well where no text is given and it is "
                   "a file or a pipe");
  add_search_options(*verb, c->search, c->batch_size);
  verb->add_option("--num-return-sequences", c->search.num_return_sequences, "texts for each one given, best first")
      ->capture_default_str();
  verb->add_flag("--json", c->json,
                 "one line of JSON for each text: prompt, prompt_ids, and what was generated alone (text, ids, score)");
  verb->footer(
      "Example:\n  cloze generate runs/gpt2 \"In the beginning\" --sample --top-p 0.9\n  cloze generate runs/en-de "
      "--file test.en --num-beams 4 > test.de\n\n"
      "One text without beams appears as it is written.");
  verb->callback([c, file, verb, &globals] {
    check_search_options(*verb, c->search);
    for (auto& line : c->texts) {
      if (!line.empty() && line[0] == bracket_guard) line.erase(0, 1);
      check_text(line);
    }
    if (!file->empty()) {
      require<ConfigError>(c->texts.empty(), "texts were given both as words and by --file; give one of them");
      c->texts = lines_of(*file);
    } else if (c->texts.empty() && texts_are_piped()) {
      c->texts = lines_of("-");
    }
    if (c->texts.empty()) c->texts.emplace_back();  // from nothing
    globals.exit_code = run_engine(*c);
  });
}

}  // namespace cloze
