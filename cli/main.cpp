#include <gperftools/malloc_extension.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "cli/verbs.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"

namespace {

/// LibTorch appends its own stack to a message.
std::string first_lines(const std::string& text) {
  const auto stack = std::min(text.find("\nException raised from"), text.find("\nframe #"));
  return text.substr(0, stack);
}

/// Usage errors of CLI11, with the nearest word where one was mistyped.
std::string usage_words(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  std::vector<std::string> known;
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  for (const auto* sub : at->get_subcommands(nullptr)) known.push_back(sub->get_name());
  for (const auto* option : at->get_options()) known.push_back(option->get_name());
  const auto colon = text.find("not expected: ");
  if (colon != std::string::npos) {
    const auto end = text.find(' ', colon + 14);
    const std::string word = text.substr(colon + 14, end == std::string::npos ? end : end - colon - 14);
    text = "'" + word + "' is not known here" + cloze::did_you_mean(word, known);
  }
  const std::string verb = at == &app ? "" : " " + at->get_name();
  return text + (text.find('?') == std::string::npos ? "; " : " ") + "see cloze" + verb + " --help";
}

/// A first word that names no verb is refused; CLI11 would pass it over beside --help or flags.
void check_verb(const CLI::App& app, int argc, char** argv) {
  const auto* found = std::find_if(argv + 1, argv + argc, [](const char* argument) { return argument[0] != '-'; });
  if (found == argv + argc) return;
  const std::string first_word = *found;
  std::vector<std::string> known;
  for (const auto* verb : app.get_subcommands(nullptr)) known.push_back(verb->get_name());
  if (std::find(known.begin(), known.end(), first_word) != known.end()) return;
  const auto near = cloze::did_you_mean(first_word, known);
  throw cloze::ConfigError("'" + first_word + "' is not a verb" + (near.empty() ? ";" : near) + " see cloze --help");
}

/// Whole numbers that are too large for their option are refused; CLI11 would take the nearest.
void check_numbers(CLI::App& app) {
  for (auto* option : app.get_options()) {
    const auto type = option->get_type_name();
    if (type != "INT" && type != "UINT") continue;
    option->check(
        [type](const std::string& text) -> std::string {
          const auto begin = text.data() + (!text.empty() && text[0] == '+'), end = text.data() + text.size();
          int64_t whole = 0;
          uint64_t natural = 0;
          const auto [at, trouble] =
              type == "INT" ? std::from_chars(begin, end, whole) : std::from_chars(begin, end, natural);
          if (trouble == std::errc() && at == end) return {};
          return "'" + text + "' is not a whole number" +
                 (type == "UINT" ? " from 0 to 18446744073709551615" : " that fits 64 bits");
        },
        "");
  }
  for (auto* verb : app.get_subcommands(nullptr)) check_numbers(*verb);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cloze;
  if (!std::getenv("TCMALLOC_RELEASE_RATE"))
    MallocExtension::instance()->SetMemoryReleaseRate(
        0);  // what a step frees the next one takes: handing it back costs page faults
  install_interrupt_handlers();
  Globals globals;
  globals.program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (int i = 0; i < argc; ++i) globals.command_line += (i ? " " : "") + std::string(argv[i]);

  CLI::App app{
      "Cloze pretrains language models: text in, a checked and exported model out.\n"
      "\n  cloze prepare book.txt --out tokens\n  cloze pretrain configs/bert/tiny.yaml --set data.tokens=tokens --run "
      "runs/first\n"
      "  cloze fill runs/first \"the mouse [MASK] the cheese\"\n",
      "cloze"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("cloze ") + CLOZE_VERSION);
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 the command or a config was wrong, 130 stopped after everything was saved.");
  app.fallthrough();
  bool quiet = false, verbose = false;
  app.add_flag("--quiet", quiet, "only warnings and results");
  app.add_flag("--verbose", verbose, "also what is done in passing");
  app.parse_complete_callback([&] {
    set_log_level(quiet ? LogLevel::quiet : verbose ? LogLevel::verbose : LogLevel::normal);
  });
  add_prepare(app, globals);
  add_training_verbs(app, globals);
  add_model_verbs(app, globals);
  add_generate(app, globals);
  add_looking_verbs(app, globals);
  add_config_verbs(app, globals);
  add_completion(app, globals);
  check_numbers(app);
  int code = 1;
  try {
    std::vector<std::string> arguments;  // in reverse, as CLI11 wants them
    for (int i = argc - 1; i > 0; --i)
      arguments.push_back(argv[i][0] == '[' ? bracket_guard + std::string(argv[i]) : argv[i]);
    check_verb(app, argc, argv);
    app.parse(arguments);
    code = globals.exit_code;
  } catch (const CLI::Success& asked) {  // --help, --version
    code = app.exit(asked);
  } catch (const CLI::ParseError& error) {
    end_progress();
    std::fprintf(stderr, "cloze: error: %s\n", usage_words(app, error).c_str());
    code = 2;
  } catch (const Error& error) {
    end_progress();
    std::fprintf(stderr, "cloze: %s%s\n", error.exit_code() == 130 ? "" : "error: ", error.what());
    code = error.exit_code();
  } catch (const std::bad_alloc&) {
    end_progress();
    std::fprintf(
        stderr,
        "cloze: error: out of memory; take smaller batches (train.batch_size), or train.gradient_checkpointing=true\n");
  } catch (const std::exception& error) {
    end_progress();
    std::fprintf(stderr, "cloze: error: %s\nThis is a bug in Cloze; please report it with the command and its input.\n",
                 first_lines(error.what()).c_str());
  }
  if (const bool written = std::ferror(stdout) == 0; (std::fflush(stdout) != 0 || !written) && code == 0) {
    std::fprintf(stderr, "cloze: error: standard output cannot be written%s; what stands there is not all\n",
                 written ? words(" (", system_reason(), ")").c_str() : "");
    code = 1;
  }
  std::fflush(nullptr);
  _exit(code);  // nothing is left to do, and unloading LibTorch takes longer than a verb like `fill`
}
