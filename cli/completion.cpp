#include <algorithm>
#include <cstdio>
#include <map>
#include <sstream>

#include "core/contains.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "core/print.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

using Names = std::vector<std::string>;

/// What a shell completes.
struct Words {
  std::map<std::string, Names> verbs{};    ///< of the program, which has no name, and of verbs with verbs of their own
  std::map<std::string, Names> options{};  ///< of each verb: `study plan`
  std::map<std::string, Names> values{};   ///< of what takes one of a few: `study report --format`, `completion`
  std::map<std::string, Names> files{};    ///< options of each verb whose value may be anything, such as a file; `.` of
                                           ///< one whose inner verb may be left out, so that a file may follow it
  std::map<std::string, Names> keys{};     ///< config keys, with their values if these are few
};

std::string joined(const Names& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : " ") + name;
  return list;
}

/// The names in a list that is separated by commas or blanks.
Names split(std::string list) {
  std::replace(list.begin(), list.end(), ',', ' ');
  std::istringstream stream(list);
  Names names;
  for (std::string name; stream >> name;) names.push_back(name);
  return names;
}

/// The values of an option that CLI11 describes as `TEXT:{a,b}`; none for others.
Names values_of(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto begin = type.find('{');
  const auto end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return split(type.substr(begin + 1, end - begin - 1));
}

void collect_verbs(const CLI::App& app, const std::string& path, Words& words) {
  for (const auto* option : app.get_options()) {
    const auto values = values_of(*option);
    if (option->get_positional() && !values.empty()) words.values[path] = values;
    for (const auto& name : option->get_lnames()) {
      words.options[path].push_back("--" + name);
      if (!values.empty()) words.values[path + " --" + name] = values;
      if (values.empty() && option->get_items_expected_max() > 0 && name != "set")
        words.files[path].push_back("--" + name);
    }
  }
  for (const auto* verb : app.get_subcommands(nullptr)) {
    if (verb->get_group().empty()) continue;  // not meant for users
    words.verbs[path].push_back(verb->get_name());
    const auto inner = path + (path.empty() ? "" : " ") + verb->get_name();
    collect_verbs(*verb, inner, words);
    if (app.get_require_subcommand_min() > 0) continue;
    for (const auto& option : words.options[inner])
      if (!contains(words.options[path], option)) words.options[path].push_back(option);
    for (const auto& option : words.files[inner]) words.files[path].push_back(option);
    for (const auto& option : words.options[inner])
      if (const auto values = words.values.find(inner + " " + option); values != words.values.end())
        words.values.emplace(path + " " + option, values->second);
  }
  if (!app.get_subcommands(nullptr).empty() && app.get_require_subcommand_min() == 0) words.files[path].push_back(".");
}

void collect_keys(const std::string& path, const std::vector<config_detail::Entry>& entries, Words& words) {
  for (const auto& entry : entries) {
    if (!entry.leaf) continue;
    auto& values = words.keys[path + entry.path];
    if (entry.type == "text") values = split(entry.rule);
    if (entry.type == "true or false") values = {"true", "false"};
  }
}

/// The keys of every kind of a part.
template <class... Kinds>
void collect_kinds(const std::string& path, const std::variant<Kinds...>*, Words& words) {
  (collect_keys(path, entries(Kinds{}), words), ...);
}

Words words_of(const CLI::App& app) {
  Words words;
  collect_verbs(app, "", words);
  words.values["config"] = config_parts();
  collect_kinds("model.", static_cast<const ModelFamily*>(nullptr), words);
  collect_kinds("model.attention.", static_cast<const AttentionKind*>(nullptr), words);
  collect_kinds("objectives.0.", static_cast<const ObjectiveVariant*>(nullptr), words);
  collect_kinds("optimizer.", static_cast<const UpdateRule*>(nullptr), words);
  collect_kinds("adaptation.", static_cast<const AdaptationConfig*>(nullptr), words);
  collect_kinds("schedule.", static_cast<const ScheduleShape*>(nullptr), words);
  collect_keys("", entries(RunConfig{}), words);
  return words;
}

Names settings_of(const Words& words) {
  Names names;
  for (const auto& [key, values] : words.keys) names.push_back(key + "=");
  return names;
}

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  return text.replace(text.find(mark), mark.size(), by);
}

