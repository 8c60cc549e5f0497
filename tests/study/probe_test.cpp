// Probes of arms, made by a script that stands for `cloze benchmark`.
#include "study/costs/costs.h"

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "objectives/config.h"
#include "objectives/masking_config.h"
#include "run/config/load_config.h"
#include "study/execution/runs.h"
#include "study/search/stages.h"
#include "tests/study/study_files.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// Counts its calls in the file `calls`; fails for batches of 8, and refuses those of 9.
constexpr const char* program = R"(#!/bin/bash
echo call >> "$(dirname "$0")/calls"
if grep -q 'batch_size: 8' "$2"; then echo 'cloze: error: no memory for this batch' >&2; exit 1; fi
if grep -q 'batch_size: 9' "$2"; then echo 'cloze: error: an odd batch' >&2; exit 2; fi
echo '{"parameters": 10, "checkpoint_bytes": 120, "peak_rss_mb": 50, "ms_per_step": 30, "ms_undisturbed": 20,
"share_of_cores": 1, "tokens_per_step": 100, "predicted_tokens_per_step": 15, "gflop_per_step": 2,
"sequences_per_epoch": 40, "words_per_epoch": 0, "held_out_tokens": 640}' | tr -d '\n'
)";

struct Arms {
  explicit Arms(const std::string& arms) {
    folder.write("base.yaml", small_run_yaml);
    folder.write("study.yaml", "study: s\nbase: base.yaml\nseeds: 2\nbudget: {steps: 50}\npoints: 1\narms:\n" + arms);
    folder.write("cloze", program);
    std::filesystem::permissions(folder / "cloze", std::filesystem::perms::owner_all);
    std::filesystem::create_directories(folder / "out");
  }
  std::vector<Probe> probes() const {
    Prober prober(folder / "out", folder / "cloze", 1, [](const auto&) {});
    return probe_arms(make_stages(folder / "study.yaml", folder / "out").compared(), prober);
  }
  size_t calls() const {
    const auto text = read_file(folder / "calls");
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  TempDir folder;
};

}  // namespace

TEST_CASE("arms are probed once, those whose steps cost the same together", "[study][probe]") {
  const Arms study(
      "  a: {}\n  b: {optimizer.learning_rate: 0.1, schedule.shape: constant}\n  c: {model.hidden_size: 64}\n");
  const auto probes = study.probes();
  REQUIRE(probes.size() == 3);
  CHECK(study.calls() == 2);
  CHECK(probes[0].seconds == Approx(0.02));
  CHECK(probes[0].flops == Approx(2e9));
  CHECK(probes[0].memory_bytes == Approx(50e6));
  study.probes();
  CHECK(study.calls() == 2);
}

TEST_CASE("what a process takes besides its steps and those before them is its start", "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  std::string slow = program;
  slow.replace(slow.find("if grep"), 0, "sleep 0.5\n");
  slow.replace(slow.find("\"parameters\""), 0, "\"steps\": 2, ");
  study.folder.write("cloze", slow);
  for (const auto& probe : study.probes()) {  // five steps of 20 ms
    CHECK(probe.start_seconds > 0.4);
    CHECK(probe.start_seconds < 10);
  }
}

TEST_CASE("a plan made while others want the cores has the times of runs that have them", "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  std::string busy = program;
  busy.replace(busy.find("if grep"), 0, "sleep 0.5\n");
  busy.replace(busy.find("\"share_of_cores\": 1"), 19, "\"steps\": 2, \"share_of_cores\": 0.05");
  study.folder.write("cloze", busy);
  for (const auto& probe : study.probes()) {
    CHECK(probe.seconds == Approx(0.02));  // and not the 30 ms that they took
    CHECK(probe.start_seconds < 0.05);     // a twentieth of the process, without five steps
  }
}

TEST_CASE("a probe of a run of which parts stay as they are is one of such a run, whatever it starts from",
          "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  study.folder.write("cloze", std::string(program) + "cp \"$2\" \"$(dirname \"$0\")/probed.yaml\"\n");
  Prober prober(study.folder / "out", study.folder / "cloze", 1, [](const auto&) {});
  const auto probed = [&](const std::string& set, const std::string& from) {
    const auto tree = ConfigTree::parse(small_run_yaml, "base.yaml", {set, "init.from=" + from});
    prober.probe(decode<RunConfig>(tree), "a run");
    const auto config = decode<RunConfig>(ConfigTree::load(study.folder / "probed.yaml"));
    CHECK_NOTHROW(validate(config));
    return config;
  };
  CHECK(probed("init.probe=true", "a").init.probe);
  CHECK(probed("init.probe=true", "b").init.probe);
  CHECK(probed("freeze.layers=0", "a").freeze.layers == 0);
  CHECK_FALSE(probed("adaptation.kind=bitfit", "a").adaptation.kind.is_full());
  CHECK(probed("train.batch_size=3", "a").init.from.empty());
  CHECK(study.calls() == 4);
}

