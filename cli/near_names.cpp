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

/// Whether a verb is of this name, or is one of a verb of this name.
bool is_of_verb(const CLI::App& verb, const std::string& name) {
  return (words_to(verb) + " ").starts_with(" " + name + " ");
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
  const auto spell = [](unsigned char letter) { return letter == '_' ? '-' : std::tolower(letter); };
  std::ranges::transform(word, word.begin(), spell);
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

std::string in_capitals(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::toupper(letter); });
  return text;
}

/// `cloze predict RUN FILE`: a verb and what stands after it.
std::string form_of(const CLI::App& verb) {
  std::string form = "cloze" + words_to(verb);
  for (const auto* option : verb.get_options())
    if (option->get_positional()) form += " " + in_capitals(option->get_name(/*positional=*/true));
  return form;
}

bool has_option(const CLI::App& verb, const std::string& name) { return verb.get_option_no_throw(name) != nullptr; }

/// The answer to words of other programs, separated by spaces and as `spelled` has them: options of a verb, or of all
/// that have what is meant; verbs, of a program.
struct ForeignWords {
  const char* names;
  const char*
      answer;  ///< options, of which a verb has the first that it knows, the argument that is meant, or what to do
  const char* verb = "";

  bool have(const std::string& word) const { return contains(separated(names, " "), word); }
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

constexpr ForeignWords foreign_options[] = {
    {"output output-dir output-file out-dir out destdir o run-dir name", "--run --out"},
    {"c config config-file cfg", "config"},
    {"input input-file files text prompt", "text"},
    {"input", "--file"},
    {"lower do-lower-case uncased", "--lowercase"},
    {"workers num-workers num-proc jobs", "--threads"},
    {"overwrite", "--force"},
    {"validation dev validpref", "--valid"},
    {"test-size val-split", "--held-out"},
    {"model-type tokenizer-type algorithm", "--train"},
    {"data data.tokens", "--tokens"},
    {"bs", "--batch-size"},
    {"task tasks", "--suite"},
    {"max-length max-len max-tokens", "--max-new-tokens"},
    {"beam beams", "--num-beams"},
    {"num-samples", "--num-return-sequences"},
    {"top-k", "--top"},
    {"format", "--to"},
    {"glue", fine_tuned, "evaluate"},
    {"text", "texts are lines of a file, or of a pipe: echo TEXT | cloze score RUN -", "score"},
    {"text", "texts are lines of a file, or of a pipe: echo TEXT | cloze view RUN - --out view.html", "view"},
    {"text", "items are in a file, or in a pipe: cloze predict RUN FILE", "predict"},
    {"do-train do-eval", "cloze pretrain always trains, and evaluates on the way; leave it out", "pretrain"},
    {"tokenizer", "a run has the tokenizer of its tokens: cloze prepare TEXT --tokenizer TOKENIZER --out DIR",
     "pretrain"},
    {"bert-config-file",
     "the config is a YAML file that stands after the verb; `cloze config bert` prints the keys of a BERT", "pretrain"},
    {"dry-run", "`cloze describe CONFIG` prints the model and its memory, `cloze benchmark CONFIG` times a few steps",
     "pretrain"},
    {"force", "no run is overwritten; continue it with --resume, or name another folder with --run", "pretrain"}};

/// What is meant by an option of another program, or by one that a verb spells otherwise; empty for others.
std::string option_meant_by(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with('-')) return "";
  const auto unknown = "'" + word + "' is not known here; ";
  const auto name = spelled(word.substr(0, word.find('=')));
  for (const auto& known : option_names_in(verb))
    if (spelled(known) == name) return unknown + "did you mean '" + known + "'?";
  for (const auto& foreign : foreign_options) {
    if (!foreign.have(name.substr(std::min(name.size(), name.find_first_not_of('-'))))) continue;
    if (is_of_verb(verb, foreign.verb)) return unknown + foreign.answer;
    for (const auto& own : separated(foreign.answer, " "))
      if (*foreign.verb == '\0' && has_option(verb, own))
        return unknown + (own.starts_with('-') ? "did you mean '" + own + "'?"
                                               : "it stands after the verb, without a name: " + form_of(verb));
  }
  return "";
}

