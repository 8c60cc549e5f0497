#include <algorithm>

#include "core/contains.h"
#include "train/inspection/inspect.h"
#include "models/families/gpt2.h"
#include "tests/support/catch.h"
#include "tests/support/tiny.h"

#include "core/error.h"
#include "tests/support/objective.h"

using namespace cloze;

namespace {

/// A hybrid over the tiny language, in steps of 16 sequences.
RunConfig hybrid_run(const TempDir& dir, double causal_share) {
  auto config = tiny_run(dir, 40);
  config.model = tiny_model<Gpt2Config>();
  config.objectives = {objective(concat("{kind: mntp, causal_share: ", causal_share, "}"))};
  config.train.accumulation = 2;
  return config;
}

std::vector<std::string> failed(const Inspection& inspection) {
  std::vector<std::string> names;
  for (const auto& check : inspection.checks)
    if (!check.passed) names.push_back(check.name);
  return names;
}

}  // namespace

TEST_CASE("rows of mntp pass their rules for every model, packing and seed", "[inspect][mntp]") {
  TempDir dir;
  for (const double fraction : {0.0, 0.25, 0.5})
    for (const auto packing : {RowPacking::document, RowPacking::full})
      for (int64_t seed = 1; seed < 20; ++seed) {
        INFO(fraction << " " << name_of(packing) << " " << seed);
        auto config = hybrid_run(dir, fraction);
        config.data.packing = packing;
        config.train.seed = seed;
        const auto found = inspect_objective(config, 0, 320);
        CHECK(failed(found).empty());
        CHECK(found.facts["causal_share"].get<double>() == fraction);
        CHECK(found.facts["predicted_share"].get<double>() == Approx(0.3 - 0.15 / 4).margin(0.02));  // half of 40 steps
        CHECK(found.facts["sequences"] == 320);
      }
  auto encoder = tiny_run(dir, 40);
  encoder.objectives = {default_objective<MntpConfig>(), default_objective<NspConfig>()};
  CHECK(failed(inspect_objective(encoder, 0, 320)).empty());
  encoder.objectives = {objective("{kind: mntp, unit: word, count: bernoulli, draw_per: word}")};
  CHECK(failed(inspect_objective(encoder, 0, 320)).empty());
}

TEST_CASE("a broken row of mntp fails the rule that it violates", "[inspect][mntp]") {
  TempDir dir;
  const auto config = hybrid_run(dir, 0.5);
  const auto found_by = [&](const auto& change) { return failed(inspect_objective(config, 0, 320, change)); };
  const auto has = [](const std::vector<std::string>& names, const std::string& name) { return contains(names, name); };
  const std::string labels = "labels other than the token after their position",
                    tokens = "changed tokens that are not predicted",
                    causal = "causal rows that differ from the rows of clm",
                    steps = "steps with a wrong number of causal rows",
                    split = "split into mask, random, keep (chi-square)",
                    number = "sequences with a wrong number of predictions";
  CHECK(found_by([](Batch&) {}).empty());
  // Labels at their own positions, as mlm has them.
  CHECK(has(found_by([](Batch& batch) {
              const auto last = batch.positions.remainder(batch.input_ids.size(1)).eq(batch.input_ids.size(1) - 1);
              batch.positions = batch.positions + last.logical_not().to(at::kLong);
            }),
            labels));
  // One token of a causal row.
  const auto change_token = [](Batch& batch, int64_t row, int64_t position) {
    auto token = batch.input_ids[row][position];
    token.fill_(token.item<int64_t>() == 5 ? 6 : 5);
  };
  CHECK(found_by([&](Batch& batch) {
          change_token(batch, batch.prefix.eq(0).nonzero().flatten()[0].item<int64_t>(), 3);
        }) == std::vector<std::string>{causal});
  // One of a masked row that is not predicted.
  CHECK(found_by([&](Batch& batch) {
          const auto row = batch.prefix.gt(0).nonzero().flatten()[0].item<int64_t>(), width = batch.input_ids.size(1);
          int64_t position = 1;
          while (batch.positions.eq(row * width + position - 1).any().item<bool>()) ++position;
          change_token(batch, row, position);
        }) == std::vector<std::string>{tokens});
  // A masked row without its prefix would be read causally.
  const auto kinds =
      found_by([](Batch& batch) { batch.prefix[batch.prefix.gt(0).nonzero().flatten()[0].item<int64_t>()] = 0; });
  CHECK(has(kinds, steps));
  CHECK(has(kinds, causal));
  CHECK(found_by([](Batch& batch) { batch.prefix.clamp_max_(10); }) ==
        std::vector<std::string>{"masked rows with a wrong prefix"});
  // Masks that were left out: the text stands in their place.
  CHECK(has(found_by([](Batch& batch) { batch.input_ids.masked_fill_(batch.input_ids.eq(4), 7); }), split));
  // A prediction that is lost.
  CHECK(has(found_by([](Batch& batch) {
              const auto kept = at::arange(batch.positions.numel(), at::kLong).remainder(5).ne(0);
              batch.positions = batch.positions.masked_select(kept);
              batch.labels = batch.labels.masked_select(kept);
            }),
            number));
}

TEST_CASE("examples of mntp show the input and the kind of the row", "[inspect][mntp]") {
  TempDir dir;
  const auto found = inspect_objective(hybrid_run(dir, 0.5), 8, 32);
  REQUIRE(found.examples.size() == 8);
  int64_t causal = 0;
  for (const auto& e : found.examples) {
    REQUIRE(e.labels.size() == e.input_ids.size());
    causal += e.prefix == 0;
    if (e.prefix == 0) CHECK(e.corrupted.find('{') == std::string::npos);
    if (e.prefix > 0) CHECK(e.prefix == static_cast<int64_t>(e.input_ids.size()));
  }
  CHECK(causal > 0);
  CHECK(causal < 8);
  CHECK_THAT(to_text(found, false), Catch::Contains("row        causal") &&
                                        Catch::Contains("row        masked, bidirectional") &&
                                        Catch::Contains("causal     50.00 % of the rows"));
  CHECK(to_json(found)["examples"][0].contains("prefix"));
}
