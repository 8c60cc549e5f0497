// Reference of all config keys as Markdown: the content of docs/config.md.
#include <algorithm>
#include <concepts>

#include "core/contains.h"
#include "cli/verbs.h"
#include "core/text.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

using Keys = std::vector<config_detail::Entry>;

template <class Keep>
Keys kept(const Keys& all, const Keep& keep) {
  Keys keys;
  std::copy_if(all.begin(), all.end(), std::back_inserter(keys), keep);
  return keys;
}

bool begins(const std::string& text, const std::string& beginning) { return text.rfind(beginning, 0) == 0; }

/// The keys of one part of a run, with full paths. Keys of an attention are listed with its kind.
template <class Part>
Keys keys_of(const std::string& path, const Part& part) {
  auto keys = kept(entries(part), [](const auto& e) {
    return e.leaf && (!begins(e.path, "attention.") || e.path == "attention.kind");
  });
  for (auto& key : keys) key.path = path + "." + key.path;
  return keys;
}

std::string section(const std::string& title, const Keys& keys) {
  return keys.empty() ? "" : "\n### " + title + "\n\n" + config_detail::entries_to_markdown(keys);
}

/// The keys of a kind are compared with those of the first one: of backbones, those of a Transformer.
template <class Kind>
constexpr bool has_shared_keys = !std::derived_from<Kind, BackboneConfig> || std::derived_from<Kind, TransformerConfig>;

/// A table of the keys that such kinds share, with the defaults of the first kind, then one per kind with its
/// additional keys and other defaults.
template <class First, class... Others>
std::string sections(const std::string& path, const char* title, const std::variant<First, Others...>*) {
  auto shared = keys_of(path, First{});
  const auto find = [](const Keys& keys, const std::string& wanted) {
    return std::find_if(keys.begin(), keys.end(), [&](const auto& e) { return e.path == wanted; });
  };
  const auto in_all = [&](const auto& key) {
    const auto in = [&](const Keys& keys) { return find(keys, key.path) != keys.end(); };
    return ((!has_shared_keys<Others> || in(keys_of(path, Others{}))) && ...);
  };
  shared = kept(shared, in_all);
  const auto own = [&](const auto& key) {
    const auto same = find(shared, key.path);
    return same == shared.end() || same->value != key.value || same->rule != key.rule || same->words != key.words;
  };
  std::string text = section(concat(title, ", as ", First::kind, " has them"), shared);
  const auto add = [&]<class Kind>(const Kind& part) {
    const auto keys = keys_of(path, part);
    text += section(concat("`", path, ".kind: ", part.kind, "`"), has_shared_keys<Kind> ? kept(keys, own) : keys);
  };
  add(First{});
  (add(Others{}), ...);
  return text;
}

/// A table for each kind of a section that `key` chooses, of the keys that not all kinds have.
template <class... Kinds>
std::string sections_of_kinds(const std::string& path, const char* key, const std::variant<Kinds...>*) {
  std::string text;
  ((text += section(concat("`", path, ".", key, ": ", Kinds::kind, "`"), keys_of(path, Kinds{}))), ...);
  return text;
}

/// The names of the keys that some kinds have.
template <class... Kinds>
std::vector<std::string> names_of(const std::string& path, const std::variant<Kinds...>*) {
  std::vector<std::string> names;
  const auto add = [&](const Keys& keys) {
    for (const auto& key : keys) names.push_back(key.path);
  };
  (add(keys_of(path, Kinds{})), ...);
  return names;
}

/// The keys that a run has whatever its model, objectives, adaptation, optimizer and schedule are.
Keys keys_of_every_run() {
  auto of_kinds = names_of("optimizer", static_cast<const UpdateRule*>(nullptr));
  for (const auto& others : {names_of("schedule", static_cast<const ScheduleShape*>(nullptr)),
                             names_of("adaptation", static_cast<const AdaptationConfig*>(nullptr))})
    of_kinds.insert(of_kinds.end(), others.begin(), others.end());
  auto run = kept(entries(RunConfig{}), [&](const auto& e) {
    const bool of_a_kind = begins(e.path, "model.") || begins(e.path, "objectives.") || contains(of_kinds, e.path);
    return e.leaf &&
           (!of_a_kind || e.path == "model.kind" || e.path == "model.attention.kind" || e.path == "objectives.0.kind");
  });
  for (auto& key : run)
    if (key.path == "objectives.0.kind") key.path = "objectives.N.kind";
  return run;
}