TEST_CASE("a budget of whole steps has no step more for the rounding of a quotient", "[study][probe]") {
  RunConfig config;
  config.train.batch_size = 16;
  for (int64_t pass = 1; pass < 1000; ++pass) {
    config.train.budget = {.epochs = 3};
    CHECK(cost_of_run(config, {.tokens = 100, .sequences_per_epoch = 16 * static_cast<double>(pass)}).steps ==
          static_cast<double>(3 * pass));
  }
}

TEST_CASE("held-out evaluations cost a third of the training steps of their rows, on top", "[study][probe]") {
  RunConfig config;
  config.train.batch_size = 10;
  config.train.budget = {.steps = 100};
  config.evaluation.points = 20;
  config.evaluation.sequences = 300;
  const auto cost = cost_of_run(config, {.seconds = 0.02, .tokens = 100, .flops = 2e9});
  CHECK(cost.flops == Approx(100 * 2e9));
  CHECK(cost.evaluation_flops == Approx(20 * 300 / 10 / 3 * 2e9));
  CHECK(cost.evaluation_seconds == Approx(200 * 0.02));
  CHECK(cost.seconds == Approx(300 * 0.02));
}

TEST_CASE("answers to suites cost what a probe says, at each of their steps and at the end", "[study][probe]") {
  RunConfig config;
  config.train.batch_size = 10;
  config.train.budget = {.steps = 100};
  config.evaluation.points = 1;
  config.evaluation.sequences = 30;
  const Probe probe{.seconds = 0.02, .tokens = 100, .flops = 2e9, .suites = {.flops = 5e9, .seconds = 4}};
  const auto answers = [&](int64_t every) {
    config.evaluation.suite_every = every;
    const auto cost = cost_of_run(config, probe);
    CHECK(cost.suite_flops == Approx(cost.suite_seconds / 4 * 5e9));
    CHECK(cost.seconds == Approx(101 * 0.02 + cost.suite_seconds));
    CHECK(cost.evaluation_seconds == Approx(0.02));
    return cost.suite_seconds / 4;
  };
  CHECK(answers(0) == Approx(1));
  CHECK(answers(30) == Approx(4));   // at 30, 60, 90 and the end
  CHECK(answers(50) == Approx(2));   // at 50 and the end
  CHECK(answers(500) == Approx(1));  // at the end
}

TEST_CASE("a plan says how much of the work is suites, of all that an arm answers", "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  std::string answering = program;
  const std::string end = "640}";
  answering.replace(
      answering.find(end), end.size(),
      R"(640, "suite_costs": {"one": {"flops": 1e9, "seconds": 1}, "two": {"flops": 3e9, "seconds": 2}}})");
  study.folder.write("cloze", answering);
  const auto probes = study.probes();
  CHECK(probes[0].suites.flops == Approx(4e9));
  CHECK(probes[0].suites.seconds == Approx(3));
  const auto plan = make_stages(study.folder / "study.yaml", study.folder / "out").compared();
  const auto text = plan_table(plan, probes, 1, 200);
  // Four runs of 50 steps of 20 ms and 2 GFLOPs each, a pass over 20 rows, which are a third of 5 steps, and 3 s.
  CHECK_THAT(text, Catch::Contains("400 GFLOPs of training, ") && Catch::Contains("FLOPs of held-out losses and 16 "
                                                                                  "GFLOPs of suites, about 16s"));
  CHECK_THAT(text, Catch::Contains("of it held-out losses, ") && Catch::Contains("% suites)"));
}

TEST_CASE("a masking rate that changes along the run is planned with its mean", "[study][probe]") {
  const auto mean = [](const std::string& masking, const std::string& budget) {
    const std::vector<std::string> sets{"objectives.0.mlm_probability=0.15",
                                        "objectives.0.initial_mlm_probability=0.45", "objectives.0." + masking,
                                        "train.budget.steps=0", "train.budget." + budget};
    const auto config = decode<RunConfig>(ConfigTree::parse(small_run_yaml, "base.yaml", sets));
    const auto planned = with_mean_masking(config);
    CHECK(maskings_of(planned.objectives).at(0).initial_mlm_probability == 0);
    return maskings_of(planned.objectives).at(0).mlm_probability;
  };
  CHECK(mean("decay_steps=0", "steps=100") == Approx(0.3));
  CHECK(mean("decay_steps=50", "steps=100") == Approx(0.225));
  CHECK(mean("decay_steps=200", "steps=100") == Approx(0.375));
  CHECK(mean("decay_steps=50", "tokens=12800") == Approx(0.225));  // 100 steps of 4 rows of 32
  const auto plain = decode<RunConfig>(ConfigTree::parse(small_run_yaml, "base.yaml", {}));
  CHECK(to_yaml(with_mean_masking(plain)) == to_yaml(plain));
}

