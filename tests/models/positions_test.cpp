// Positions in a config: what the keys of run.yaml say, old and new.
#include "core/config/config.h"
#include "models/families/families.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

template <class Config>
Config read(const std::string& yaml) {
  return decode<Config>(ConfigTree::parse(yaml, "run.yaml"));
}

template <class Kind, class Config>
bool has(const Config& config, PositionTable table) {
  return config.positions.table == table && std::holds_alternative<Kind>(config.positions.relative);
}

}  // namespace

TEST_CASE("the keys of a config say which positions a model has, and are written as they were read", "[models]") {
  const auto bert = [](const std::string& yaml) {
    const auto config = read<BertConfig>(yaml);
    CHECK(to_yaml(read<BertConfig>(to_yaml(config))) == to_yaml(config));
    return config;
  };
  CHECK(has<NoRelativePositions>(bert(""), PositionTable::learned));
  CHECK(has<NoRelativePositions>(bert("position_embeddings: none"), PositionTable::none));
  CHECK(has<NoRelativePositions>(bert("position_embeddings: sinusoidal_halves"), PositionTable::sinusoidal_halves));
  CHECK(has<RelativeKeys>(bert("position_embeddings: relative_key"), PositionTable::none));
  CHECK(std::get<RelativeKeys>(bert("position_embeddings: relative_key_query").positions.relative).with_keys);
  CHECK(has<Alibi>(bert("position_embeddings: alibi"), PositionTable::none));
  const auto rotary = bert("position_embeddings: rotary\nrope_theta: 500");
  CHECK(has<Rotary>(rotary, PositionTable::none));
  CHECK(std::get<Rotary>(rotary.positions.relative).theta == 500);
  CHECK(to_yaml(rotary).find("\nposition_embeddings: rotary\nrope_theta: 500\nrelative_positions: 0\n") !=
        std::string::npos);
  const auto shaw = bert("position_embeddings: sinusoidal_start\nrelative_positions: 7");
  CHECK(has<ShawVectors>(shaw, PositionTable::sinusoidal_start));
  CHECK(std::get<ShawVectors>(shaw.positions.relative).max_distance == 7);
  CHECK(has<NoRelativePositions>(read<ModernBertConfig>("position_embeddings: learned"), PositionTable::learned));
}

TEST_CASE("T5 has buckets beside a table, and no keys of buckets with other relative positions", "[models]") {
  const auto plain = read<T5Config>("relative_attention_num_buckets: 8");
  CHECK(has<BucketBias>(plain, PositionTable::none));
  CHECK(std::get<BucketBias>(plain.positions.relative).buckets == 8);
  CHECK(has<BucketBias>(read<T5Config>("position_embeddings: learned"), PositionTable::learned));
  CHECK(has<Rotary>(read<T5Config>("position_embeddings: rotary"), PositionTable::none));
  CHECK(has<ShawVectors>(read<T5Config>("relative_positions: 4"), PositionTable::none));
  CHECK_THROWS_WITH(read<T5Config>("position_embeddings: rotary\nrelative_attention_num_buckets: 8"),
                    Catch::Contains("relative_attention_num_buckets"));
}

TEST_CASE("a model whose positions are slopes, vectors of clipped distances or buckets reads texts of any length",
          "[models]") {
  BertConfig config;
  for (const Positions& positions : {Positions(Alibi{}), Positions(ShawVectors{4}), Positions(BucketBias{})}) {
    config.positions = positions;
    CHECK(config.max_input_length() == BackboneConfig::unlimited_length);
  }
  for (const Positions& positions : {Positions(), Positions(Rotary{}), Positions(RelativeKeys{})}) {
    config.positions = positions;
    CHECK(config.max_input_length() == 512);
  }
}
