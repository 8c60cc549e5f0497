#include "cli/near_names.h"

#include <algorithm>
#include <cctype>

#include "core/contains.h"
#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/spelling.h"
#include "core/text.h"
#include "run/config/foreign_names.h"

namespace cloze {

namespace {

/// The innermost verb that was given.
const CLI::App& verb_of(const CLI::App& app) {
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return *at;
}

/// The names after `cloze` that lead to a verb: ` study plan`; empty for the program.
std::string words_to(const CLI::App& verb) {
  return verb.get_parent() == nullptr ? "" : words_to(*verb.get_parent()) + " " + verb.get_name();
}

/// `--help`, ...: every long name of the options of a verb, and of those of every verb.
std::vector<std::string> option_names_in(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::App* at = &verb; at != nullptr; at = at->get_parent())
    for (const auto* option : at->get_options())
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> names_in(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const auto* inner : verb.get_subcommands(nullptr)) names.push_back(inner->get_name());
  for (const auto& name : option_names_in(verb)) names.push_back(name);
  return names;
}

/// In lower case, with `-` for `_`.
std::string spelled(std::string word) {
  for (auto& character : word) {
    if (character == '_') character = '-';
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
  }
  return word;
}

/// The option among the words that were not expected, else the first of them; empty for none.
std::string unexpected(const CLI::App& app) {
  auto left = app.remaining(/*recurse=*/true);
  std::erase(left, "--");
  const auto option = std::find_if(left.begin(), left.end(), [](const auto& word) { return word.starts_with('-'); });
  if (option != left.end()) return *option;
  if (left.empty()) return "";
  return left[0].substr(left[0].starts_with(bracket_guard) ? 1 : 0);
}

/// An option of other programs, and what a verb has instead.
struct ForeignOption {
  const char* verb;
  const char* name;  ///< as `spelled` has it, without the dashes
  const char* own;   ///< the option that is meant; empty: `how` says what to do
  const char* how = "";
};

// The answer to several words.
constexpr const char* fine_tuned =
    "labels, such as GLUE's, are learned by `cloze finetune RUN TASK.yaml`; `cloze pretrain CONFIG --set "
    "init.from=RUN` trains the weights of a run further on text";
constexpr const char* one_device =
    "a run trains on one device, by `cloze pretrain CONFIG`; `cloze study run STUDY --jobs N` trains several runs side "
    "by side";
constexpr const char* loggers =
    "TensorBoard reads the folder of a run, and `cloze pretrain --hook COMMAND` runs a command at each event, for W&B "
    "or MLflow";

const std::vector<ForeignOption>& foreign_options() {
  static const std::vector<ForeignOption> options{
      {"prepare", "output", "--out"},
      {"prepare", "output-dir", "--out"},
      {"prepare", "out-dir", "--out"},
      {"prepare", "destdir", "--out"},
      {"prepare", "input", "", "files of text stand after the verb: cloze prepare FILE --out DIR"},
      {"prepare", "input-file", "", "files of text stand after the verb: cloze prepare FILE --out DIR"},
      {"prepare", "files", "", "files of text stand after the verb: cloze prepare FILE --out DIR"},
      {"prepare", "lower", "--lowercase"},
      {"prepare", "do-lower-case", "--lowercase"},
      {"prepare", "uncased", "--lowercase"},
      {"prepare", "workers", "--threads"},
      {"prepare", "num-workers", "--threads"},
      {"prepare", "num-proc", "--threads"},
      {"prepare", "jobs", "--threads"},
      {"prepare", "overwrite", "--force"},
      {"prepare", "validation", "--valid"},
      {"prepare", "dev", "--valid"},
      {"prepare", "validpref", "--valid"},
      {"prepare", "test-size", "--held-out"},
      {"prepare", "val-split", "--held-out"},
      {"prepare", "model-type", "--train"},
      {"prepare", "tokenizer-type", "--train"},
      {"prepare", "algorithm", "--train"},
      {"prepare", "o", "--out"},
      {"pretrain", "run-dir", "--run"},
      {"pretrain", "name", "--run"},
      {"pretrain", "o", "--run"},
      {"pretrain", "out", "--run"},
      {"pretrain", "do-train", "", "cloze pretrain always trains, and evaluates on the way; leave it out"},
      {"pretrain", "do-eval", "", "cloze pretrain always trains, and evaluates on the way; leave it out"},
      {"pretrain", "tokenizer", "",
       "a run has the tokenizer of its tokens: cloze prepare TEXT --tokenizer TOKENIZER --out DIR"},
      {"pretrain", "bert-config-file", "",
       "the config is a YAML file that stands after the verb; `cloze config bert` prints the keys of a BERT"},
      {"pretrain", "dry-run", "",
       "`cloze describe CONFIG` prints the model and its memory, `cloze benchmark CONFIG` times a few steps"},
      {"pretrain", "force", "", "no run is overwritten; continue it with --resume, or name another folder with --run"},
      {"evaluate", "data", "--tokens"},
      {"evaluate", "data.tokens", "--tokens"},
      {"evaluate", "bs", "--batch-size"},
      {"evaluate", "task", "--suite"},
      {"evaluate", "tasks", "--suite"},
      {"evaluate", "glue", "", fine_tuned},
      {"generate", "max-length", "--max-new-tokens"},
      {"generate", "max-len", "--max-new-tokens"},
      {"generate", "max-tokens", "--max-new-tokens"},
      {"generate", "beam", "--num-beams"},
      {"generate", "beams", "--num-beams"},
      {"generate", "num-samples", "--num-return-sequences"},
      {"generate", "prompt", "", "prompts stand after the run: cloze generate RUN PROMPT"},
      {"generate", "text", "", "prompts stand after the run: cloze generate RUN PROMPT"},
      {"generate", "input", "--file"},
      {"fill", "text", "", "texts stand after the run: cloze fill RUN TEXT"},
      {"fill", "input", "--file"},
      {"score", "text", "", "texts are lines of a file, or of a pipe: echo TEXT | cloze score RUN -"},
      {"view", "text", "", "texts are lines of a file, or of a pipe: echo TEXT | cloze view RUN - --out view.html"},
      {"predict", "text", "", "items are in a file, or in a pipe: cloze predict RUN FILE"},
      {"tokenize", "text", "", "texts stand after the tokenizer: cloze tokenize TOKENIZER TEXT"},
      {"fill", "top-k", "--top"},
      {"export", "output", "--out"},
      {"export", "output-dir", "--out"},
      {"export", "format", "--to"},
      {"import", "output", "--out"},
      {"import", "output-dir", "--out"},
      {"view", "output", "--out"},
      {"predict", "output", "--out"},
      {"predict", "output-file", "--out"},
      {"evaluate", "output", "--out"},
      {"evaluate", "output-dir", "--out"},
      {"finetune", "output", "--run"},
      {"finetune", "output-dir", "--run"}};
  return options;
}

/// What is meant by an option of another program, or by one that a verb spells otherwise; empty for others.
std::string option_meant_by(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with('-')) return "";
  const auto name = spelled(word.substr(0, word.find('=')));
  const auto bare = name.substr(std::min(name.size(), name.find_first_not_of('-')));
  for (const auto& known : option_names_in(verb))
    if (spelled(known) == name) return "'" + word + "' is not known here; did you mean '" + known + "'?";
  for (const auto& foreign : foreign_options()) {
    if (verb.get_name() != foreign.verb || bare != foreign.name) continue;
    const std::string own = foreign.own;
    return "'" + word + "' is not known here; " + (own.empty() ? foreign.how : "did you mean '" + own + "'?");
  }
  return "";
}