TEST_CASE("an arm whose steps fail is named with the reason, before any run", "[study][probe]") {
  const auto code_of = [](const Arms& study, const std::string& sentence) {
    try {
      study.probes();
    } catch (const Error& error) {
      CHECK(error.what() == sentence);
      return error.exit_code();
    }
    return 0;
  };
  CHECK(code_of(Arms("  a: {}\n  b: {train.batch_size: 8}\n"), "arm 'b': no memory for this batch") == 1);
  CHECK(code_of(Arms("  a: {}\n  b: {train.batch_size: 9}\n"), "arm 'b': an odd batch") == 2);
}

TEST_CASE("an arm of which one step uses up more than the budget is refused, in whatever currency", "[study][probe]") {
  const Arms study("  a: {}\n  b: {train.batch_size: 16}\n");
  auto plan = make_stages(study.folder / "study.yaml", study.folder / "out").compared();
  const Probe small{
      .tokens = 100, .predicted_tokens = 15, .flops = 2e9, .sequences_per_epoch = 40, .words_per_epoch = 600};
  auto large = small;
  large.tokens = 400;
  large.predicted_tokens = 60;
  large.flops = 8e9;
  const auto error = [&](const BudgetConfig& budget) {
    for (auto& run : plan.runs) run.config.train.budget = budget;
    return error_of([&] { check_budgets(plan, {small, large}); });
  };
  for (const auto& enough :
       {BudgetConfig{.steps = 1}, BudgetConfig{.tokens = 400}, BudgetConfig{.predicted_tokens = 60},
        BudgetConfig{.words = 240}, BudgetConfig{.epochs = 0.4}, BudgetConfig{.flops = 8e9}})
    CHECK(error(enough).empty());
  CHECK(error({.tokens = 399}) ==
        "arm 'b': one step uses up 400 tokens, and the budget of a run is 399 tokens; raise it, "
        "or lower train.batch_size of the arm");
  CHECK_THAT(error({.predicted_tokens = 59}), Catch::Contains("arm 'b'"));
  CHECK_THAT(error({.words = 239}), Catch::Contains("240 words"));
  CHECK_THAT(error({.epochs = 0.3}), Catch::Contains("0.4 epochs"));
  CHECK_THAT(error({.flops = 7e9}), Catch::Contains("8 GFLOPs"));
}

TEST_CASE("a search chooses on as many documents as are scored, not as the held-out text has", "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  auto plan = make_stages(study.folder / "study.yaml", study.folder / "out").compared();
  plan.documents = 400, plan.development = 100;
  plan.part = HeldOutPart::development;
  Probe probe;
  for (uint64_t document = 0; probe.scored_documents.size() < 180; ++document)
    if (document % 2 == 0) probe.scored_documents.insert(document);
  const auto scored = count_scored({probe, probe});
  CHECK(scored.all == 180);
  CHECK(scored.development == std::ranges::count_if(probe.scored_documents, is_development));
  REQUIRE(scored.development < 50);
  const auto words = concat(scored.development, " of the 180 held-out documents that are scored");
  CHECK_THAT(error_of([&] { check_scored(plan, {probe, probe}); }),
             Catch::Contains(words) && Catch::Contains("50 are needed: raise metric.sequences"));
  CHECK_THAT(plan_table(plan, {probe, probe}, 1, 200),
             Catch::Contains(concat(": ", scored.development, " of 180 that are scored")));
  for (uint64_t document = 0; document < 400; ++document) probe.scored_documents.insert(document);
  check_scored(plan, {probe, probe});
  probe.scored_documents.clear();
  check_scored(plan, {probe, probe});  // nobody knows
  plan.part = HeldOutPart::whole;
  check_scored(plan, {Probe{.scored_documents = {1}}});
}

TEST_CASE("a damaged file of probes is named", "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  study.probes();
  auto text = read_file(study.folder / "out/probes.json");
  text.replace(text.find("\"parameters\""), 12, "\"parameterz\"");
  study.folder.write("out/probes.json", text);
  CHECK_THROWS_WITH(study.probes(), Catch::Contains("out/probes.json: is damaged; remove it"));
}

TEST_CASE("a study that does not fit the disk is refused with both sizes", "[study][probe]") {
  CHECK_NOTHROW(require_disk("out", 9e6, 10e6));
  CHECK_THROWS_WITH(require_disk("out", 20e9, 10e6), Catch::Contains("out: the runs need 20") &&
                                                         Catch::Contains("of which 10") && Catch::Contains("--out"));
}

TEST_CASE("probes and a declaration that are nested deep are damaged, and cost nothing", "[study][probe]") {
  const Arms study("  a: {}\n  b: {model.hidden_size: 64}\n");
  study.probes();
  const std::string deep(2'000'000, '[');
  study.folder.write("out/probes.json", deep + std::string(deep.size(), ']'));
  CHECK(study.probes().size() == 2);  // made again
  study.folder.write("out/declaration.json",
                     R"({"declaration": "", "values": {"a": )" + deep + std::string(deep.size(), ']') + "}}");
  CHECK_THROWS_WITH(
      changes_since_declaration(make_stages(study.folder / "study.yaml", study.folder / "out").compared()),
      Catch::Contains("declaration.json: is damaged or was edited"));
}
