// dupe_factor in a run's config: what is refused, and what is evaluated.
#include "models/families/electra.h"
#include "objectives/rtd/rtd.h"
#include "run/config/evaluation_protocol.h"
#include "tests/support/runs.h"

using namespace cloze;

namespace {

RunConfig with_objectives(const std::string& objectives) {
  return decode<RunConfig>(ConfigTree::parse(
      "objectives: " + objectives + "\ntrain: {budget: {steps: 10}}\nschedule: {warmup: 0}", "run.yaml"));
}

}  // namespace

TEST_CASE("dupe_factor is accepted by the objectives that mask, and refused by others", "[config]") {
  CHECK_NOTHROW(validate(with_objectives("[{kind: mlm, dupe_factor: 10}, {kind: nsp}]")));
  CHECK_NOTHROW(validate(with_objectives("[{kind: mntp, dupe_factor: 10, initial_mlm_probability: 0}]")));
  CHECK_THROWS_WITH(with_objectives("[{kind: mlm}, {kind: nsp, dupe_factor: 10}]"),
                    Catch::Contains("unknown key 'objectives.1.dupe_factor'"));
  CHECK_THROWS_WITH(with_objectives("[{kind: mlm, dupe_factor: -1}]"), Catch::Contains("must be at least 0"));
}

TEST_CASE("static masking without masks to repeat is refused with the value and a remedy", "[config]") {
  const auto refused = [](const std::string& objectives, const std::string& sentence) {
    INFO(objectives);
    CHECK_THROWS_WITH(validate(with_objectives(objectives)), Catch::Contains(sentence));
  };
  refused("[{kind: mlm, dupe_factor: 10, mlm_probability: 0}]",
          "mlm: dupe_factor 10 repeats masks, and mlm_probability 0 makes none; raise it, or set dupe_factor to 0");
  refused("[{kind: mlm, dupe_factor: 4, initial_mlm_probability: 0.3}]",
          "mlm: dupe_factor 4 repeats masks, and initial_mlm_probability changes how many there are from step to "
          "step; set one of them to 0");
  refused("[{kind: mlm, dupe_factor: 4, mixture: [{share: 1}, {share: 1, initial_mlm_probability: 0.3}]}]",
          "mlm: dupe_factor 4 repeats masks, and initial_mlm_probability changes");
  refused("[{kind: mntp, dupe_factor: 3}]", "mntp: dupe_factor 3 repeats masks, and initial_mlm_probability changes");
  auto electra = with_objectives("[{kind: rtd, mlm: {dupe_factor: 3, mlm_probability: 0}}]");
  electra.model = ElectraConfig{};
  CHECK_THROWS_WITH(validate(electra), Catch::Contains("rtd.mlm: dupe_factor 3 repeats masks, and mlm_probability 0"));
}

TEST_CASE("held-out losses of static masking are those of dynamic masking, under the same name", "[evaluation]") {
  MlmConfig mlm;
  mlm.dupe_factor = 5;
  CHECK(short_form(mlm) == "mlm");
  RtdConfig rtd;
  rtd.mlm.dupe_factor = 5;
  rtd.positions = decltype(rtd.positions)::masked;
  CHECK(short_form(rtd) == "rtd");
  for (const std::string text : {"mlm,dupe_factor=5", "rtd,mlm.dupe_factor=5", "rtd,positions=masked"})
    CHECK_THROWS_WITH(parse_objective(text), Catch::Contains("changes the training, and no held-out loss"));
  TempDir dir;
  const auto dynamic = tiny_run(dir, 1);
  auto fixed = dynamic;
  as<MlmConfig>(fixed.objectives[0])->dupe_factor = 5;
  CHECK(as<MlmConfig>(resolved_evaluation(fixed).objectives[0])->dupe_factor == 0);
  const TokenStore store(dynamic.data.tokens, "valid");
  const auto a = held_out_measures(dynamic, store), b = held_out_measures(fixed, store);
  REQUIRE(a.size() == b.size());
  CHECK(a[0].name == "mlm");
  CHECK(b[0].name == "mlm");
  const auto x = a[0].collator.batch(0, a[0].sequences), y = b[0].collator.batch(0, b[0].sequences);
  CHECK(at::equal(x.input_ids, y.input_ids));
  CHECK(at::equal(x.labels, y.labels));
}