/// What is meant by an option for the config, which is an argument; empty for others.
std::string config_of_option(const CLI::App& verb, const std::string& word) {
  const auto name = spelled(word.substr(0, word.find('=')));
  const bool is_meant = name == "-c" || name == "--config" || name == "--config-file" || name == "--cfg";
  if (!is_meant || verb.get_option_no_throw("config") == nullptr) return "";
  return "'" + word + "' is not known here; the config stands after the verb: cloze" + words_to(verb) + " FILE";
}

/// What is meant by an option that is a config key, or has advice; empty for others.
std::string key_of_option(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with("--") || verb.get_option_no_throw("--set") == nullptr) return "";
  const bool only_evaluates = verb.get_name() == "evaluate";  // its --set takes keys of that section alone
  std::string text;
  for (const auto& key : keys_meant_by(RunConfig{}, word))
    if (!only_evaluates || key.starts_with("evaluation.")) text += (text.empty() ? "" : " or ") + key + "=VALUE";
  if (text.empty() && only_evaluates) return "";
  const auto advice = advice_on(word);
  if (text.empty()) return advice.empty() ? "" : "'" + word + "' is not an option; " + advice;
  return "'" + word + "' is not an option; config keys are set by --set " + text +
         (advice.empty() ? "" : "; " + advice);
}

