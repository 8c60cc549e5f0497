#ifdef CLOZE_TCMALLOC
#include <gperftools/malloc_extension.h>
#include <gperftools/tcmalloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "cli/help.h"
#include "cli/near_names.h"
#include "cli/processes.h"
#include "cli/verbs.h"
#include "core/commit.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/print.h"
#include "core/process.h"
#include "core/text.h"
#include "core/worker_threads.h"

namespace {

using namespace cloze;

/// `text` without the stack trace that LibTorch appends to a message.
std::string first_lines(const std::string& text) {
  const auto stack = std::min(text.find("\nException raised from"), text.find("\nframe #"));
  return text.substr(0, stack);
}

/// Whether there was no memory, of which LibTorch and oneDNN throw plain errors.
bool is_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         std::strstr(error.what(), "DefaultCPUAllocator") != nullptr ||
         std::strcmp(error.what(), "could not create a primitive") == 0;
}

/// Prints the sentence of an error, on a line of its own.
void print_sentence(const std::string& text) {
  end_progress();
  std::fprintf(stderr, "%s\n", on_standard_error(text).c_str());
}

/// The sentence of an error of the file system.
std::string sentence_of(const std::filesystem::filesystem_error& error) {
  const auto path = error.path1().string();
  const char* remedy = "; make room or permission for it, or name another folder";
  if (error.code() == std::errc::filename_too_long) remedy = "; give it a shorter name";
  if (error.code() == std::errc::too_many_symbolic_link_levels) remedy = "; remove this link, which leads to itself";
  return (path.empty() ? "" : path + ": ") + error.code().message() + remedy;
}

/// `cloze 0.1.0 (commit HASH)`
std::string version_words() {
  const auto commit = source_commit();
  return concat("cloze ", CLOZE_VERSION, commit.empty() ? "" : concat(" (commit ", commit, ")"));
}

/// The word after --help: a part of a long help; empty for none.
std::string help_part(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i)
    if (const std::string word = argv[i]; word == "--help" || word == "-h") return argv[i + 1];
  return "";
}

constexpr const char* out_of_memory =
    "cloze: error: out of memory; end other programs, give this one more (ulimit -v), or train with a smaller model, a "
    "lower train.batch_size or train.gradient_checkpointing=true";
constexpr const char* out_of_gpu_memory =
    "cloze: error: the GPU is out of memory; lower train.batch_size and raise train.accumulation, set "
    "train.gradient_checkpointing=true, or end what else computes on it";
const std::string no_thread = concat("cloze: error: a thread cannot be started; ", threads_remedy);

/// The sentence of an error for want of memory or threads; null for another one.
const char* shortage_of(const std::exception& error) {
  if (std::strstr(error.what(), "CUDA out of memory") != nullptr) return out_of_gpu_memory;
  if (is_out_of_memory(error)) return out_of_memory;
  const auto* of_system = dynamic_cast<const std::system_error*>(&error);
  const bool is_thread = of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again;
  return is_thread ? no_thread.c_str() : nullptr;
}

/// Writes a sentence where there may be no memory for anything else.
void write_sentence(const char* sentence) {
  for (const char* part : {interrupts().on_terminal ? "\n" : "", sentence, "\n"})
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
}

std::terminate_handler end_of_library = nullptr;

/// The end of an exception that cannot reach `run_verb`, from a thread of a library, a destructor or the handling of
/// another one: a sentence where memory or threads are short, and nothing half-written.
[[noreturn]] void end_by_exception() {
  const char* sentence = nullptr;
  try {
    if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    sentence = shortage_of(error);
  } catch (...) {
  }
  if (sentence != nullptr) {
    remove_doomed();
    write_sentence(sentence);
    _exit(1);
  }
  end_of_library();
  std::abort();
}

/// Why CLI11 must not read a text as an integer, which it would clamp; or empty.
std::string integer_fault(const std::string& text, bool is_signed) {
  const auto begin = text.data() + (!text.empty() && text[0] == '+'), end = text.data() + text.size();
  int64_t whole = 0;
  uint64_t natural = 0;
  const auto [at, trouble] = is_signed ? std::from_chars(begin, end, whole) : std::from_chars(begin, end, natural);
  if (trouble == std::errc() && at == end) return {};
  const bool is_whole = trouble == std::errc::result_out_of_range && at == end;
  const char* range = !is_signed ? " from 0 to 18446744073709551615"
                      : is_whole ? " from -9223372036854775808 to 9223372036854775807"
                                 : "";
  return "'" + text + "' is not a whole number" + range;
}

