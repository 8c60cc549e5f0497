#include "run/config/objective_short_form.h"

#include <algorithm>
#include <set>

#include "core/contains.h"
#include "core/text.h"
#include "objectives/kinds.h"
#include "run/config/evaluation_protocol.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

/// `{kind: mlm, like: spanbert}` with changes, decoded as any config. `name` is the location in error messages.
ObjectiveConfig from_keys(const std::string& kind, const std::string& name, const std::vector<std::string>& changes) {
  std::vector<std::string> overrides;
  for (const auto& change : changes) overrides.push_back("evaluation.objectives.0." + change);
  const auto tree = ConfigTree::parse("evaluation: {objectives: [{kind: '" + kind + "'}]}", name, overrides);
  return decode<RunConfig>(tree).evaluation.objectives.at(0);
}

/// What an option of an objective changes.
enum class Scope { held_out, training, network };

/// The scope of the option at a path of an objective.
Scope scope_of(const ObjectiveConfig& objective, const std::string& path) {
  static const std::set<std::string> of_training{"weight",          "from_step",   "until_step",
                                                 "label_smoothing", "z_loss",      "initial_mlm_probability",
                                                 "decay_steps",     "dupe_factor", "positions"};
  const auto last = path.substr(path.rfind('.') == std::string::npos ? 0 : path.rfind('.') + 1);
  if (of_training.count(last) > 0) return Scope::training;
  return last == "transform" || as_kind(objective).is_of_network(path) ? Scope::network : Scope::held_out;
}

/// Why an option has no effect on a held-out loss; empty where it has one.
std::string why_ignored(Scope scope) {
  switch (scope) {
    case Scope::training:
      return " changes the training, and no held-out loss; leave it out";
    case Scope::network:
      return " belongs to the network, which is scored as it was trained; set it under `objectives`, where it is "
             "trained, and leave it out here";
    case Scope::held_out:
      break;
  }
  return "";
}

std::vector<config_detail::Entry> entries_of(const ObjectiveConfig& objective) {
  return std::visit([](const auto& o) { return entries(o); }, *objective);
}

bool has_value(const std::vector<config_detail::Entry>& all, const config_detail::Entry& entry) {
  return std::any_of(all.begin(), all.end(),
                     [&](const auto& other) { return other.path == entry.path && other.value == entry.value; });
}

std::string like_of(const ObjectiveConfig& objective) {
  return std::visit(
      [](const auto& o) {
        if constexpr (requires { o.like; })
          return o.like;
        else
          return std::string();
      },
      *objective);
}

/// The defaults of an objective's kind, and of its `like`.
ObjectiveConfig plain_form(const ObjectiveConfig& objective) {
  const auto kind = kind_of(objective), like = like_of(objective);
  return from_keys(kind, kind, like.empty() ? std::vector<std::string>{} : std::vector{"like=" + like});
}

std::vector<std::string> known_kinds() {
  std::vector<std::string> kinds;
  config_detail::kinds_of<ObjectiveVariant>(kinds);
  return kinds;
}

void check_kind(const std::string& kind, const std::string& option) {
  const auto known = known_kinds();
  if (contains(known, kind)) return;
  const std::set<std::string> sorted(known.begin(), known.end());
  const auto near = did_you_mean(kind, known);
  fail<ConfigError>(option, ": there is no objective '", kind, "'", near, near.empty() ? "; " : " ", "the kinds are ",
                    listed(sorted));
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

/// The key of the kind's share, which stands after the colon. Throws ConfigError for a kind without one.
std::string required_rate_key(const std::string& kind, const std::string& option) {
  const std::string key = as_kind(from_keys(kind, option, {})).rate_key();
  require<ConfigError>(!key.empty(), option, ": ", kind, " has no share; give ", kind, " without one, or ", kind,
                       ",KEY=VALUE");
  return key;
}

/// Throws ConfigError for a change that has no effect on a held-out loss.
void check_effects(const ObjectiveConfig& objective, const std::vector<std::string>& changes,
                   const std::string& option) {
  for (const auto& change : changes) {
    const auto key = change.substr(0, change.find('='));
    const auto why = why_ignored(scope_of(objective, key));
    require<ConfigError>(why.empty(), option, ": '", key, "'", why);
  }
}

}  // namespace

ObjectiveConfig parse_objective(const std::string& text, const std::string& source) {
  const auto parts = split_at_commas(text);
  const auto colon = parts[0].find(':');
  const auto kind = parts[0].substr(0, colon), option = source + " " + text;
  check_kind(kind, option);
  std::vector<std::string> changes;
  if (colon != std::string::npos) changes.push_back(required_rate_key(kind, option) + "=" + parts[0].substr(colon + 1));
  for (size_t i = 1; i < parts.size(); ++i) {
    require<ConfigError>(parts[i].find('=') != std::string::npos && parts[i][0] != '=', option, ": '", parts[i],
                         "' is not KEY=VALUE; give for instance mlm:0.15,unit=word");
    changes.push_back(parts[i]);
  }
  ObjectiveConfig objective;
  try {
    objective = from_keys(kind, option, changes);
  } catch (const ConfigError& e) {
    throw ConfigError(option + ": " + e.what());
  }
  check_effects(objective, changes, option);
  return objective;
}

std::string short_form(const ObjectiveConfig& objective) {
  const std::string kind = kind_of(objective), like = like_of(objective), rate_key = as_kind(objective).rate_key();
  std::string text = like.empty() ? "" : ",like=" + like, head = kind;
  const auto before = entries_of(plain_form(objective));
  for (const auto& entry : entries_of(objective)) {
    if (!entry.leaf || scope_of(objective, entry.path) != Scope::held_out || entry.key == "like") continue;
    if (has_value(before, entry)) continue;
    if (entry.path == rate_key)
      head += ":" + entry.value;
    else
      text += "," + entry.path + "=" + entry.value;
  }
  return head + text;
}

void refuse_ignored_options(const RunConfig& config) {
  std::string ignored;
  const auto is_of_own = [&](const config_detail::Entry& entry) {
    return std::any_of(config.objectives.begin(), config.objectives.end(),
                       [&](const auto& own) { return has_value(entries_of(own), entry); });
  };
  for (const auto& objective : config.evaluation.objectives) {
    const auto plain = entries_of(plain_form(objective));
    for (const auto& entry : entries_of(objective)) {
      const auto scope = scope_of(objective, entry.path);
      // The weight counts in the sum of the held-out losses.
      if (!entry.leaf || scope == Scope::held_out || entry.path == "weight" || has_value(plain, entry)) continue;
      if (scope == Scope::network && is_of_own(entry)) continue;
      ignored += concat(ignored.empty() ? "" : "\n", "evaluation.objectives, ", short_form(objective), ": ", entry.path,
                        " is ", entry.value, ", which", why_ignored(scope));
    }
  }
  const auto every = config.evaluation.suite_every;
  if (every > 0 && config.evaluation.suites.empty())
    ignored += concat(ignored.empty() ? "" : "\n", "evaluation.suite_every is ", every,
                      ", and evaluation.suites names none; name one, or leave it out");
  if (!ignored.empty()) throw ConfigError(ignored);
}

}  // namespace cloze