/// A value of the config as Hydra takes it; empty for other words.
std::string hydra_override(const CLI::App& verb, const std::string& word) {
  const bool is_setting = !word.starts_with('-') && word.find('=') != std::string::npos;
  if (!is_setting || verb.get_option_no_throw("--set") == nullptr) return "";
  return "'" + word + "' is not known here; write it as --set " + word;
}

std::string in_capitals(std::string text) {
  for (auto& character : text) character = static_cast<char>(std::toupper(static_cast<unsigned char>(character)));
  return text;
}

/// `cloze predict RUN FILE`: a verb and what stands after it.
std::string form_of(const CLI::App& verb) {
  std::string form = "cloze" + words_to(verb);
  for (const auto* option : verb.get_options())
    if (option->get_positional()) form += " " + in_capitals(option->get_name(/*positional=*/true));
  return form;
}

/// A word after as many as a verb takes; empty for options.
std::string word_too_many(const CLI::App& verb, const std::string& word) {
  if (word.starts_with('-')) return "";
  const bool is_text = kind_of_path(word) == PathKind::tokens && verb.get_option_no_throw("--set") != nullptr;
  return "'" + word + "' is one too many: " + form_of(verb) + (is_text ? " --set data.tokens=" + word : "");
}

/// What is said of a word that a verb does not know.
std::string words_on(const CLI::App& verb, const std::string& word) {
  const auto near = did_you_mean(word.substr(0, word.find('=')), names_in(verb));
  for (const auto& meaning : {option_meant_by(verb, word), config_of_option(verb, word), key_of_option(verb, word),
                              hydra_override(verb, word), near.empty() ? word_too_many(verb, word) : ""})
    if (!meaning.empty()) return meaning;
  return "'" + word + "' is not known here" + near;
}

/// What is said of what a verb lacks, `run is required`: an argument, or an option, whose value may stand alone.
std::string words_on_missing(const CLI::App& verb, const std::string& message, const std::string& word) {
  const auto name = message.substr(0, message.find(' '));
  const auto* option = verb.get_option_no_throw(name);
  if (option != nullptr && option->get_positional()) return "no " + in_capitals(name) + " is given: " + form_of(verb);
  return message + (word.empty() ? "" : "; did you mean '" + name + " " + word + "'?");
}

/// A value that other programs have for an option, and the one that is meant.
struct ForeignValue {
  const char* option;
  const char* name;  ///< as `spelled` has it
  const char* own;
};

const std::vector<ForeignValue>& foreign_values() {
  static const std::vector<ForeignValue> values{
      {"format", "json", "jsonl"},        {"format", "ndjson", "jsonl"},       {"format", "txt", "text"},
      {"format", "plain", "text"},        {"format", "tsv", "pairs"},          {"format", "wikiextractor", "wiki"},
      {"train", "gpt2", "byte_bpe"},      {"train", "gpt-2", "byte_bpe"},      {"train", "roberta", "byte_bpe"},
      {"train", "bytelevel", "byte_bpe"}, {"train", "byte-level", "byte_bpe"}, {"train", "bbpe", "byte_bpe"},
      {"train", "bert", "wordpiece"},     {"train", "wpm", "wordpiece"},       {"train", "sentencepiece", "unigram"},
      {"train", "spm", "unigram"},        {"train", "t5", "unigram"},          {"train", "albert", "unigram"}};
  return values;
}

}  // namespace

