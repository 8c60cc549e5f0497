#include "cli/command.h"
#include "cli/paths.h"
#include "cli/verbs.h"

namespace cloze {

void add_generate(CLI::App& app, Globals& globals) {
  auto* verb = app.add_subcommand("generate", "generate text with a decoder");
  auto c = std::make_shared<GenerateCommand>();
  auto file = std::make_shared<std::string>();
  verb->add_option("run", c->run, run_help)->required();
  verb->add_option("text", c->texts, "prompts (gpt2), or texts for the encoder");
  verb->add_option("--file", *file,
                   "file with one text per line, or - for standard input (default without texts: standard input, if "
                   "piped)");
  add_checkpoint_option(*verb, c->checkpoint);
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
    check_run_first(c->run, c->texts);
    check_search_options(*verb, c->search);
    for (const auto& text : c->texts) {
      check_text(text);
      check_is_no_file(text, text == "-" ? "is standard input, not a text" : "is a file, not a text", "continued",
                       ", and a prompt of that name by a pipe");
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
