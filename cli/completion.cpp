#include <cstdio>

#include "cli/verbs.h"

namespace cloze {

namespace {

std::string names_of(const CLI::App& app) {
  std::string list;
  for (const auto* option : app.get_options())
    for (const auto& name : option->get_lnames()) list += (list.empty() ? "--" : " --") + name;
  return list;
}

/// A bash script, which zsh can source too: completes verbs, then options of the verb, else file names.
std::string bash_script(const CLI::App& app) {
  std::string verbs, cases;
  for (const auto* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    verbs += (verbs.empty() ? "" : " ") + verb->get_name();
    cases += "    " + verb->get_name() + ") words=\"" + names_of(*verb) + "\" ;;\n";
  }
  return "_cloze() {\n  local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n  if [ \"$COMP_CWORD\" -eq 1 ]; then\n    "
         "COMPREPLY=($(compgen -W \"" +
         verbs + " --help --version\" -- \"$word\"))\n    return\n  fi\n  case \"${COMP_WORDS[1]}\" in\n" + cases +
         "  esac\n  case \"$word\" in\n    -*) COMPREPLY=($(compgen -W \"$words --quiet --verbose\" -- \"$word\")) "
         ";;\n    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\ncomplete -o filenames -F _cloze cloze\n";
}

}  // namespace

void add_completion(CLI::App& app, Globals&) {
  auto* verb = app.add_subcommand("completion", "print a shell completion script for bash or zsh");
  auto shell = std::make_shared<std::string>("bash");
  verb->add_option("shell", *shell, "shell")->check(CLI::IsMember({"bash", "zsh"}))->capture_default_str();
  verb->footer("Example:\n  source <(cloze completion bash)");
  verb->callback([shell, &app] {
    std::printf("%s%s", *shell == "zsh" ? "autoload -U bashcompinit && bashcompinit\n" : "", bash_script(app).c_str());
  });
}

}  // namespace cloze
