// Reference of all config keys as Markdown: the content of docs/config.md.
#include <algorithm>

#include "cli/verbs.h"
#include "models/families/families.h"
#include "objectives/kinds.h"
#include "run/config_io.h"

namespace cloze {

namespace {

using Keys = std::vector<config_detail::Entry>;

template <class Keep>
Keys kept(const Keys& all, const Keep& keep) {
  Keys found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), keep);
  return found;
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

/// A table of the keys that all kinds share, with the defaults of the first kind, then one per kind with its additional
/// keys and other defaults.
template <class First, class... Others>
std::string sections(const std::string& path, const char* title, const std::variant<First, Others...>*) {
  auto shared = keys_of(path, First{});
  const auto find = [](const Keys& keys, const std::string& wanted) {
    return std::find_if(keys.begin(), keys.end(), [&](const auto& e) { return e.path == wanted; });
  };
  const auto in_all = [&](const auto& key) {
    const auto in = [&](const Keys& keys) { return find(keys, key.path) != keys.end(); };
    return (in(keys_of(path, Others{})) && ...);
  };
  shared = kept(shared, in_all);
  const auto own = [&](const auto& key) {
    const auto same = find(shared, key.path);
    return same == shared.end() || same->value != key.value || same->rule != key.rule || same->words != key.words;
  };
  std::string text = section(words(title, ", as ", First::kind, " has them"), shared);
  const auto add = [&](const auto& part) {
    text += section(words("`", path, ".kind: ", part.kind, "`"), kept(keys_of(path, part), own));
  };
  add(First{});
  (add(Others{}), ...);
  return text;
}

}  // namespace

std::string reference_of_keys() {
  auto run = kept(entries(RunConfig{}), [](const auto& e) {
    const bool of_a_kind = begins(e.path, "model.") || begins(e.path, "objectives.");
    return e.leaf &&
           (!of_a_kind || e.path == "model.kind" || e.path == "model.attention.kind" || e.path == "objectives.0.kind");
  });
  for (auto& key : run)
    if (key.path == "objectives.0.kind") key.path = "objectives.N.kind";
  return section("Every run", run).substr(1) +
         sections("model", "Every model", static_cast<const ModelFamily*>(nullptr)) +
         sections("model.attention", "Every attention", static_cast<const AttentionKind*>(nullptr)) +
         sections("objectives.N", "Every objective", static_cast<const ObjectiveKind*>(nullptr)) +
         section("An element of `mixture`", keys_of("objectives.N.mixture.M", MaskingPart{})) +
         section("An element of `phases`", keys_of("train.phases.N", PhaseConfig{}));
}

}  // namespace cloze
