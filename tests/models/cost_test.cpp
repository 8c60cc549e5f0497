#include <set>

#include "models/attention/attention.h"
#include "models/attention/kinds.h"
#include "models/transformer_config.h"
#include "tests/support/catch.h"
#include "tests/support/counted.h"
#include "tests/support/numbers.h"

using namespace cloze;

namespace {

constexpr int64_t head_width = 6, heads = 3, width = heads * head_width;

AttentionSizes sizes(const std::function<void(AttentionSizes&)>& change) {
  AttentionSizes c;
  c.hidden_size = 20, c.num_attention_heads = heads, c.d_kv = head_width, c.max_position_embeddings = 48;
  change(c);
  return c;
}

std::shared_ptr<Attention> layer_of(const AttentionSizes& c, int64_t layer) {
  Layer stack;
  auto made = make_attention(c, layer, *make_positions(c, false, stack));
  initialize(collect_params(*made), 0.3, false, Rng(1));
  made->eval();
  return made;
}

/// The pairs of a query and a key in all heads: the output of a head at the query changes with the token at the key.
double attended(Attention& layer, int64_t length, const AttentionContext& context) {
  at::NoGradGuard no_grad;
  set_fused(false);
  const auto x = numbers({1, length, 20}, 0.7);
  const auto before = layer.mix(x, context, {});
  double pairs = 0;
  for (int64_t key = 0; key < length; ++key) {
    auto changed = x.clone();
    changed[0][key] += numbers({20}, 0.4);
    const auto differs = layer.mix(changed, context, {}).ne(before).view({length, heads, head_width});
    pairs += differs.any(-1).sum().item<double>();
  }
  set_fused(true);
  return pairs;
}

Counted counted_in(Attention& layer, int64_t length, const AttentionContext& context) {
  at::NoGradGuard no_grad;
  return counted(head_width, [&] { layer.mix(numbers({1, length, 20}, 0.7), context, {}); });
}

AttentionContext first_is_global(int64_t length) {
  return {.global_mask = at::arange(length, at::kLong).eq(0).unsqueeze(0)};
}

}  // namespace

TEST_CASE("a pair of a query and a key that attend to each other costs the width of a head twice, other pairs nothing",
          "[models][cost]") {
  struct Case {
    std::string name;
    AttentionSizes config;
    bool causal = false, global = false;
  };
  const auto window = [](std::vector<int64_t> reach, std::vector<int64_t> dilation, int64_t dilated,
                         GlobalTokens global) {
    return sizes([&](auto& c) { c.attention = WindowAttention{reach, dilation, dilated, global}; });
  };
  const auto bigbird = [](int64_t block, int64_t random) {
    return sizes([&](auto& c) { c.attention = BigBirdAttention{block, random}; });
  };
  const auto alternating = [](int64_t reach) {
    return sizes([&](auto& c) {
      c.attention = AlternatingAttention{.global_attn_every_n_layers = 2, .local_attention = reach};
    });
  };
  const auto none = GlobalTokens::none, first = GlobalTokens::first;
  const std::vector<Case> cases = {
      {"full", sizes([](auto&) {})},
      {"full, rotary", sizes([](auto& c) { c.positions = Rotary{}; })},
      {"causal", sizes([](auto&) {}), true},
      {"window", window({8}, {1}, 0, none)},
      {"window, global token", window({8}, {1}, 0, first), false, true},
      {"windows of layers, dilated", window({4, 6}, {1, 2}, 0, none)},
      {"windows of layers, dilated heads, global token", window({4, 6}, {3, 2}, 1, first), false, true},
      {"alternating", alternating(6)},
      {"alternating, odd window", alternating(7)},
      {"alternating, own key only", alternating(0)},
      {"bigbird", bigbird(3, 1)},
      {"bigbird, more random blocks than there are", bigbird(4, 9)},
      {"bigbird, no random blocks", bigbird(5, 0)},
  };
  for (const auto& [name, config, causal, global] : cases)
    for (const int64_t layer : {0, 1})
      for (const int64_t length : {1, 2, 5, 9, 16, 31}) {
        INFO(name << ", layer " << layer << ", " << length << " tokens");
        const auto attention = layer_of(config, layer);
        auto context = global ? first_is_global(length) : AttentionContext{};
        context.causal = causal;
        const RowSizes row{.length = static_cast<double>(length)};
        CHECK(attention->multiply_adds(row, causal) ==
              counted_in(*attention, length, context).weights + 2 * head_width * attended(*attention, length, context));
      }
}

TEST_CASE("every query of a causal row attends to the prefix", "[models][cost]") {
  const auto attention = layer_of(sizes([](auto&) {}), 0);
  for (const int64_t prefix : {0, 1, 4, 9}) {
    INFO(prefix);
    const AttentionContext context{.causal = true, .prefix = at::full({1}, prefix, at::kLong)};
    CHECK(attention->multiply_adds({.length = 9, .prefix = static_cast<double>(prefix)}, true) ==
          counted_in(*attention, 9, context).weights + 2 * head_width * attended(*attention, 9, context));
  }
}

TEST_CASE("distances are scored for each pair, or once for each distance that a query has keys at", "[models][cost]") {
  for (const bool causal : {false, true})
    for (const int64_t length : {1, 4, 7, 16}) {
      INFO((causal ? "causal, " : "bidirectional, ") << length << " tokens");
      constexpr int64_t max_distance = 3;
      double pairs = 0, distances = 0;
      for (int64_t query = 0; query < length; ++query) {
        std::set<int64_t> met;
        for (int64_t key = 0; key < (causal ? query + 1 : length); ++key, ++pairs)
          met.insert(std::clamp(key - query, -max_distance, max_distance));
        distances += static_cast<double>(met.size());
      }
      const auto check = [&](const AttentionSizes& config, double of_heads) {
        const auto attention = layer_of(config, 0);
        CHECK(attention->multiply_adds({.length = static_cast<double>(length)}, causal) ==
              counted_in(*attention, length, {.causal = causal}).weights + of_heads * width);
      };
      check(sizes([](auto& c) { c.positions = {PositionTable::learned, ShawVectors{max_distance}}; }),
            2 * pairs + 2 * distances);
      check(sizes([](auto& c) { c.positions = RelativeKeys{}; }), 3 * pairs);
      check(sizes([](auto& c) { c.positions = RelativeKeys{.with_keys = true}; }), 4 * pairs);
    }
}

TEST_CASE("linear attention costs what its plain operators multiply", "[models][cost]") {
  const auto check = [](const AttentionSizes& config) {
    const auto attention = layer_of(config, 0);
    for (const int64_t length : {1, 7, 16})
      CHECK(attention->multiply_adds({.length = static_cast<double>(length)}, false) ==
            counted_in(*attention, length, {}).all());
  };
  for (const bool shared : {false, true})
    check(sizes([&](auto& c) { c.attention = LinformerAttention{.compressed = 4, .shared_kv_compressed = shared}; }));
  for (const auto kernel : {FeatureKernel::softmax, FeatureKernel::relu, FeatureKernel::trigonometric})
    check(sizes([&](auto& c) { c.attention = PerformerAttention{.nb_features = 11, .kernel = kernel}; }));
}
