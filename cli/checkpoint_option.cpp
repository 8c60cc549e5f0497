#include <algorithm>

#include "cli/paths.h"
#include "cli/verbs.h"
#include "core/contains.h"
#include "core/spelling.h"

namespace cloze {

namespace {

/// Empty for the name of a checkpoint, else what to do.
std::string known_checkpoint(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& one : choices(CheckpointChoice{})) names.emplace_back(one.name);
  if (contains(names, name)) return "";
  const std::string list = "'" + name + "' is not best or newest";
  for (const auto* other : {"last", "latest", "final"})
    if (name == other) return list + "; did you mean 'newest'?";
  if (kind_of_path(name) == PathKind::step) return list + "; name it instead of the run";
  const bool is_step = name.starts_with("step") || name.find_first_not_of("0123456789") == std::string::npos;
  if (is_step) return list + "; name the folder of a step instead of the run: RUN/step-00001000";
  return list + did_you_mean(name, names);
}

}  // namespace

void add_checkpoint_option(CLI::App& verb, CheckpointChoice& choice) {
  std::string names, help = "checkpoint of the run:";
  for (const auto& one : choices(CheckpointChoice{})) {
    help += concat(names.empty() ? " " : ", ", one.name, " = ", one.words);
    names += concat(names.empty() ? "" : ",", one.name);
  }
  const auto choose = [&choice](const std::string& name) { choice = choice_of<CheckpointChoice>(name); };
  verb.add_option_function<std::string>("--checkpoint", choose, help)
      ->check(known_checkpoint, "{" + names + "}")
      ->default_str(name_of(choice));
}

}  // namespace cloze
