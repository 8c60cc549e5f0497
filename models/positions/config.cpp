#include "models/positions/config.h"

#include <algorithm>

namespace cloze {

namespace {

struct TableName {
  PositionTable table;
  PositionEmbeddings name;
};
constexpr std::array table_names{TableName{PositionTable::none, PositionEmbeddings::none},
                                 TableName{PositionTable::learned, PositionEmbeddings::learned},
                                 TableName{PositionTable::sinusoidal, PositionEmbeddings::sinusoidal},
                                 TableName{PositionTable::sinusoidal_halves, PositionEmbeddings::sinusoidal_halves},
                                 TableName{PositionTable::sinusoidal_start, PositionEmbeddings::sinusoidal_start}};

/// The positions that `position_embeddings` names.
Positions named_by(const PositionKeys& keys) {
  switch (keys.position_embeddings) {
    case PositionEmbeddings::relative_key:
      return RelativeKeys{.with_keys = false};
    case PositionEmbeddings::relative_key_query:
      return RelativeKeys{.with_keys = true};
    case PositionEmbeddings::rotary:
      return Rotary{keys.rope_theta};
    case PositionEmbeddings::alibi:
      return Alibi{};
    case PositionEmbeddings::learned:
    case PositionEmbeddings::sinusoidal:
    case PositionEmbeddings::sinusoidal_halves:
    case PositionEmbeddings::sinusoidal_start:
    case PositionEmbeddings::none:
      break;
  }
  return std::ranges::find(table_names, keys.position_embeddings, &TableName::name)->table;
}

/// The keys of positions, which begin with those of the table.
struct WriteKeys {
  PositionKeys keys;
  PositionKeys operator()(const NoRelativePositions&) const { return keys; }
  PositionKeys operator()(const Rotary& kind) const {
    return {.position_embeddings = PositionEmbeddings::rotary, .rope_theta = kind.theta};
  }
  PositionKeys operator()(const RelativeKeys& kind) const {
    using enum PositionEmbeddings;
    return {.position_embeddings = kind.with_keys ? relative_key_query : relative_key};
  }
  PositionKeys operator()(const ShawVectors& kind) const {
    return {.position_embeddings = keys.position_embeddings, .relative_positions = kind.max_distance};
  }
  PositionKeys operator()(const BucketBias&) const { return keys; }
  PositionKeys operator()(const Alibi&) const { return {.position_embeddings = PositionEmbeddings::alibi}; }
};

}  // namespace

const PositionFacts& position_facts(const RelativePositions& relative) {
  return std::visit([](const auto& kind) -> const PositionFacts& { return kind.facts; }, relative);
}

int64_t vectors_of(const Positions& positions, int64_t max_positions) {
  return std::visit(
      [&](const auto& kind) -> int64_t {
        if constexpr (requires { kind.vectors(max_positions); }) return kind.vectors(max_positions);
        return 0;
      },
      positions.relative);
}

PositionKeys keys_of(const Positions& positions) {
  const auto name = std::ranges::find(table_names, positions.table, &TableName::table)->name;
  return std::visit(WriteKeys{{.position_embeddings = name}}, positions.relative);
}

std::string read_keys(const PositionKeys& keys, Positions& positions) {
  const auto named = named_by(keys);
  const bool is_table = std::holds_alternative<NoRelativePositions>(named.relative);
  if (!is_table && keys.relative_positions > 0)
    return concat("is ", keys.relative_positions, ", and position_embeddings ", keys.position_embeddings,
                  " are relative positions too; leave one of the two out");
  positions.table = named.table;
  if (keys.relative_positions > 0)
    positions.relative = ShawVectors{keys.relative_positions};
  else if (!is_table || !std::holds_alternative<BucketBias>(positions.relative))
    positions.relative = named.relative;
  return "";
}

std::string named_in_config(const Positions& positions) {
  if (const auto* bias = std::get_if<BucketBias>(&positions.relative))
    return concat("relative_attention_num_buckets ", bias->buckets);
  const auto keys = keys_of(positions);
  if (keys.relative_positions > 0) return concat("relative_positions ", keys.relative_positions);
  return concat("position_embeddings ", keys.position_embeddings);
}

}  // namespace cloze
