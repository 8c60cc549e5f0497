#include "run/config/foreign_names.h"
#include "run/config/load_config.h"

#include <algorithm>
#include <set>

#include "tests/support/catch.h"

using namespace cloze;

namespace {

void check_refused(const std::string& change, const std::string& sentence) {
  INFO(change);
  CHECK_THROWS_WITH(decode<RunConfig>(ConfigTree::parse("model: {kind: bert}", "x.yaml", {change})),
                    Catch::Contains(sentence));
}

}  // namespace

TEST_CASE("every foreign name stands once, is none of Cloze's in its section, and names a key or gives advice",
          "[config]") {
  const auto all = entries(RunConfig{});
  std::set<std::string> names;
  for (const auto& [name, key, advice] : foreign_names()) {
    INFO(name);
    CHECK(names.insert(name).second);
    const std::string wanted = key;
    if (wanted.empty()) {
      CHECK_FALSE(std::string(advice).empty());
      continue;
    }
    CHECK(std::any_of(all.begin(), all.end(), [&](const auto& e) { return e.leaf && e.path == wanted; }));
    CHECK(keys_meant_by({}, name) == std::vector<std::string>{wanted});
    const bool has_section = std::string(name).find('.') != std::string::npos;
    check_refused((has_section ? "" : "train.") + std::string(name) + "=one", "did you mean '" + wanted + "'?");
  }
  CHECK(names.size() > 60);
}

TEST_CASE("a key in other letter case is refused with its spelling", "[config]") {
  CHECK(keys_meant_by({}, "TRAIN.SEED") == std::vector<std::string>{"train.seed"});
  CHECK(keys_meant_by({}, "Model") == std::vector<std::string>{"model"});
}

TEST_CASE("a precision of other programs is refused with the one that is meant", "[config]") {
  for (const std::string half : {"fp16", "float16", "FP16"})
    check_refused("train.precision=" + half, "there is no fp16, and bf16 needs no loss scaling");
}

TEST_CASE("an objective that is named by its kind is refused with its number", "[config]") {
  const auto change = std::vector<std::string>{"objectives.nsp.kind=sop"};
  CHECK_THROWS_WITH(
      ConfigTree::parse("objectives: [{kind: mlm}, {kind: nsp}]", "x.yaml", change),
      Catch::Contains("'nsp' must be the number of an element, 0 to 1; did you mean 'objectives.1.kind'?"));
}

TEST_CASE("options of other programs are spelled like keys", "[config]") {
  CHECK(keys_meant_by({}, "--learning-rate=1e-4") == std::vector<std::string>{"optimizer.learning_rate"});
  CHECK(keys_meant_by({}, "--Max-Steps") == std::vector<std::string>{"train.budget.steps"});
  CHECK(keys_meant_by({}, "--init") == std::vector<std::string>{"init.from"});
  CHECK(keys_meant_by({}, "--nothing").empty());
  CHECK(keys_meant_by({}, "--objectives").empty());  // not evaluation.objectives
  CHECK(advice_on("--objectives").starts_with("they are a list: --set 'objectives=[{kind: mlm}]'"));
  CHECK(advice_on("--resume-from") == "a run is continued by `cloze pretrain --run DIR --resume`");
  CHECK(advice_on("--output-dir") == "the folder of a run is named with --run");
}