/// What is wrong with a text of --set that has a key alone, whose value may be the next word; or empty.
std::string setting_fault(const std::string& text) {
  if (text.find('=') != std::string::npos) return "";
  return "'" + text + "' has no value; key and value are one word, --set " + text + "=VALUE";
}

/// Prepares the text of every option of the program for the option's own checks: without the guard of a bracket, and
/// an integer if it takes one.
void prepare_options(CLI::App& app) {
  for (auto* option : app.get_options()) {
    const auto type = option->get_type_name();  // `INT`, or `INT:` and the descriptions of its checks
    const bool is_signed = type.starts_with("INT"), is_integer = is_signed || type.starts_with("UINT");
    const bool is_setting = option->check_lname("set");
    option->transform(CLI::Validator(
        [is_integer, is_signed, is_setting](std::string& text) {
          if (text.starts_with(bracket_guard)) text.erase(0, 1);
          if (is_setting) return setting_fault(text);
          return is_integer ? integer_fault(text, is_signed) : "";
        },
        ""));
  }
  for (auto* verb : app.get_subcommands(nullptr)) prepare_options(*verb);
}

/// Lists the verbs of the program, and of each verb, as verbs in its help; those without a group are not listed.
void name_verbs(CLI::App& app) {
  for (auto* verb : app.get_subcommands(nullptr)) {
    if (!verb->get_group().empty()) verb->group("Verbs");
    name_verbs(*verb);
  }
}

/// A verb that has work to save, or output to complete, when it is interrupted.
struct SavingVerb {
  std::string name;
  const char* sentence;  ///< that it says to the first signal; null: it ends so soon that nothing needs to be said
};

/// The options of the verb of a command line, given ones and defaults, for --verbose.
void log_options(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  for (const auto* option : verb->get_options()) {
    const bool is_given = option->count() > 0;
    if (!is_given && option->get_default_str().empty()) continue;
    const auto value = is_given ? listed(option->results()) : option->get_default_str();
    log_debug("options",
              concat(option->get_name(), " = ", readable(in_one_line(value)), is_given ? "" : "  (default)"));
  }
}

/// The verb of a command line: `study run`.
std::string verb_of(const CLI::App& app) {
  std::string verb;
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    verb += (verb.empty() ? "" : " ") + at->get_name();
  }
  return verb;
}

/// The verb of a command line, if it is one that saves.
std::optional<SavingVerb> saving_verb(const std::string& verb) {
  for (const auto& one :
       {SavingVerb{"prepare", "\nstopping; a second Ctrl-C ends at once\n"},
        SavingVerb{"pretrain", "\nsaving, then stopping; a second Ctrl-C ends without saving\n"},
        SavingVerb{"finetune", "\nsaving, then stopping; a second Ctrl-C ends without saving\n"},
        SavingVerb{"study run", "\nstopping when every run has saved; a second Ctrl-C ends at once\n"},
        SavingVerb{"tokenize", nullptr}, SavingVerb{"generate", nullptr}})
    if (one.name == verb) return one;
  return std::nullopt;
}

/// Lets the verb of a command line save when it is interrupted, if it is one that does.
void save_if_interrupted(const CLI::App& app) {
  const auto saving = saving_verb(verb_of(app));
  if (!saving) return;
  static std::string sentence;  // which a signal may say at any time
  if (saving->sentence != nullptr) sentence = on_standard_error(saving->sentence);
  save_when_interrupted(saving->sentence == nullptr ? nullptr : sentence.c_str());
}

/// Throws Error where the system gives the process, and so its threads, a stack on which it would end without a word.
void require_stack() {
  constexpr rlim_t least = 256, kilobyte = 1024;
  rlimit stack{};
  const bool is_short = getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < least * kilobyte;
  require<Error>(!is_short, "the system gives this process a stack of ", stack.rlim_cur / kilobyte,
                 " kB, and it needs ", least, "; raise the limit, as with `ulimit -s 8192`");
}

/// From a text to a model, with one command for each step.
constexpr const char* the_way =
    "Cloze pretrains language models, from raw text to an evaluated and exported\nmodel:\n\n"
    "  cloze prepare book.txt --out tokens\n"
    "  cloze pretrain bert/tiny --set data.tokens=tokens --run runs/a\n"
    "  cloze evaluate runs/a\n"
    "  cloze fill runs/a \"the mouse [MASK] the cheese\"\n"
    "  cloze export runs/a --to huggingface --out hf\n";

