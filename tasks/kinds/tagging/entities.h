#pragma once
// Entities in the tags of a text, as seqeval reads them.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tasks/scores/scores.h"

namespace cloze {

/// Words [begin, end) with a type.
struct Entity {
  std::string type{};
  int64_t begin = 0, end = 0;
  auto operator<=>(const Entity&) const = default;
};

/// Entities as conlleval reads them, whatever the scheme: an entity begins where its type changes, and I or E may begin
/// one. The type is what follows the first hyphen. Source: seqeval 1.2.2, get_entities.
std::vector<Entity> entities_of(const std::vector<std::string>& tags);

/// Entities that are written as the scheme demands; others are none. Source: seqeval 1.2.2, scheme.py. Differs: a tag
/// that begins with a letter which the scheme lacks is outside, where seqeval ends with an exception.
std::vector<Entity> strict_entities(const std::vector<std::string>& tags, TagScheme scheme);

/// The scheme of so many tags by their first letters, of which automatic means none: IOB2 for B with or without I, O;
/// IOE2, IOBES, BILOU alike. Source: seqeval 1.2.2, auto_detect. Differs: S or U beside O alone are IOBES and BILOU,
/// where seqeval names no scheme.
TagScheme scheme_of(const std::vector<std::string>& tags);

/// Whether tags are of entities: each is a letter of a scheme, with a type after a hyphen or without,
/// and not all are O.
bool are_entity_tags(const std::vector<std::string>& tags);

}  // namespace cloze