void check_value(const std::string& option, const std::string& value, const std::vector<std::string>& known) {
  if (contains(known, value)) return;
  const auto name = spelled(value);
  std::string meant;
  for (const auto& own : known)
    if (spelled(own) == name) meant = own;
  for (const auto& foreign : foreign_values())
    if (option == foreign.option && name == foreign.name) meant = foreign.own;
  fail<ConfigError>("--", option, " is '", value, "', must be one of ", listed(known),
                    did_you_mean(meant.empty() ? value : meant, known));
}

const std::vector<ForeignVerb>& foreign_verbs() {
  static const std::vector<ForeignVerb> verbs{
      {"train", "pretrain", "models are trained by `cloze pretrain CONFIG`"},
      {"fairseq-train", "pretrain", "models are trained by `cloze pretrain CONFIG`"},
      {"run-mlm.py", "pretrain",
       "models are trained by `cloze pretrain CONFIG`, masked language models of configs/bert"},
      {"run-clm.py", "pretrain",
       "models are trained by `cloze pretrain CONFIG`, causal language models of configs/gpt2"},
      {"preprocess", "prepare", "text is prepared by `cloze prepare TEXT --out DIR`"},
      {"fairseq-preprocess", "prepare", "text is prepared by `cloze prepare TEXT --out DIR`"},
      {"encode", "tokenize",
       "`cloze tokenize TOKENIZER TEXT` shows the tokens of a text, `cloze prepare TEXT --out DIR` writes those of "
       "files"},
      {"fine-tune", "finetune", fine_tuned},
      {"glue", "finetune", fine_tuned},
      {"torchrun", "pretrain", one_device},
      {"accelerate", "pretrain", one_device},
      {"deepspeed", "pretrain", one_device},
      {"wandb", "pretrain", loggers},
      {"mlflow", "pretrain", loggers},
      {"tensorboard", "pretrain", loggers},
      {"resume", "pretrain", "a run is continued by `cloze pretrain --run DIR --resume`"},
      {"eval", "evaluate", "runs are scored by `cloze evaluate RUN`"},
      {"test", "evaluate", "runs are scored by `cloze evaluate RUN`"},
      {"infer", "fill", "masks are filled by `cloze fill RUN TEXT`, text is generated by `cloze generate RUN TEXT`"},
      {"mask", "fill",
       "masks are filled by `cloze fill RUN TEXT`, and those of training shown by `cloze inspect objective CONFIG`"},
      {"sample", "generate", "text is sampled by `cloze generate RUN TEXT --sample`"},
      {"fill-mask", "fill", "masks are filled by `cloze fill RUN TEXT`"},
      {"chat", "generate", "text is continued by `cloze generate RUN TEXT`; there are no models that answer"},
      {"show", "describe",
       "`cloze describe CONFIG` prints a model, `cloze inspect objective CONFIG` what it trains on, and `cloze report "
       "RUN "
       "RUN` losses"},
      {"list", "report", "runs are folders, which `ls` lists; `cloze report RUN RUN` compares them"},
      {"status", "study", "the runs of a study are listed by `cloze study status FILE`"},
      {"convert", "export", "runs are converted by `cloze export`, Hugging Face folders by `cloze import`"},
      {"download", "import", "nothing is downloaded; `cloze import` reads a folder that is here"},
      {"compare", "report", "runs are compared by `cloze report RUN RUN`"},
      {"plot", "report",
       "the losses of a run are drawn in its loss.svg, and `cloze report RUN RUN --out report.html` compares runs"},
      {"bench", "benchmark", "steps are timed by `cloze benchmark CONFIG`"},
      {"info", "describe", "`cloze describe CONFIG` prints layers, parameters and memory"},
      {"summary", "describe", "`cloze describe CONFIG` prints layers, parameters and memory"},
      {"sweep", "study", "arms of a config are compared by `cloze study`"},
      {"help", "", "`cloze --help` lists the verbs, `cloze VERB --help` the options of one"},
      {"version", "", "`cloze --version` prints the version"}};
  return verbs;
}

namespace {

/// The verbs of the program, or of a verb such as `study`; those that are not meant for users have no group.
std::vector<std::string> verbs_in(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands(nullptr))
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  return names;
}