/// A branch of a shell's `case` for each name with words.
std::string branches(const std::map<std::string, Names>& words) {
  std::string text;
  for (const auto& [name, list] : words)
    if (!list.empty()) text += "    \"" + name + "\") echo \"" + joined(list) + "\" ;;\n";
  return text;
}

// The words that bash and zsh complete.
constexpr const char* word_tables = R"sh(_cloze_verbs() {
  case "$1" in
@VERBS@  esac
}
_cloze_options() {
  case "$1" in
@OPTIONS@  esac
}
_cloze_values() {
  case "$1" in
@VALUES@  esac
}
_cloze_files() {
  case "$1" in
@FILES@  esac
}
_cloze_keys="@KEYS@"
)sh";

constexpr const char* bash_template = R"sh(@TABLES@_cloze() {
  local word="${COMP_WORDS[COMP_CWORD]}" before="" key="" verb="" list="" part="" values=""
  [ "$COMP_CWORD" -gt 0 ] && before="${COMP_WORDS[COMP_CWORD-1]}"
  for part in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    list=" $(_cloze_verbs "$verb") "
    case "$list" in *" $part "*) verb="${verb:+$verb }$part" ;; esac
  done
  list="$(_cloze_verbs "$verb")"
  if [ "$word" = "=" ]; then key="$before"; word=""
  elif [ "$before" = "=" ]; then key="${COMP_WORDS[COMP_CWORD-2]}"
  elif [ "$before" = "--set" ]; then
    case "$word" in
      *=*) key="${word%%=*}"; word="${word#*=}"
        list="$(_cloze_values "$key")"; COMPREPLY=($(compgen -P "$key=" -W "$list" -- "$word")); return ;;
    esac
    type compopt >/dev/null 2>&1 && compopt -o nospace +o filenames 2>/dev/null
    COMPREPLY=($(compgen -W "$_cloze_keys" -- "$word")); return
  else key="$verb $before"
  fi
  case "$key" in
    *" --"* | *.* | like) values="$(_cloze_values "$key")"
      if [ -n "$values" ]; then COMPREPLY=($(compgen -W "$values" -- "$word")); return; fi ;;
  esac
  case " $(_cloze_files "$verb") " in
    *" $before "*) COMPREPLY=($(compgen -f -- "$word")); return ;;
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$(_cloze_options "$verb") ${verb:+--quiet --verbose}" -- "$word")); return ;;
  esac
  case "$verb $before" in
    "explain explain" | "explain -"*) ;;
    "explain "*) COMPREPLY=($(compgen -W "${_cloze_keys//=/}" -- "$word")); return ;;
  esac
  list="${list:-$(_cloze_values "$verb")}"
  if [ -n "$list" ]; then COMPREPLY=($(compgen -W "$list --help" -- "$word")); fi
  case " $(_cloze_files "$verb") " in *" . "*) list="" ;; esac
  if [ -z "$list" ]; then COMPREPLY+=($(compgen -f -- "$word")); fi
}
complete -o filenames -F _cloze cloze
)sh";

// A file of $fpath, where the first call defines and runs the function, or a script that is sourced.
constexpr const char* zsh_template = R"sh(#compdef cloze
@TABLES@_cloze() {
  local word="${words[CURRENT]}" before="${words[CURRENT-1]}" verb="" list="" part=""
  for part in "${(@)words[2,CURRENT-1]}"; do
    list=" $(_cloze_verbs "$verb") "
    case "$list" in (*" $part "*) verb="${verb:+$verb }$part" ;; esac
  done
  if [[ "$before" == --set ]]; then
    if [[ "$word" != *=* ]]; then compadd -S "" -- ${=_cloze_keys}
    elif list="$(_cloze_values "${word%%=*}")"; [[ -n "$list" ]]; then compadd -- ${word%%=*}=${^=list}
    else _files -P "${word%%=*}="; fi
    return
  fi
  if [[ "$before" == --* ]]; then
    list="$(_cloze_values "$verb $before")"
    if [[ -n "$list" ]]; then compadd -- ${=list}; return; fi
    if [[ " $(_cloze_files "$verb") " == *" $before "* ]]; then _files; return; fi
  fi
  list="$(_cloze_verbs "$verb")"
  list="${list:-$(_cloze_values "$verb")}"
  if [[ "$word" == -* ]]; then compadd -- $(_cloze_options "$verb") ${verb:+--quiet} ${verb:+--verbose}
  elif [[ "$verb" == explain && "$before" != explain && "$before" != -* ]]; then compadd -- ${=_cloze_keys//=/}
  else
    [[ -n "$list" ]] && compadd -- ${=list} --help
    [[ -z "$list" || " $(_cloze_files "$verb") " == *" . "* ]] && _files
  fi
}
if [[ "${funcstack[1]}" == _cloze ]]; then _cloze "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
  compdef _cloze cloze
fi
)sh";

