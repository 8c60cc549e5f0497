#include "data/tokenizers/class_rules.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "core/json.h"

namespace cloze {

namespace {

using Json = nlohmann::json;

std::string kind_of_step(const Json& step) {
  return step.is_object() && step.contains("type") && step["type"].is_string() ? step["type"].get<std::string>() : "";
}

/// Calls `f` with each step of a part of tokenizer.json, those of sequences included.
template <class Part, class F>
void each_step(Part& part, const F& f) {
  if (!part.is_object()) return;
  for (const auto* list : {"normalizers", "pretokenizers", "processors"})
    if (part.contains(list) && part[list].is_array())
      for (auto& step : part[list]) each_step(step, f);
  if (kind_of_step(part) != "Sequence") f(part);
}

struct ClassRules {
  const TokenizerFamily& family;
  const Json& config;
  Json& tokenizer;
  std::string changes{};

  bool flag(const char* key, bool fallback) const {
    const auto found = config.find(key);
    return found != config.end() && found->is_boolean() ? found->get<bool>() : fallback;
  }

  void note(const std::string& change) {
    if (changes.find(change) == std::string::npos) changes += (changes.empty() ? "" : ", ") + change;
  }

  void set(Json& step, const char* key, const Json& value, const Json& fallback) {
    const auto old = step.contains(key) ? step[key] : fallback;
    step[key] = value;
    if (old != value) note(concat(key, " is ", json_text(value), " (here ", json_text(old).substr(0, 20), ")"));
  }

  void set_bert() {
    const bool lower = flag("do_lower_case", true);
    each_step(tokenizer["normalizer"], [&](Json& step) {
      if (kind_of_step(step) != "BertNormalizer") return;
      if (step.value("strip_accents", Json()).is_null()) step["strip_accents"] = step.value("lowercase", Json(true));
      set(step, "lowercase", lower, true);
      set(step, "strip_accents", flag("strip_accents", lower), lower);
      set(step, "handle_chinese_chars", flag("tokenize_chinese_chars", true), true);
      set(step, "clean_text", true, true);
    });
  }

  void set_space_of_bytes() {
    const bool space = flag("add_prefix_space", false);
    const auto set_of = [&](const char* part, const char* kind) {
      each_step(tokenizer[part], [&](Json& step) {
        if (kind_of_step(step) == kind) set(step, "add_prefix_space", space, true);
      });
    };
    set_of("pre_tokenizer", "ByteLevel");
    set_of("post_processor", "RobertaProcessing");
  }

  void set_space_of_marks() {
    const char* scheme = flag("add_prefix_space", true) ? "always" : family.own_steps.without_space;
    for (const auto* part : {"pre_tokenizer", "decoder"})
      each_step(tokenizer[part], [&](Json& step) {
        if (kind_of_step(step) != "Metaspace") return;
        const Json otherwise = step.value("add_prefix_space", Json(true)) == false ? "never" : "always";
        step.erase("add_prefix_space");
        set(step, "prepend_scheme", scheme, otherwise);
      });
  }

  /// Puts a step into the normalizer, before those that the class has after it, or takes it out.
  void set_step(const std::string& kind, bool wanted) {
    auto& normalizer = tokenizer["normalizer"];
    const bool is_list = kind_of_step(normalizer) == "Sequence";
    auto steps = is_list ? normalizer.value("normalizers", Json()) : Json::array();
    if (!is_list && normalizer.is_object()) steps.push_back(normalizer);
    if (!steps.is_array() || !(normalizer.is_object() || normalizer.is_null())) return;  // refused when it is read
    const auto find = [&](const std::string& one) {
      return std::find_if(steps.begin(), steps.end(), [&](const auto& step) { return kind_of_step(step) == one; });
    };
    const auto found = find(kind);
    if ((found != steps.end()) == wanted) return;
    note(concat(kind, wanted ? " is one of its steps (here not)" : " is none of its steps (here it is)"));
    const auto lower = kind == "Lowercase" ? steps.end() : find("Lowercase");
    if (wanted)
      steps.insert(lower != steps.end() ? lower : find("Precompiled"), Json{{"type", kind}});
    else
      steps.erase(found);
    normalizer = {{"type", "Sequence"}, {"normalizers", steps}};
  }
};

std::vector<std::string> kinds_of_steps(const Json& tokenizer, const char* part) {
  std::vector<std::string> kinds;
  if (tokenizer.contains(part))
    each_step(tokenizer[part], [&](const Json& step) { kinds.push_back(kind_of_step(step)); });
  return kinds;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string listed(std::vector<std::string> first, const std::vector<std::string>& then) {
  first.insert(first.end(), then.begin(), then.end());
  std::string list;
  for (const auto& kind : first) list += (list.empty() ? "" : ", ") + kind.substr(0, kind.find('?'));
  return list.empty() ? "none" : list;
}

/// True if `kinds` are those of `steps`, of which those that end in `?` may be absent.
bool are_steps(const std::vector<std::string>& kinds, const std::vector<std::string>& steps) {
  size_t at = 0;
  for (auto word : steps) {
    const bool may_lack = word.ends_with('?');
    if (may_lack) word.pop_back();
    if (at < kinds.size() && kinds[at] == word)
      ++at;
    else if (!may_lack)
      return false;
  }
  return at == kinds.size();
}

}  // namespace

std::string apply_class_rules(const TokenizerFamily& family, const Json& config, Json& tokenizer) {
  ClassRules rules{family, config, tokenizer};
  const auto& own = family.own_steps;
  const bool is_bert = family.name == "bert";
  if (is_bert) rules.set_bert();
  if (own.lowercases && !is_bert) rules.set_step("Lowercase", rules.flag("do_lower_case", *own.lowercases));
  if (own.may_keep_accents)
    for (const auto* kind : {"NFKD", "StripAccents"}) rules.set_step(kind, !rules.flag("keep_accents", false));
  if (own.space == OwnSteps::Space::bytes) rules.set_space_of_bytes();
  if (own.space == OwnSteps::Space::marks) rules.set_space_of_marks();
  return rules.changes;
}

std::string steps_beyond_class(const TokenizerFamily& family, const Json& tokenizer) {
  const auto normalizer = kinds_of_steps(tokenizer, "normalizer"), cuts = kinds_of_steps(tokenizer, "pre_tokenizer");
  const auto own = words_of(family.own_steps.normalizer), own_cuts = words_of(family.own_steps.pre_tokenizer);
  if (are_steps(normalizer, own) && are_steps(cuts, own_cuts)) return "";
  return concat("has the steps ", listed(normalizer, cuts), ", which ", family.classes[0],
                " of transformers 5 replaces by its own (", listed(own, own_cuts), "); Cloze takes those of the file");
}

}  // namespace cloze