/// Whether a verb has an option of the name of a word, `--text` or `--text=FILE`.
bool has_option(const CLI::App& verb, const std::string& word) {
  return word.size() > 2 && word.starts_with("--") && verb.get_option_no_throw(word.substr(0, word.find('=')));
}

/// The verb of `verb` that has the most of these options, of several the first.
const CLI::App& inner_verb(const CLI::App& verb, std::span<const std::string> words) {
  const CLI::App* meant = nullptr;
  std::ptrdiff_t most = -1;
  for (const auto* inner : verb.get_subcommands(nullptr)) {
    const auto count = std::ranges::count_if(words, [&](const auto& word) { return has_option(*inner, word); });
    if (count > most) meant = inner;
    most = std::max(most, count);
  }
  return *meant;
}

/// Throws ConfigError for an option of another inner verb than the one that is meant.
void refuse_others(const CLI::App& meant, std::span<const std::string> words, bool is_named) {
  const auto outer = meant.get_parent()->get_name();
  for (const auto& word : words)
    for (const auto* inner : meant.get_parent()->get_subcommands(nullptr))
      require<ConfigError>(has_option(meant, word) || !has_option(*inner, word), word, " is an option of `cloze ",
                           outer, " ", inner->get_name(),
                           is_named ? "`, and not of `cloze " : "`, and the others are of `cloze ", outer, " ",
                           meant.get_name(), "`; leave it out");
}

/// Inserts the inner verb that the options imply: `evaluate RUN --suite NAME` is `evaluate suites RUN ...`.
void add_inner_verb(const CLI::App& app, std::vector<std::string>& words) {
  const auto is_word = [](const std::string& word) { return !word.starts_with('-'); };
  const auto is_help = [](const std::string& word) { return word == "-h" || word == "--help"; };
  const auto is_of_every_verb = [&](const std::string& word) {
    return is_help(word) || word == "--quiet" || word == "--verbose";
  };
  const auto outer = std::ranges::find_if(words, is_word);
  for (const auto* verb : app.get_subcommands(nullptr)) {
    if (outer == words.end() || verb->get_name() != *outer || verb->get_require_subcommand_min() > 0) continue;
    const auto all = verb->get_subcommands(nullptr);
    const auto next = std::find_if_not(outer + 1, words.end(), is_of_every_verb);
    const bool asks_for_help = next == words.end() && std::any_of(outer + 1, next, is_help);
    if (all.empty() || asks_for_help) return;
    const auto named = next == words.end() ? all.end() : std::ranges::find(all, *next, &CLI::App::get_name);
    const std::span<const std::string> left(outer + 1, words.end());
    const auto& meant = named == all.end() ? inner_verb(*verb, left) : **named;
    refuse_others(meant, left, named != all.end());
    if (named == all.end()) words.insert(outer + 1, meant.get_name());
    return;
  }
}

/// Parses a command line and runs its verb; returns the exit code, after the sentence of an error.
int run_verb(CLI::App& app, const Globals& globals, int argc, char** argv) {
  try {
    if (argc == 1) {
      print_text(std::string(the_way) + "\n`cloze --help` lists all verbs, `cloze VERB --help` the options of one.\n");
      return 0;
    }
    std::vector<std::string> words(argv + 1, argv + argc), arguments;
    add_inner_verb(app, words);
    std::vector<char*> argument_words{argv[0]};
    for (auto& word : words) argument_words.push_back(word.data());
    for (size_t i = words.size(); i-- > 0;)  // in reverse, as CLI11 expects them
      arguments.push_back(words[i].starts_with('[') ? bracket_guard + words[i] : words[i]);
    std::error_code error;
    const auto here = std::filesystem::current_path(error);
    require<ConfigError>(!error, "the current folder cannot be used (", error.message(), "); change to another one");
    check_verb(app, static_cast<int>(argument_words.size()), argument_words.data());
    app.parse(arguments);
    return globals.exit_code;
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    print_sentence("cloze: error: " + readable(usage_words(app, error)));
    return 2;
  } catch (const Interrupted& error) {
    print_sentence("cloze: " + readable(error.what()));
    return interrupt_code();
  } catch (const Error& error) {
    print_sentence("cloze: error: " + readable(error.what()));
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    print_sentence("cloze: error: " + readable(sentence_of(error)));
  } catch (const std::exception& error) {
    if (const char* sentence = shortage_of(error))
      print_sentence(sentence);
    else
      print_sentence(concat("cloze: error: ", readable(first_lines(error.what())),
                            "\nThis is a bug in Cloze; please report it with the command and its input."));
  }
  return 1;
}

