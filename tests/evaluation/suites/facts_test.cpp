// Facts to fill in: files, and the ranks of a tiny run against its own scores.
#include <ATen/ATen.h>

#include "evaluation/suites/facts.h"
#include "tests/inference/scoring/random_run.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/support/trained.h"

using namespace cloze;

namespace {

constexpr const char* facts =
    "{\"predicate_id\": \"R1\", \"sub_label\": \"wa\", \"obj_label\": \"wb\"}\n"
    "{\"predicate_id\": \"R1\", \"sub_label\": \"wc\", \"obj_label\": \"wd\"}\n"
    "{\"predicate_id\": \"R2\", \"sub_label\": \"we\", \"obj_label\": \"wf wg\"}\n"
    "{\"predicate_id\": \"R2\", \"sub_label\": \"wh\", \"obj_label\": \"wb\"}\n";
constexpr const char* patterns =
    "{\"predicate_id\": \"R1\", \"pattern\": \"[X] [Y] wh\"}\n"
    "{\"predicate_id\": \"R1\", \"pattern\": \"[Y] [X]\"}\n"
    "{\"predicate_id\": \"R2\", \"pattern\": \"[Y] wi [X]\"}\n";

template <class Call>
std::string fault_in(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("facts take the first template of their relation, cut at the object") {
  const TempDir dir;
  dir.write("f/facts.jsonl", facts);
  dir.write("f/patterns.jsonl", patterns);
  const auto suite = read_facts(dir / "f");
  REQUIRE(suite);
  REQUIRE(suite->relations.size() == 2);
  const auto& first = suite->relations[0].facts[0];
  CHECK(first.left == "wa ");
  CHECK(first.object == "wb");
  CHECK(first.right == " wh");
  CHECK(suite->relations[1].objects == std::vector<std::string>{"wb", "wf wg"});
  CHECK(read_facts(dir / "f/facts.jsonl")->relations.size() == 2);
}

TEST_CASE("facts without a template are left out with a note; templates without blanks are named") {
  const TempDir dir;
  dir.write("f/facts.jsonl", facts);
  CHECK(fault_in([&] { read_facts(dir / "f"); }).find("has no templates next to it") != std::string::npos);
  dir.write("f/patterns.jsonl", "{\"predicate_id\": \"R1\", \"pattern\": \"[X] [Y]\"}\n");
  const auto suite = read_facts(dir / "f");
  REQUIRE(suite->relations.size() == 1);
  REQUIRE(suite->notes.size() == 1);
  CHECK(suite->notes[0].find("'R2', which has no template, are left out: 2") != std::string::npos);
  dir.write("f/patterns.jsonl", "{\"predicate_id\": \"R9\", \"pattern\": \"[X] [Y]\"}\n");
  CHECK(fault_in([&] { read_facts(dir / "f"); }).find("has no template for any relation") != std::string::npos);
  dir.write("f/patterns.jsonl", "{\"predicate_id\": \"R1\", \"pattern\": \"[X] wa\"}\n");
  CHECK(fault_in([&] { read_facts(dir / "f"); }).find("needs one [Y]") != std::string::npos);
}

TEST_CASE("ranks of facts are those of the masked position's logits") {
  const TempDir dir;
  dir.write("f/facts.jsonl", facts);
  dir.write("f/patterns.jsonl", patterns);
  const auto run = open_run(trained());
  const auto result = run_suite(run, *read_facts(dir / "f"), {});
  REQUIRE(result.items.size() == 4);
  CHECK(result.scores[0].metric == "p@1");
  CHECK(result.scores[0].count == 3);
  // [CLS] wa [MASK] wh [SEP]
  const at::NoGradGuard no_grad;
  const auto& special = run.tokenizer.special();
  const std::vector<int64_t> ids{special.cls, run.tokenizer.id("wa"), special.mask, run.tokenizer.id("wh"),
                                 special.sep};
  Tensor logits;
  for (const auto& [name, tensor] : run.network->outputs({.input_ids = at::tensor(ids, at::kLong).unsqueeze(0)}))
    if (name == "prediction_logits") logits = tensor[0][2];
  const auto rank = 1 + (logits > logits[run.tokenizer.id("wb")]).sum().item<int64_t>();
  CHECK(result.items[0]["rank"] == rank);
  // The object of two tokens is ranked among the objects of its relation only.
  CHECK_FALSE(result.items[2].contains("rank"));
  CHECK(result.items[2].contains("restricted_rank"));
  auto certain = *read_facts(dir / "f");
  for (auto& relation : certain.relations) {
    relation.facts.resize(1);
    relation.objects = {relation.facts[0].object};
  }
  CHECK_THAT(run_suite(run, certain, {}).notes.back(), Catch::Contains("facts are of relations with a single object"));
}

TEST_CASE("intervals of facts are shares, and ties are those of the objects of a relation, shared by the best") {
  const TempDir dir;
  // Words without tokens: all objects are [UNK], and score the same.
  dir.write("f/facts.jsonl",
            "{\"predicate_id\": \"R1\", \"sub_label\": \"cat\", \"obj_label\": \"wb\"}\n"
            "{\"predicate_id\": \"R1\", \"sub_label\": \"dog\", \"obj_label\": \"wd\"}\n"
            "{\"predicate_id\": \"R2\", \"sub_label\": \"bird\", \"obj_label\": \"wf\"}\n"
            "{\"predicate_id\": \"R2\", \"sub_label\": \"river\", \"obj_label\": \"wb\"}\n");
  dir.write("f/patterns.jsonl", patterns);
  const auto result = run_suite(random_run(dir, "bert"), *read_facts(dir / "f"), {});
  for (const auto& score : result.scores) {
    INFO(score.metric << " " << score.group);
    REQUIRE(score.interval);
    CHECK(score.interval->low >= 0);
    CHECK(score.interval->low <= score.value + 1e-12);
    CHECK(score.value <= score.interval->high + 1e-12);
    CHECK(score.interval->low < score.interval->high);
    CHECK(score.interval->high <= 1);
    CHECK(score.ties == (score.metric.starts_with("restricted") ? score.count : 0));
    if (score.metric == "restricted_p@1") CHECK(score.value == 0.5);  // each of two objects is one of two best
    if (score.metric == "restricted_mrr") CHECK(score.value == Approx(1 / 1.5));
  }
}

TEST_CASE("progress counts the passages of all relations") {
  const TempDir dir;
  dir.write("f/facts.jsonl", facts);
  dir.write("f/patterns.jsonl", patterns);
  const auto run = open_run(trained());
  std::vector<int64_t> done;
  SuiteOptions options;
  options.scoring.progress = [&](int64_t now, int64_t all) {
    CHECK(all == 8);  // two facts of two objects in each of two relations
    done.push_back(now);
  };
  run_suite(run, *read_facts(dir / "f"), options);
  CHECK(std::ranges::is_sorted(done));
  CHECK(done.back() == 8);
}

TEST_CASE("facts with a blank side, and facts of one uuid, are refused with their place") {
  const TempDir dir;
  dir.write("f/patterns.jsonl", patterns);
  const auto refusal = [&](const std::string& lines) {
    dir.write("f/facts.jsonl", facts + lines);
    return fault_in([&] { read_facts(dir / "f"); });
  };
  CHECK(refusal("{\"predicate_id\": \"R1\", \"sub_label\": \"wa\", \"obj_label\": \" \"}\n")
            .ends_with("facts.jsonl:5: `obj_label` is empty; give it text, or remove the line"));
  CHECK(refusal("{\"predicate_id\": \"R1\", \"sub_label\": \"\", \"obj_label\": \"wb\"}\n")
            .find("facts.jsonl:5: `sub_label` is empty") != std::string::npos);
  const std::string named =
      "{\"predicate_id\": \"R1\", \"sub_label\": \"wa\", \"obj_label\": \"wb\", \"uuid\": \"u1\"}\n";
  CHECK(refusal(named).empty());
  CHECK(refusal(named + named).find("facts.jsonl:6: the fact 'R1/u1' is there twice, first in ") != std::string::npos);
}

TEST_CASE("an object without tokens is refused, since a score of nothing would be the best") {
  const TempDir dir;
  dir.write("f/facts.jsonl",
            "{\"predicate_id\": \"R1\", \"sub_label\": \"cat\", \"obj_label\": \"dog\"}\n"
            "{\"predicate_id\": \"R1\", \"sub_label\": \"cat\", \"obj_label\": \"\xE2\x80\x8B\"}\n");
  dir.write("f/patterns.jsonl", patterns);
  const auto run = random_run(dir, "bert");
  CHECK(fault_in([&] {
          run_suite(run, *read_facts(dir / "f"), {});
        }).starts_with("fact R1/0: the object '\xE2\x80\x8B' has no token to score"));
}

TEST_CASE("an object of several tokens is scored with all of them masked, unless a form is asked for") {
  const TempDir dir;
  dir.write("f/facts.jsonl", facts);
  dir.write("f/patterns.jsonl", patterns);
  const auto run = open_run(trained());
  const auto suite = *read_facts(dir / "f");
  const auto together = run_suite(run, suite, {}),
             in_turn = run_suite(run, suite, {.scoring = {.form = ScoringForm::pll}});
  CHECK(together.scored_by.find("all tokens masked together") != std::string::npos);
  const auto score = [](const SuiteResult& result, size_t item) { return result.items[item]["score"].get<double>(); };
  CHECK(score(together, 0) == Approx(score(in_turn, 0)));  // one token
  const std::vector gap{Passage{.left = "", .scored = "wf wg", .right = " wi we"}};
  const auto wanted = Scorer(run, {.form = ScoringForm::pll_span}).score(gap)[0];
  CHECK(wanted.tokens.size() == 2);
  CHECK(score(together, 2) == Approx(wanted.sum / 2));
  CHECK(score(together, 2) != Approx(score(in_turn, 2)));
}