/// A script of bash or zsh: completes verbs, options, their values, config keys, else file names.
std::string shell_script(const char* shell_template, const Words& words) {
  auto script = replaced(shell_template, "@TABLES@", word_tables);
  script = replaced(script, "@VERBS@", branches(words.verbs));
  script = replaced(script, "@OPTIONS@", branches(words.options));
  script = replaced(script, "@VALUES@", branches(words.values) + branches(words.keys));
  script = replaced(script, "@FILES@", branches(words.files));
  return replaced(script, "@KEYS@", joined(settings_of(words)));
}

/// The condition under which fish completes a verb: all of its words were seen, and none of its own verbs.
std::string fish_condition(const Words& words, const std::string& verb) {
  if (verb.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (const auto& name : split(verb))
    condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + name);
  if (const auto inner = words.verbs.find(verb); inner != words.verbs.end())
    condition += "; and not __fish_seen_subcommand_from " + joined(inner->second);
  return condition;
}

/// One line of a fish script: a long option of a verb, with its values.
std::string fish_option(const Words& words, const std::string& verb, const std::string& option) {
  if (option == "--quiet" || option == "--verbose") return "complete -c cloze -l " + option.substr(2) + "\n";
  const auto found = words.values.find(verb + " " + option);
  std::string values = found == words.values.end() ? "" : joined(found->second);
  if (option == "--set") values = "$_cloze_settings (_cloze_paths)";
  const auto of_files = words.files.find(verb);
  const bool takes_file = of_files != words.files.end() && contains(of_files->second, option);
  return "complete -c cloze -n '" + fish_condition(words, verb) + "' -l " + option.substr(2) +
         (values.empty() ? "" : " -x -a '" + values + "'") + (takes_file ? " -r -F" : "") + "\n";
}

// Paths after `KEY=`, for a key without a few values.
constexpr const char* fish_paths = R"sh(function _cloze_paths
  set -l parts (string split -m 1 = -- (commandline -ct))
  set -q parts[2]; or return
  string match -q -- "$parts[1]=?*" $_cloze_settings; and return
  for path in (__fish_complete_path $parts[2])
    echo $parts[1]=$path
  end
end
)sh";

std::string fish_script(const Words& words) {
  Names keys;
  for (const auto& [key, values] : words.keys) keys.push_back(key);
  auto settings = settings_of(words);
  for (const auto& [key, values] : words.keys)
    for (const auto& value : values) settings.push_back(key + "=" + value);
  std::string script = "set -g _cloze_settings " + joined(settings) + "\n" + fish_paths;
  for (const auto& [verb, inner] : words.verbs) {
    const auto files = words.files.find(verb);
    const bool may_be_file = files != words.files.end() && contains(files->second, ".");
    script += concat("complete -c cloze -n '", fish_condition(words, verb), may_be_file ? "' -a '" : "' -f -a '",
                     joined(inner), "'\n");
  }
  for (const auto& [verb, options] : words.options) {
    for (const auto& option : options) script += fish_option(words, verb, option);
    if (verb == "explain")
      script += "complete -c cloze -n '" + fish_condition(words, verb) + "' -a '" + joined(keys) + "'\n";
    if (const auto found = words.values.find(verb); found != words.values.end())
      script += "complete -c cloze -n '" + fish_condition(words, verb) + "' -f -a '" + joined(found->second) + "'\n";
  }
  return script;
}

}  // namespace

void add_completion(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("completion", "print a shell completion script for bash, zsh or fish");
  auto shell = std::make_shared<std::string>("bash");
  verb->add_option("shell", *shell, "shell")->check(CLI::IsMember({"bash", "zsh", "fish"}))->capture_default_str();
  verb->footer(
      "Examples:\n  source <(cloze completion bash)\n  source <(cloze completion zsh)\n  cloze completion fish | "
      "source");
  verb->callback([shell, &app] {
    const auto words = words_of(app);
    const auto script =
        *shell == "fish" ? fish_script(words) : shell_script(*shell == "zsh" ? zsh_template : bash_template, words);
    print_data(script);
  });
}

}  // namespace cloze