/// A key, and the kinds that have it with the same words and default; none: every run has it.
struct DocumentedKey {
  config_detail::Entry entry;
  std::vector<std::string> kinds{};
};

template <class... Kinds>
void add_kinds(std::vector<DocumentedKey>& all, const std::string& path, const std::variant<Kinds...>*) {
  const auto add = [&](const auto& part) {
    for (auto& entry : keys_of(path, part)) {
      if (entry.key == "kind") continue;
      const auto same = std::find_if(all.begin(), all.end(), [&](const auto& known) {
        const auto& e = known.entry;
        return e.path == entry.path && e.value == entry.value && e.words == entry.words && e.rule == entry.rule;
      });
      if (same == all.end())
        all.push_back({std::move(entry), {part.kind}});
      else
        same->kinds.emplace_back(part.kind);
    }
  };
  (add(Kinds{}), ...);
}

void add_keys(std::vector<DocumentedKey>& all, const Keys& keys) {
  for (const auto& entry : keys) all.push_back({entry});
}

std::vector<DocumentedKey> all_keys() {
  std::vector<DocumentedKey> all;
  add_keys(all, keys_of_every_run());
  add_kinds(all, "model", static_cast<const ModelFamily*>(nullptr));
  add_kinds(all, "model.attention", static_cast<const AttentionKind*>(nullptr));
  add_kinds(all, "objectives.N", static_cast<const ObjectiveVariant*>(nullptr));
  add_kinds(all, "optimizer", static_cast<const UpdateRule*>(nullptr));
  add_kinds(all, "adaptation", static_cast<const AdaptationConfig*>(nullptr));
  add_kinds(all, "schedule", static_cast<const ScheduleShape*>(nullptr));
  add_keys(all, keys_of("objectives.N.mixture.N", MaskingPart{}));
  add_keys(all, keys_of("data.mixture.N", MixturePart{}));
  add_keys(all, keys_of("optimizer.groups.N", ParameterGroup{}));
  add_keys(all, keys_of("train.phases.N", PhaseConfig{}));
  return all;
}

/// A key with N for the number of an element.
std::string with_letters(const std::string& key) {
  std::string text;
  for (const auto& part : separated(key, ".")) {
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += (text.empty() ? "" : ".") + (is_number ? std::string("N") : part);
  }
  return text;
}

std::string text_of_key(const DocumentedKey& key) {
  const auto& e = key.entry;
  auto text = concat(e.path, "\n  meaning  ", e.words, "\n");
  if (!e.rule.empty()) text += concat("  allowed  ", e.rule, "\n");
  text += concat("  default  ", e.value.empty() ? "none" : e.value, "\n");
  if (!key.kinds.empty()) text += concat("  of       ", listed(key.kinds), "\n");
  return text;
}

}  // namespace

std::string documented_keys(const std::string& name) {
  const auto wanted = with_letters(name);
  if (wanted.empty()) return "";
  const auto all = all_keys();
  std::string text;
  const auto add = [&](const auto& is_meant) {
    if (!text.empty()) return;
    for (const auto& key : all)
      if (is_meant(key.entry.path)) text += (text.empty() ? "" : "\n") + text_of_key(key);
  };
  add([&](const std::string& path) { return path == wanted; });
  add([&](const std::string& path) { return begins(path, wanted + "."); });
  add([&](const std::string& path) { return path.ends_with("." + wanted); });
  return text;
}

std::string reference_of_keys() {
  const auto run = keys_of_every_run();
  return section("Every run", run).substr(1) +
         sections("model", "Every Transformer", static_cast<const ModelFamily*>(nullptr)) +
         sections("model.attention", "Every attention", static_cast<const AttentionKind*>(nullptr)) +
         sections("objectives.N", "Every objective", static_cast<const ObjectiveVariant*>(nullptr)) +
         sections_of_kinds("adaptation", "kind", static_cast<const AdaptationConfig*>(nullptr)) +
         sections_of_kinds("optimizer", "kind", static_cast<const UpdateRule*>(nullptr)) +
         sections_of_kinds("schedule", "shape", static_cast<const ScheduleShape*>(nullptr)) +
         section("An element of `mixture`", keys_of("objectives.N.mixture.M", MaskingPart{})) +
         section("An element of `data.mixture`", keys_of("data.mixture.N", MixturePart{})) +
         section("An element of `groups`", keys_of("optimizer.groups.N", ParameterGroup{})) +
         section("An element of `phases`", keys_of("train.phases.N", PhaseConfig{}));
}

}  // namespace cloze