/// What is meant by an option that is a config key, or has advice; empty for others.
std::string key_of_option(const CLI::App& verb, const std::string& word) {
  if (!word.starts_with("--") || !has_option(verb, "--set")) return "";
  const bool only_evaluates = is_of_verb(verb, "evaluate");  // its --set takes keys of that section alone
  std::string text;
  for (const auto& key : keys_meant_by(RunConfig{}, word))
    if (!only_evaluates || key.starts_with("evaluation.")) text += (text.empty() ? "" : " or ") + key + "=VALUE";
  if (text.empty() && only_evaluates) return "";
  const auto advice = advice_on(word);
  if (text.empty()) return advice.empty() ? "" : "'" + word + "' is not an option; " + advice;
  return "'" + word + "' is not an option; config keys are set by --set " + text +
         (advice.empty() ? "" : "; " + advice);
}

/// What is said of a word that is no option: a value of the config as Hydra takes it, or one after as many as a verb
/// takes.
std::string words_on_argument(const CLI::App& verb, const std::string& word) {
  const bool takes_keys = has_option(verb, "--set");
  if (takes_keys && word.find('=') != std::string::npos)
    return "'" + word + "' is not known here; write it as --set " + word;
  const bool is_text = takes_keys && kind_of_path(word) == PathKind::tokens;
  return "'" + word + "' is one too many: " + form_of(verb) + (is_text ? " --set data.tokens=" + word : "");
}

/// What is said of a word that a verb does not know.
std::string words_on(const CLI::App& verb, const std::string& word) {
  for (const auto& meaning : {option_meant_by(verb, word), key_of_option(verb, word)})
    if (!meaning.empty()) return meaning;
  const auto near = did_you_mean(word.substr(0, word.find('=')), names_in(verb));
  const bool is_setting = word.find('=') != std::string::npos && has_option(verb, "--set");
  if (!word.starts_with('-') && (near.empty() || is_setting)) return words_on_argument(verb, word);
  return "'" + word + "' is not known here" + near;
}

/// What is said of what a verb lacks, `run is required`: an argument, or an option, whose value may stand alone.
std::string words_on_missing(const CLI::App& verb, const std::string& message, const std::string& word) {
  const auto name = message.substr(0, message.find(' '));
  const auto* option = verb.get_option_no_throw(name);
  if (option != nullptr && option->get_positional()) return "no " + in_capitals(name) + " is given: " + form_of(verb);
  const bool is_near = !word.empty() && !is_run_path(word);
  return message + (is_near ? "; did you mean '" + name + " " + word + "'?" : "");
}

/// Values that other programs have for an option, and the one that is meant.
constexpr ForeignWords foreign_values[] = {{"json ndjson", "jsonl", "format"},
                                           {"txt plain", "text", "format"},
                                           {"tsv", "pairs", "format"},
                                           {"wikiextractor", "wiki", "format"},
                                           {"gpt2 gpt-2 roberta bytelevel byte-level bbpe", "byte_bpe", "train"},
                                           {"bert wpm", "wordpiece", "train"},
                                           {"sentencepiece spm t5 albert", "unigram", "train"}};

}  // namespace

void check_value(const std::string& option, const std::string& value, const std::vector<std::string>& known) {
  if (contains(known, value)) return;
  const auto name = spelled(value);
  std::string meant;
  for (const auto& own : known)
    if (spelled(own) == name) meant = own;
  for (const auto& foreign : foreign_values)
    if (option == foreign.verb && foreign.have(name)) meant = foreign.answer;
  fail<ConfigError>("--", option, " is '", value, "', must be one of ", listed(known),
                    did_you_mean(meant.empty() ? value : meant, known));
}