/// The verb of that name, meant for users or not; null for none.
const CLI::App* find_verb(const CLI::App& app, const std::string& name) {
  for (const auto* verb : app.get_subcommands(nullptr))
    if (verb->get_name() == name) return verb;
  return nullptr;
}

/// Whether a word is the name of a YAML file, there or not.
bool is_config_file(const std::string& word) { return word.ends_with(".yaml") || word.ends_with(".yml"); }

[[noreturn]] void refuse_verb(const CLI::App& app, const std::string& name) {
  const auto word = spelled(name), declared = words_on_declared(name);
  require<ConfigError>(declared.empty(), "'", shortened(name), "' is not a verb, but ", declared);
  require<ConfigError>(!is_config_file(name), "'", shortened(name), "' is not a verb; `cloze pretrain ",
                       shortened(name), "` trains a config, `cloze study run ", shortened(name),
                       "` the runs of a study");
  for (const auto& foreign : foreign_verbs())
    require<ConfigError>(word != foreign.name, "'", name, "' is not a verb; ", foreign.how);
  const auto near = did_you_mean(word, verbs_in(app));
  fail<ConfigError>("'", name, "' is not a verb", near.empty() ? ";" : near, " see cloze --help");
}

/// The command that takes a path where a verb of `verb` belongs; empty for none.
std::string command_for(const std::string& verb, const std::string& path) {
  using enum PathKind;
  const auto kind = kind_of_path(path);
  const bool is_run = kind == run || kind == step;
  if (verb == "verify" && is_run) return "run " + (kind == step ? run_of_step(path) : path);
  if (verb == "verify" && kind == tokens) return "data " + path;
  if (verb == "babylm" && is_run) return "finetune " + path + " DATA";
  const auto declared = verb == "inspect" ? declared_by(path) : Declared::nothing;
  if (declared == Declared::task) return "task RUN " + path;
  if (declared == Declared::config) return "objective " + path;
  return "";
}

/// Refuses what follows a verb that has verbs of its own, if it is none of them; `given` is null if nothing follows.
void check_inner_verb(const CLI::App& verb, const char* given, bool asks_for_help) {
  const auto known = verbs_in(verb);
  if (known.empty() || (given == nullptr && asks_for_help) || (given != nullptr && find_verb(verb, given))) return;
  const auto list = listed(known);
  const auto name = verb.get_name();
  require<ConfigError>(given != nullptr, "cloze ", name, " needs a verb: ", list, "; see cloze ", name, " --help");
  const auto meant = command_for(name, given);
  require<ConfigError>(meant.empty(), "'", shortened(given), "' is not a verb of cloze ", name,
                       "; did you mean `cloze ", name, " ", meant, "`?");
  const bool is_study = name == "study" && (is_config_file(given) || declared_by(given) == Declared::study);
  require<ConfigError>(!is_study, "'", shortened(given), "' is not a verb of cloze study; ", "`cloze study plan ",
                       shortened(given), "` prints its runs, `cloze study run ", shortened(given), "` trains them");
  const auto declared = words_on_declared(given);
  require<ConfigError>(declared.empty(), "'", shortened(given), "' is not a verb of cloze ", name, ", but ", declared);
  const auto near = did_you_mean(given, known);
  fail<ConfigError>("'", shortened(given), "' is not a verb of cloze ", name, near.empty() ? ";" : near,
                    " its verbs: ", list, "; see cloze ", name, " --help");
}

/// The verbs, at most two, that words begin with: ` study plan`; empty for none.
std::string leading_verbs(const CLI::App& app, const std::vector<const char*>& given, size_t from) {
  const auto* verb = from < given.size() ? find_verb(app, given[from]) : nullptr;
  return verb == nullptr ? "" : " " + verb->get_name() + leading_verbs(*verb, given, from + 1);
}

