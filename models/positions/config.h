#pragma once
// How a stack knows where its tokens stand: by a table that is added to the embeddings, by what its attention does with
// distances, or by both, as in Shaw et al. 2018. The keys of the YAML config that say so are at the end.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "core/config/config_rule.h"

namespace cloze {

/// A table with a row for each position, which is added to the embeddings.
enum class PositionTable {
  none,
  learned,
  sinusoidal,         ///< not trained, sines and cosines interleaved
  sinusoidal_halves,  ///< not trained, all sines before all cosines
  sinusoidal_start    ///< trained, sines and cosines at first
};

/// What a kind of relative positions asks of a model.
struct PositionFacts {
  bool full_attention = true;  ///< a query scores every key
  bool alternating = false;    ///< or it may be attention of kind alternating
  bool even_heads = false;     ///< heads have an even width
  bool two_stacks = true;      ///< an encoder-decoder may have it
  bool prefix = true;          ///< rows may have a prefix that all their tokens attend to
  bool bounds_length = false;  ///< it is made for max_position_embeddings tokens at most
  bool has_terms = false;      ///< attention has DistanceTerms, which plain operators compute
};

/// Attention does not see where tokens stand.
struct NoRelativePositions {
  static constexpr PositionFacts facts{.full_attention = false};
};

/// Queries and keys are rotated by angles of their positions. A layer of alternating attention has a base of its own.
/// Source: Su et al. 2021, section 3.2.2 (arXiv 2104.09864).
struct Rotary {
  static constexpr PositionFacts facts{.alternating = true, .even_heads = true, .bounds_length = true};
  double theta = 10000;  ///< base of the wavelengths
};

/// Every layer has a vector for each distance, whose product with the query is added to that of query and key, and so
/// is its product with the key if `with_keys`. Source: Shaw et al. 2018, equation 5 (arXiv 1803.02155); Huang et al.
/// 2020, method 4 (arXiv 2009.13658).
struct RelativeKeys {
  static constexpr PositionFacts facts{.two_stacks = false, .prefix = false, .bounds_length = true, .has_terms = true};
  bool with_keys = false;
  /// Vectors of the width of a head in every layer.
  static int64_t vectors(int64_t positions) { return 2 * positions - 1; }
};

/// Every layer adds vectors of clipped distances to keys and to values.
/// Source: Shaw et al. 2018, equations 3 and 4 (arXiv 1803.02155).
struct ShawVectors {
  static constexpr PositionFacts facts{.prefix = false, .has_terms = true};
  int64_t max_distance = 16;
  int64_t vectors(int64_t) const { return 2 * (2 * max_distance + 1); }
};

/// A trained bias of the scores, one for each head and bucket of distances, shared by all layers.
/// Source: Raffel et al. 2020, section 2.1 (arXiv 1910.10683).
struct BucketBias {
  static constexpr PositionFacts facts{};
  int64_t buckets = 32;
  int64_t max_distance = 128;
};
template <class V>
void describe(V& v, BucketBias& c) {
  v("relative_attention_num_buckets", c.buckets, "buckets of relative positions, each with a bias for every head",
    in_range(2, 1 << 20));
  v("relative_attention_max_distance", c.max_distance,
    "distance from which on all relative positions share the last bucket", in_range(2, 1 << 28));
}

/// Scores fall with the distance, in each head by a slope of its own, which is not trained.
/// Source: Press et al. 2022, section 3 (arXiv 2108.12409). Differs: in a bidirectional stack, keys on both sides.
struct Alibi {
  static constexpr PositionFacts facts{};
};

using RelativePositions = std::variant<NoRelativePositions, Rotary, RelativeKeys, ShawVectors, BucketBias, Alibi>;
/// What this kind asks of a model.
const PositionFacts& position_facts(const RelativePositions& relative);

/// The positions of a model: `Rotary{}`, `PositionTable::sinusoidal`, `{PositionTable::learned, ShawVectors{8}}`.
struct Positions {
  PositionTable table = PositionTable::learned;
  RelativePositions relative{};

  Positions() = default;
  Positions(PositionTable added, RelativePositions in_attention = {})
      : table(added), relative(std::move(in_attention)) {}
  template <class Kind>
    requires requires { Kind::facts; }
  Positions(const Kind& in_attention) : table(PositionTable::none), relative(in_attention) {}
};
/// Vectors of the width of a head that every layer has, of a model with so many positions.
int64_t vectors_of(const Positions& positions, int64_t max_positions);

/// The values of the key `position_embeddings`: a table, or a kind of relative positions.
enum class PositionEmbeddings {
  learned,
  sinusoidal,
  sinusoidal_halves,
  sinusoidal_start,
  none,
  relative_key,
  relative_key_query,
  rotary,
  alibi
};
constexpr auto choices(PositionEmbeddings) {
  using enum PositionEmbeddings;
  return std::array{
      Choice{learned, "learned", "a trained table"},
      Choice{sinusoidal, "sinusoidal", "sines and cosines, not trained"},
      Choice{sinusoidal_halves, "sinusoidal_halves", "the same, all sines before all cosines"},
      Choice{sinusoidal_start, "sinusoidal_start", "a trained table, initialised to sines and cosines"},
      Choice{none, "none", "no table, positions enter in attention only"},
      Choice{relative_key, "relative_key",
             "no table, every layer has an embedding for each distance, whose product with the query is "
             "added to the score "
             "(Shaw et al. 2018, equation 5)"},
      Choice{relative_key_query, "relative_key_query",
             "the product with the key is added too (Huang et al. 2020, method 4)"},
      Choice{rotary, "rotary", "no table, queries and keys are rotated by angles of their positions (Su et al. 2021)"},
      Choice{alibi, "alibi",
             "no table, scores fall with the distance of query and key, at a fixed slope for each head (Press et al. "
             "2022)"}};
}
/// Positions as keys of a config. BucketBias has keys of its own, in the families that begin with it.
struct PositionKeys {
  PositionEmbeddings position_embeddings = PositionEmbeddings::learned;
  double rope_theta = Rotary{}.theta;
  int64_t relative_positions = 0;  ///< the greatest distance of ShawVectors; 0: none
};
PositionKeys keys_of(const Positions& positions);
/// Makes `positions` what the keys say, and returns an empty text; if they name two kinds, what is wrong with
/// `relative_positions`. BucketBias stays where they name no other kind.
std::string read_keys(const PositionKeys& keys, Positions& positions);
/// The key that names the relative positions, and its value: `position_embeddings rotary`.
std::string named_in_config(const Positions& positions);

/// The keys of every family.
template <class V>
void describe_keys(V& v, Positions& c) {
  auto keys = keys_of(c);
  v("position_embeddings", keys.position_embeddings, "the position embeddings");
  v("rope_theta", keys.rope_theta, "base of the wavelengths of rotary positions", in_range(1, 1e12));
  v("relative_positions", keys.relative_positions,
    "maximum distance of relative position embeddings, which are added to keys and values in every layer (Shaw et al. "
    "2018); 0 = none",
    in_range(0, 1 << 14));
  v.refuse("relative_positions", read_keys(keys, c));
}

}  // namespace cloze
