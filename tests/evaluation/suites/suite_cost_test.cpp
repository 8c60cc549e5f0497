// What suites of every kind cost, by samples of their items.
#include "evaluation/suites/suite.h"

#include <nlohmann/json.hpp>

#include "inference/scoring/counted_flops.h"
#include "tests/evaluation/suites/reading_table.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;
using nlohmann::json;

namespace {

const std::vector<std::string> words{"the", "a", "cat", "dog", "bird", "see", "sing", "old", "and", "by", "river"};

/// Six words, of which few sentences share five.
std::string six_words(size_t number) {
  auto draw = Rng(5).stream("words", 0, number);
  std::string text;
  for (int i = 0; i < 6; ++i) text += (i > 0 ? " " : "") + words[draw.below(words.size())];
  return text;
}

std::string pairs(size_t count) {
  std::string lines;
  for (size_t i = 0; i < count; ++i)
    lines += json{{"sentence_good", six_words(2 * i)}, {"sentence_bad", six_words(2 * i + 1)}}.dump() + "\n";
  return lines;
}

/// FLOPs of all answers.
double flops_of(const LoadedRun& run, const Suite& suite) {
  const CountedFlops counted;
  run_suite(run, suite, {});
  return counted.total();
}

constexpr double least = 1e-9;  ///< seconds, in which a sample is the smallest

}  // namespace

TEST_CASE("a sample is spread evenly over the sizes of items, whatever their order", "[suites][cost]") {
  CHECK(spread_sample({5, 1, 4, 2, 3, 6}, 3) == std::vector<size_t>{2, 3, 5});
  CHECK(spread_sample({3, 1, 2}, 1) == std::vector<size_t>{2});
  CHECK(spread_sample({3, 1, 2}, 9) == std::vector<size_t>{0, 1, 2});
  std::vector<double> sizes;
  for (int i = 0; i < 1000; ++i) sizes.push_back(i * 7919 % 1000);
  double sum = 0;
  for (const auto item : spread_sample(sizes, 8)) sum += sizes[item];
  CHECK(sum / 8 == Approx(499.5).epsilon(0.01));
}

TEST_CASE("the FLOPs of answers are those of their rows, two for each multiply-add", "[suites][cost]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto suite = open_suite(dir.write("pairs.jsonl", pairs(1)));
  // Twelve rows [CLS] ... [SEP], each with one masked token.
  const auto cost = run.network->cost({{.count = 12, .length = 8, .read = 1, .predicted = 1}});
  const auto nsp =
      run.network->objective_at("nsp")->cost(*run.network->backbone, {{.count = 12, .length = 8, .read = 1}});
  CHECK(flops_of(run, suite) == Approx(2 * (cost.trained - nsp.trained)));
}

TEST_CASE("a suite costs what a sample of it says, of every kind", "[suites][cost]") {
  const TempDir dir;
  dir.write("lama/templates.jsonl", "{\"predicate_id\": \"R\", \"pattern\": \"[X] see [Y]\"}\n");
  std::string facts, similar, analogies = ": animals\n";
  json contexts;
  for (size_t i = 0; i < 40; ++i) {
    facts += json{{"predicate_id", "R"},
                  {"uuid", std::to_string(i)},
                  {"sub_label", six_words(i)},
                  {"obj_label", words[i % 4]}}
                 .dump() +
             "\n";
    similar += words[i % 11] + " " + words[(i + 1 + i / 11) % 11] + " " + std::to_string(i * 7 % 10) + "\n";
    analogies +=
        words[i % 11] + " " + words[(i + 1) % 11] + " " + words[(i + 2) % 11] + " " + words[(i + 3) % 11] + "\n";
    contexts["cats"].push_back({{"context", six_words(i)}});
  }
  dir.write("lama/facts.jsonl", facts);
  const std::vector<std::string> paths{dir.write("pairs.jsonl", pairs(40)),
                                       dir / "lama",
                                       dir.write("reading.csv", reading_table(120)),
                                       dir.write("words.json", contexts.dump()),
                                       dir.write("similar.txt", similar),
                                       dir.write("analogies.txt", analogies)};
  for (const std::string family : {"bert", "gpt2"}) {
    const auto run = random_run(dir, family);
    for (const auto& path : paths) {
      INFO(family << " " << path);
      const auto suite = open_suite(path);
      const auto whole = flops_of(run, suite);
      REQUIRE(whole > 0);
      const auto all = suite_cost(run, suite, {}, 1e6);
      CHECK(all.seconds > 0);
      const auto sampled = suite_cost(run, suite, {}, least);
      if (std::holds_alternative<ReadingSuite>(suite.items)) continue;  // the same six words over and over
      CHECK(all.flops == Approx(whole).epsilon(0.02));
      CHECK(sampled.flops == Approx(whole).epsilon(0.3));
      CHECK(sampled.seconds > 0);
    }
  }
}

TEST_CASE("a suite that a run cannot answer has no cost, with the reason", "[suites][cost]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto suite = open_suite(dir.write("pairs.jsonl", pairs(1)));
  CHECK_THROWS_WITH(suite_cost(run, suite, {.scoring = {.form = ScoringForm::likelihood}}, least),
                    Catch::Contains("runs/random: cannot answer pairs: "));
}