/// The exit code of a verb whose output ends here: a failure where some of it could not be written.
int code_after_output(int code) {
  const bool is_written = std::ferror(stdout) == 0;
  if ((std::fflush(stdout) == 0 && is_written) || code != 0) return code;
  const auto reason = is_written ? concat(" (", system_reason(), ")") : "";
  print_sentence(concat("cloze: error: cannot write to standard output", reason, "; the output is incomplete"));
  return 1;
}

}  // namespace

#ifdef CLOZE_TCMALLOC
/// Writes what tcmalloc says; null in a build of it that keeps this to itself.
namespace tcmalloc {
[[gnu::weak, gnu::visibility("default")]] extern void (*log_message_writer)(const char* text, int size);
}

/// As tcmalloc's, and where there is no memory for so little as objects of oneDNN, which it writes to without a look,
/// the end with a sentence. Who asks for the memory of a tensor looks.
extern "C" [[gnu::visibility("default")]] int posix_memalign(void** memory, size_t alignment, size_t size) noexcept {
  constexpr size_t little = 1 << 20;
  const int error = tc_posix_memalign(memory, alignment, size);
  if (error != ENOMEM || size >= little) return error;
  remove_doomed();
  write_sentence(out_of_memory);
  _exit(1);
}
#endif

int main(int argc, char** argv) {
#ifdef CLOZE_TCMALLOC
  if (!std::getenv("TCMALLOC_RELEASE_RATE"))
    MallocExtension::instance()->SetMemoryReleaseRate(0);  // memory of a step is reused by the next: no page faults
  if (&tcmalloc::log_message_writer != nullptr)
    tcmalloc::log_message_writer = [](const char*, int) {};  // that memory has ended is said in a sentence
  tc_set_new_mode(1);  // malloc without memory throws, where glibc would abort for data of threads
#endif
  install_interrupt_handlers();
  end_of_library = std::set_terminate(end_by_exception);
  Globals globals;
  globals.program = program_path();
  for (int i = 0; i < argc; ++i) globals.command_line += (i ? " " : "") + std::string(argv[i]);
  globals.arguments.assign(argv, argv + argc);
  globals.arguments[0] = globals.program;

  CLI::App app{the_way, "cloze"};
  app.require_subcommand(1);
  app.formatter(std::make_shared<WrappedHelp>(help_part(argc, argv)));
  app.set_help_flag("-h,--help", "show this help and exit");
  app.set_version_flag("--version", version_words(), "show the version and exit");
  app.footer(
      "Exit codes: 0 success, 1 failure, 2 invalid command or config, 3 a training\n"
      "diverged and was to stop then, 4 a process of the run was lost, 130 interrupted\n"
      "after all work was saved. Verbs with nothing to save end at once, with 128 plus\n"
      "the number of the signal.");
  app.fallthrough();
  bool quiet = false, verbose = false;
  app.add_flag("--quiet", quiet, "print only warnings and results");
  app.add_flag("--verbose", verbose, "also print options, and what set config values");
  app.parse_complete_callback([&] {
    set_log_level(quiet ? LogLevel::quiet : verbose ? LogLevel::verbose : LogLevel::normal);
    require_stack();
    log_options(app);
    save_if_interrupted(app);
    const auto verb = verb_of(app);
    if (verb != "pretrain" && verb != "finetune") take_as_one_process(verb);
  });
  for (const auto add :
       {add_prepare, add_tokenize, add_inspect, add_pretrain, add_finetune, add_predict, add_attribute, add_benchmark,
        add_study,   add_report,   add_fit,     add_evaluate, add_generate, add_fill,    add_score,     add_view,
        add_import,  add_export,   add_babylm,  add_verify,   add_config,   add_explain, add_describe,  add_completion})
    add(app, globals);
  prepare_options(app);
  name_verbs(app);
  const int code = code_after_output(run_verb(app, globals, argc, argv));
  std::fflush(nullptr);
  _exit(code);  // all is done; unloading LibTorch takes longer than a verb like `fill`
}