/// Refuses the word `help` before a verb, and as the only word after one.
void check_help(const CLI::App& app, const std::vector<const char*>& given) {
  const auto is_help = [](const char* word) { return std::string_view(word) == "help"; };
  const auto refuse = [](const std::string& verb) {
    fail<ConfigError>("'help' is not a verb; the help of", verb, " is printed by `cloze", verb, " --help`");
  };
  if (const auto verb = leading_verbs(app, given, 1); is_help(given[0]) && !verb.empty()) refuse(verb);
  require<ConfigError>(!is_help(given[0]) || given.size() == 1, "'", shortened(given.size() > 1 ? given[1] : ""),
                       "' is not a verb; the verbs are ", listed(verbs_in(app)));
  const auto verb = leading_verbs(app, given, 0);
  const auto count = static_cast<size_t>(std::count(verb.begin(), verb.end(), ' '));
  if (count > 0 && given.size() == count + 1 && is_help(given.back())) refuse(verb);
}

}  // namespace

void check_verb(const CLI::App& app, int argc, char** argv) {
  const std::string no_verb = "no verb is given; see cloze --help";
  require<ConfigError>(argc > 1, no_verb);
  for (const std::string version : {"-V", "-v", "-version"})
    require<ConfigError>(argv[1] != version, "'", version, "' is not known; `cloze --version` prints the version");
  std::vector<const char*> given;
  bool asks_for_help = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    asks_for_help = asks_for_help || word == "--help" || word == "-h" || word == "--version";
    if (word.empty() || word[0] != '-') given.push_back(argv[i]);
  }
  if (given.empty()) {
    auto known = option_names_in(app);
    for (const auto* other : {"-h", "--"}) known.emplace_back(other);
    for (int i = 1; i < argc; ++i) {
      const auto near = did_you_mean(argv[i], known);
      require<ConfigError>(contains(known, argv[i]), "'", argv[i], "' is not known", near.empty() ? ";" : near,
                           " see cloze --help");
    }
    require<ConfigError>(asks_for_help, no_verb);
    return;
  }
  check_help(app, given);
  const auto* verb = find_verb(app, given[0]);
  if (verb == nullptr) refuse_verb(app, given[0]);
  check_inner_verb(*verb, given.size() > 1 ? given[1] : nullptr, asks_for_help);
}

namespace {

/// A message of CLI11 on the value of an option, `NAME: 1 required TEXT missing`, `NAME: VALUE not in {A,B}`, `NAME:
/// Value VALUE not in range A to B` or `Could not convert: NAME = VALUE`, as a sentence; any other as it is.
std::string sentence_on_value(const std::string& text) {
  const std::string separator = ": ", needed = "1 required ", missing = " missing", choice = " not in {",
                    conversion = "Could not convert: ", equals = " = ", of_range = "Value ", range = " not in range ";
  if (const auto to = text.find(equals); text.starts_with(conversion) && to != std::string::npos)
    return text.substr(conversion.size(), to - conversion.size()) + " is '" +
           shortened(text.substr(to + equals.size())) + "', must be a number";
  const auto at = text.find(separator);
  if (at == std::string::npos) return text;
  const auto name = text.substr(0, at), message = text.substr(at + separator.size());
  if (message.starts_with(needed) && message.ends_with(missing))
    return name + (name == "--set" ? " needs a key and a value; write it as --set KEY=VALUE" : " needs a value");
  if (const auto to = message.find(range); message.starts_with(of_range) && to != std::string::npos)
    return name + " is " + message.substr(of_range.size(), to - of_range.size()) + ", must be from " +
           message.substr(to + range.size());
  const auto list = message.rfind(choice);
  if (list == std::string::npos || !message.ends_with('}')) return text;
  const auto value = message.substr(0, list);
  const auto known = separated(message.substr(list + choice.size(), message.size() - list - choice.size() - 1), ",");
  return name + " is '" + shortened(value) + "', must be one of " + listed(known) + did_you_mean(value, known);
}

}  // namespace

std::string usage_words(const CLI::App& app, const CLI::ParseError& error) {
  auto text = sentence_on_value(error.what());
  const auto& verb = verb_of(app);
  const auto word = unexpected(app);
  // An option that is not known may be why a required one is missing.
  const bool is_missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || (is_missing && word.starts_with('-')))
    text = words_on(verb, word);
  else if (is_missing)
    text = words_on_missing(verb, text, word);
  return text + (text.ends_with('?') ? " " : "; ") + "see cloze" + words_to(verb) + " --help";
}

}  // namespace cloze
