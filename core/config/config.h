#pragma once
// The typed config engine: a struct with its defaults, and one `describe` next to it.
//
//   enum class Heater { fan, grill };
//   constexpr auto choices(Heater) {
//     return std::array{Choice{Heater::fan, "fan", "hot air"}, Choice{Heater::grill, "grill", "from above"}};
//   }
//   struct Oven { double heat = 180; Heater heater = Heater::fan; };
//   template <class V> void describe(V& v, Oven& c) {
//     v("heat", c.heat, "temperature [C]", in_range(0, 300));
//     v("heater", c.heater, "what heats");
//   }
//   auto oven = decode<Oven>(ConfigTree::load("oven.yaml", {"heat=200"}));
//
// Decoding, encoding, documentation, explanations and checks are all derived from that description. What it may say of
// a value is in config_rule.h, how trees are read in config_tree.h; the rest is what the functions below are made of.
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_decode.h"
#include "core/config/config_entries.h"
#include "core/config/config_rule.h"
#include "core/config/config_tree.h"
#include "core/spelling.h"

namespace cloze {

/// Decodes a tree into a struct. A function meaning_of_unknown(config, key) declared with `T` may say what was meant.
/// Throws ConfigError with all mistakes at once, one per line.
template <class T>
T decode(const ConfigTree& tree) {
  std::vector<config_detail::Issue> issues;
  T config{};
  const auto& root = tree.root();
  if (root.type != ConfigNode::Type::absent && !config_detail::expect(root, ConfigNode::Type::map, "the file", issues))
    config_detail::throw_issues(std::move(issues));
  config_detail::Decoder decoder(&root, "", "", issues);
  describe(decoder, config);
  decoder.finish(false);
  if constexpr (requires { meaning_of_unknown(config, std::string()); }) {
    for (auto& issue : issues) {
      const auto meaning = issue.key.empty() ? std::string() : meaning_of_unknown(config, issue.key);
      if (!meaning.empty()) issue.mend = meaning;
    }
  }
  if (!issues.empty()) config_detail::throw_issues(std::move(issues));
  return config;
}

/// A struct with the values of its preset of this name.
template <class T>
T preset(const char* name) {
  std::vector<config_detail::Issue> issues;
  const auto map = config_detail::map_of({{"like", name}});
  T config{};
  config_detail::Decoder decoder(&map, "", "", issues);
  describe(decoder, config);
  if (!issues.empty()) config_detail::throw_issues(std::move(issues));
  return config;
}

/// Every entry of a config: sections and values, in the order of the descriptions.
template <class T>
std::vector<config_detail::Entry> entries(T config) {
  std::vector<config_detail::Entry> list;
  config_detail::Walker walker(list);
  walker.walk(config);
  return list;
}

/// YAML with all defaults; decodes to an equal struct.
template <class T>
std::string to_yaml(const T& config) {
  return config_detail::entries_to_yaml(entries(config), false);
}

/// YAML with a comment for each key: meaning and range.
template <class T>
std::string document(const T& config) {
  return config_detail::entries_to_yaml(entries(config), true);
}

/// Where a value comes from: default, preset, base file, file or override. Throws ConfigError for an unknown key.
template <class T>
std::string explain(const ConfigTree& tree, const std::string& path) {
  return config_detail::explain_entry(tree, path, entries(decode<T>(tree)), entries(T{}));
}

/// Differences from the presets that the config names: `optimizer.epsilon is 1e-08, google-bert has 1e-06`.
template <class T>
std::vector<std::string> deviations(T config) {
  std::vector<std::string> keys;
  std::vector<config_detail::Entry> ignored;
  config_detail::Walker walker(ignored);
  walker.deviations = &keys;
  walker.walk(config);
  return keys;
}

}  // namespace cloze
