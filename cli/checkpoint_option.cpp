#include "cli/verbs.h"

namespace cloze {

void add_checkpoint_option(CLI::App& verb, CheckpointChoice& choice) {
  std::vector<std::string> names;
  std::string help = "checkpoint of the run:";
  for (const auto& one : choices(CheckpointChoice{})) {
    help += words(names.empty() ? " " : ", ", one.name, " = ", one.words);
    names.emplace_back(one.name);
  }
  const auto choose = [&choice](const std::string& name) { choice = choice_of<CheckpointChoice>(name); };
  verb.add_option_function<std::string>("--checkpoint", choose, help)
      ->check(CLI::IsMember(names))
      ->default_str(name_of(choice));
}

}  // namespace cloze