namespace {

constexpr ForeignWords foreign_verbs[] = {
    {"train fairseq-train run-mlm.py run-clm.py", "models are trained by `cloze pretrain CONFIG`"},
    {"preprocess fairseq-preprocess", "text is prepared by `cloze prepare TEXT --out DIR`"},
    {"encode",
     "`cloze tokenize TOKENIZER TEXT` shows the tokens of a text, `cloze prepare TEXT --out DIR` writes those of "
     "files"},
    {"fine-tune glue", fine_tuned},
    {"torchrun accelerate deepspeed", one_device},
    {"wandb mlflow tensorboard", loggers},
    {"resume", "a run is continued by `cloze pretrain --run DIR --resume`"},
    {"eval test", "runs are scored by `cloze evaluate RUN`"},
    {"infer", "masks are filled by `cloze fill RUN TEXT`, text is generated by `cloze generate RUN TEXT`"},
    {"mask",
     "masks are filled by `cloze fill RUN TEXT`, and those of training shown by `cloze inspect objective CONFIG`"},
    {"fill-mask", "masks are filled by `cloze fill RUN TEXT`"},
    {"sample", "text is sampled by `cloze generate RUN TEXT --sample`"},
    {"chat", "text is continued by `cloze generate RUN TEXT`; there are no models that answer"},
    {"show info summary",
     "`cloze describe CONFIG` prints layers, parameters and memory, and `cloze inspect objective CONFIG` what is "
     "trained on"},
    {"list compare", "runs are folders, which `ls` lists; `cloze report RUN RUN` compares them"},
    {"status sweep", "arms of a config are compared by `cloze study`, whose runs `cloze study status FILE` lists"},
    {"convert", "runs are converted by `cloze export`, Hugging Face folders by `cloze import`"},
    {"download", "nothing is downloaded; `cloze import` reads a folder that is here"},
    {"plot",
     "the losses of a run are drawn in its loss.svg, and `cloze report RUN RUN --out report.html` compares runs"},
    {"bench", "steps are timed by `cloze benchmark CONFIG`"},
    {"help", "`cloze --help` lists the verbs, `cloze VERB --help` the options of one"},
    {"version", "`cloze --version` prints the version"}};

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
  for (const auto& foreign : foreign_verbs)
    require<ConfigError>(!foreign.have(word), "'", name, "' is not a verb; ", foreign.answer);
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
void check_inner_verb(const CLI::App& verb, const char* word, bool asks_for_help) {
  const auto known = verbs_in(verb);
  if (known.empty() || (word == nullptr && asks_for_help) || (word != nullptr && find_verb(verb, word))) return;
  const auto list = listed(known);
  const auto name = verb.get_name();
  require<ConfigError>(word != nullptr, "cloze ", name, " needs a verb: ", list, "; see cloze ", name, " --help");
  const auto meant = command_for(name, word);
  require<ConfigError>(meant.empty(), "'", shortened(word), "' is not a verb of cloze ", name, "; did you mean `cloze ",
                       name, " ", meant, "`?");
  const bool is_study = name == "study" && (is_config_file(word) || declared_by(word) == Declared::study);
  require<ConfigError>(!is_study, "'", shortened(word), "' is not a verb of cloze study; ", "`cloze study plan ",
                       shortened(word), "` prints its runs, `cloze study run ", shortened(word), "` trains them");
  const auto declared = words_on_declared(word);
  require<ConfigError>(declared.empty(), "'", shortened(word), "' is not a verb of cloze ", name, ", but ", declared);
  const auto near = did_you_mean(word, known);
  fail<ConfigError>("'", shortened(word), "' is not a verb of cloze ", name, near.empty() ? ";" : near,
                    " its verbs: ", list, "; see cloze ", name, " --help");
}

/// The verbs, at most two, that words begin with: ` study plan`; empty for none.
std::string leading_verbs(const CLI::App& app, const std::vector<const char*>& words, size_t from) {
  const auto* verb = from < words.size() ? find_verb(app, words[from]) : nullptr;
  return verb == nullptr ? "" : " " + verb->get_name() + leading_verbs(*verb, words, from + 1);
}

/// Refuses the word `help` before a verb, and as the only word after one.
void check_help(const CLI::App& app, std::vector<const char*> words) {
  const auto is_help = [](const char* word) { return std::string_view(word) == "help"; };
  const bool is_first = is_help(words[0]);
  if (is_first) words.erase(words.begin());
  const auto verb = leading_verbs(app, words, 0);
  require<ConfigError>(!is_first || !verb.empty() || words.empty(), "'", words.empty() ? "" : shortened(words[0]),
                       "' is not a verb; the verbs are ", listed(verbs_in(app)));
  const auto count = static_cast<size_t>(std::count(verb.begin(), verb.end(), ' '));
  const bool is_last = count > 0 && words.size() == count + 1 && is_help(words.back());
  require<ConfigError>(verb.empty() || !(is_first || is_last), "'help' is not a verb; the help of", verb,
                       " is printed by `cloze", verb, " --help`");
}

}  // namespace

void check_verb(const CLI::App& app, int argc, char** argv) {
  const std::string no_verb = "no verb is given; see cloze --help";
  require<ConfigError>(argc > 1, no_verb);
  for (const std::string version : {"-V", "-v", "-version"})
    require<ConfigError>(argv[1] != version, "'", version, "' is not known; `cloze --version` prints the version");
  std::vector<const char*> words;
  bool asks_for_help = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    asks_for_help = asks_for_help || word == "--help" || word == "-h" || word == "--version";
    if (word.empty() || word[0] != '-') words.push_back(argv[i]);
  }
  if (words.empty()) {
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
  check_help(app, words);
  const auto* verb = find_verb(app, words[0]);
  if (verb == nullptr) refuse_verb(app, words[0]);
  check_inner_verb(*verb, words.size() > 1 ? words[1] : nullptr, asks_for_help);
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
