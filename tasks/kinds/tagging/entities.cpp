#include "tasks/kinds/tagging/entities.h"

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

namespace cloze {

namespace {

constexpr std::string_view scheme_letters = "IOBESUL";

/// The bytes of the first character of a tag.
size_t first_length(std::string_view tag) {
  size_t length = tag.empty() ? 0 : 1;
  while (length < tag.size() && (static_cast<unsigned char>(tag[length]) & 0xC0) == 0x80) ++length;
  return length;
}

std::string or_nameless(std::string_view type) { return type.empty() ? "_" : std::string(type); }

/// What follows the first hyphen after the first character; without a hyphen all of it.
std::string type_after_hyphen(std::string_view tag) {
  const auto rest = tag.substr(first_length(tag));
  const auto hyphen = rest.find('-');
  return or_nameless(hyphen == std::string_view::npos ? rest : rest.substr(hyphen + 1));
}

/// What follows the first character, without hyphens at its ends.
std::string type_without_hyphens(std::string_view tag) {
  auto rest = tag.substr(first_length(tag));
  while (rest.starts_with('-')) rest.remove_prefix(1);
  while (rest.ends_with('-')) rest.remove_suffix(1);
  return or_nameless(rest);
}

/// The first character, M of BMES as I.
std::string_view first_of(std::string_view tag) {
  const auto first = tag.substr(0, first_length(tag));
  return first == "M" ? "I" : first;
}

struct ReadTag {
  std::string_view letter = "O";
  std::string type = "_";
  bool is(std::string_view letters) const {
    return letter.size() == 1 && letters.find(letter) != std::string_view::npos;
  }
};

bool ends_between(const ReadTag& before, const ReadTag& tag) {
  if (before.is("ES")) return true;
  if (before.is("BI") && tag.is("BSO")) return true;
  return !before.is("O.") && before.type != tag.type;
}

bool starts_between(const ReadTag& before, const ReadTag& tag) {
  if (tag.is("BS")) return true;
  if (before.is("ESO") && tag.is("EI")) return true;
  return !tag.is("O.") && before.type != tag.type;
}

enum class Types { any, same, different };

/// Two neighbours: letters of the first, of the second, and how their types compare.
struct Neighbours {
  std::string_view before{}, tag{};
  Types types = Types::any;
  bool fit(const ReadTag& a, const ReadTag& b) const {
    return a.is(before) && b.is(tag) && (types == Types::any || (a.type == b.type) == (types == Types::same));
  }
};

struct SchemeRules {
  std::string_view letters{};
  std::vector<Neighbours> starts{}, insides{}, ends{};
};

/// The tables of seqeval.
SchemeRules rules_of(TagScheme scheme) {
  using enum Types;
  const std::string_view all = scheme_letters;
  switch (scheme) {
    case TagScheme::iob1:
      return {"IOB",
              {{"OB", "I"}, {"I", "I", different}, {"IB", "B", same}},
              {{"BI", "I", same}},
              {{"IB", "I", different}, {"IB", "O"}, {"I", "B"}, {"B", "B", same}}};
    case TagScheme::ioe1:
      return {"IOE",
              {{"OE", "I"}, {"I", "I", different}, {"E", "E", same}},
              {{"I", "IE", same}},
              {{"I", "IE", different}, {"I", "O"}, {"E", "IE", same}}};
    case TagScheme::ioe2:
      return {"IOE", {{"OE", "IE"}, {"I", "IE", different}}, {{"I", "IE", same}}, {{"E", all}}};
    case TagScheme::bioes:
    case TagScheme::bmes:
      return {"IOBES", {{all, "BS"}}, {{"BI", "IE", same}}, {{"SE", all}}};
    case TagScheme::bilou:
      return {"IOBLU", {{all, "BU"}}, {{"BI", "IL", same}}, {{"UL", all}}};
    case TagScheme::bio:
    case TagScheme::none:
      break;
  }
  return {"IOB", {{all, "B"}}, {{"BI", "I", same}}, {{"IB", "O"}, {"IB", "I", different}, {"IB", "B"}}};
}

bool any_fits(const std::vector<Neighbours>& rules, const ReadTag& before, const ReadTag& tag) {
  return std::ranges::any_of(rules, [&](const Neighbours& rule) { return rule.fit(before, tag); });
}

}  // namespace

std::vector<Entity> entities_of(const std::vector<std::string>& tags) {
  std::vector<Entity> entities;
  ReadTag before;
  int64_t begin = 0;
  for (size_t i = 0; i <= tags.size(); ++i) {
    const ReadTag tag = i == tags.size() ? ReadTag{} : ReadTag{first_of(tags[i]), type_after_hyphen(tags[i])};
    const auto at = static_cast<int64_t>(i);
    if (ends_between(before, tag)) entities.push_back({before.type, begin, at});
    if (starts_between(before, tag)) begin = at;
    before = tag;
  }
  return entities;
}

std::vector<Entity> strict_entities(const std::vector<std::string>& tags, TagScheme scheme) {
  const auto rules = rules_of(scheme);
  std::vector<ReadTag> read;
  for (const auto& tag : tags) {
    const ReadTag one{first_of(tag), type_without_hyphens(tag)};
    read.push_back(one.is(rules.letters) ? one : ReadTag{});
  }
  read.emplace_back();
  std::vector<Entity> entities;
  for (size_t i = 0; i < read.size();) {
    if (!any_fits(rules.starts, i == 0 ? ReadTag{} : read[i - 1], read[i])) {
      ++i;
      continue;
    }
    auto end = i + 1;
    while (end < read.size() && any_fits(rules.insides, read[end - 1], read[end])) ++end;
    if (any_fits(rules.ends, read[end - 1], read[end]))
      entities.push_back({read[i].type, static_cast<int64_t>(i), static_cast<int64_t>(end)});
    i = end;
  }
  return entities;
}

TagScheme scheme_of(const std::vector<std::string>& tags) {
  std::set<char> letters;
  for (const auto& tag : tags) {
    if (!ReadTag{first_of(tag)}.is(scheme_letters)) return TagScheme::none;
    letters.insert(first_of(tag)[0]);
  }
  letters.erase('O');
  const auto has = [&](char c) { return letters.contains(c); };
  const auto within = [&](std::string_view allowed) {
    return std::ranges::all_of(letters, [&](char c) { return allowed.find(c) != std::string_view::npos; });
  };
  if (has('B') && within("IB")) return TagScheme::bio;
  if (has('E') && within("IE")) return TagScheme::ioe2;
  if ((has('B') && has('E') && within("IBES")) || (has('S') && within("BIS"))) return TagScheme::bioes;
  if ((has('B') && has('L') && within("IBLU")) || (has('U') && within("BIU"))) return TagScheme::bilou;
  return TagScheme::none;
}

bool are_entity_tags(const std::vector<std::string>& tags) {
  const auto is_one = [](const std::string& tag) {
    return ReadTag{first_of(tag)}.is(scheme_letters) && (tag.size() == 1 || tag[1] == '-');
  };
  return std::ranges::all_of(tags, is_one) && std::ranges::any_of(tags, [](const auto& tag) { return tag != "O"; });
}

}  // namespace cloze
