#include "run/config/evaluation_protocol.h"

#include <algorithm>
#include <set>

#include "core/contains.h"
#include "core/text.h"
#include "models/two_stream_config.h"
#include "objectives/kinds.h"
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
  const auto parts = separated(text, ",");
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

ObjectiveConfig standard_form(const ObjectiveConfig& objective) {
  auto standard = as_kind(objective).standard_form();
  static_cast<ObjectiveTerms&>(as_kind(standard)) = {.weight = as_kind(objective).weight};
  return standard;
}

Objectives separate_losses(const ObjectiveConfig& objective) {
  const auto losses = as_kind(objective).separate_losses();
  return losses.empty() ? Objectives{objective} : losses;
}

EvaluationConfig resolved_evaluation(const RunConfig& config) {
  auto evaluation = config.evaluation;
  Objectives named;
  if (evaluation.objectives.empty())
    for (const auto& own : config.objectives) evaluation.objectives.push_back(standard_form(own));
  for (const auto& objective : evaluation.objectives)
    for (const auto& part : separate_losses(objective)) named.push_back(part);
  evaluation.objectives = named;
  if (evaluation.max_seq_length == 0) evaluation.max_seq_length = config.data.max_seq_length;
  return evaluation;
}

DataConfig held_out_data(const RunConfig& config) {
  const auto& evaluation = config.evaluation;
  auto rows = config.data;
  rows.mixture.clear();
  if (evaluation.max_seq_length > 0) rows.max_seq_length = evaluation.max_seq_length;
  rows.packing = evaluation.packing;
  rows.short_seq_prob = 0;
  return rows;
}

ModelConfig held_out_model(const ModelConfig& model) {
  auto plain = model;
  if (auto* streams = as<TwoStreamConfig>(plain)) {
    streams->mem_len = 0;
    streams->reuse_len = 0;
    streams->same_length = false;
    streams->bi_data = false;
  }
  return plain;
}

Objectives row_objectives(const ObjectiveConfig& objective) {
  auto all = as_kind(objective).row_makers();
  all.push_back(objective);
  return all;
}

std::vector<std::string> evaluation_errors(const RunConfig& config) {
  std::vector<std::string> broken;
  constexpr int64_t shortest_row = 4;
  if (const auto length = config.evaluation.max_seq_length; length > 0 && length < shortest_row)
    return {concat("evaluation.max_seq_length ", length, " leaves no room for text; give at least ", shortest_row,
                   ", or 0 for data.max_seq_length")};
  std::set<std::string> heads, kinds, named;
  for (const auto& own : config.objectives) {
    heads.insert(head_of(own));
    kinds.insert(kind_of(own));
  }
  for (const auto& objective : resolved_evaluation(config).objectives) {
    const auto name = short_form(objective);
    if (!named.insert(name).second)
      broken.push_back("evaluation.objectives names " + name + " twice; keep one of them");
    if (heads.count(head_of(objective)) == 0) {
      broken.push_back(concat("evaluation.objectives: the network has no head for ", name, ", only for ", listed(kinds),
                              "; evaluate an objective that it has a head for, or train it with ", kind_of(objective),
                              " too"));
      continue;
    }
    RunConfig single;
    single.model = held_out_model(config.model);
    single.init = config.init;
    single.objectives = row_objectives(objective);
    single.data = held_out_data(config);
    single.train.budget.steps = 1;
    single.schedule.warmup = 0;
    try {
      validate(single);
    } catch (const ConfigError& e) {
      broken.push_back(concat("evaluation.objectives, ", name, ": ", e.what()));
    }
  }
  return broken;
}

}  // namespace cloze
