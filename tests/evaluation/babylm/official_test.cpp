// The official column against the report of the published program.
#include <map>

#include "evaluation/babylm/evaluate.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// Pairs whose first sentence has this sum, and the other -1.
struct Pairs {
  BabylmTask task;
  std::vector<PassageScore> scores{};
  std::vector<std::vector<float>> sums{};

  void add(const std::string& uid, std::vector<std::pair<std::string, std::string>> groups, float sum) {
    groups.emplace_back("UID", uid);
    task.items.push_back({.uid = uid,
                          .groups = std::move(groups),
                          .candidates = {{.sentence = "the owl sees", .completion = "the owl sees"},
                                         {.sentence = "the owl see", .completion = "the owl see"}}});
    for (const float one : {sum, -1.0F}) scores.push_back({.sum = one, .tokens = {{.log_probability = one}}});
    sums.push_back({sum, -1});
  }
  /// The official accuracies by group; the whole suite without a name.
  std::map<std::string, double> officials() const {
    std::map<std::string, double> found;
    for (const auto& score : babylm_result(task, scores, sums, Normalisation::sum).scores)
      if (score.metric == "accuracy") found[score.group] = score.official.value();
    return found;
  }
};

}  // namespace

TEST_CASE("the official accuracy of a field counts its items alike, that of the suite its paradigms", "[babylm]") {
  Pairs pairs{.task = {.dataset = {"blimp", "blimp_fast", BabylmFormat::blimp}, .items = {}}};
  for (const float sum : {-0.5F, -0.5F, -2.0F, -1.0F}) pairs.add("agreement", {{"field", "syntax"}}, sum);
  pairs.add("islands", {{"field", "syntax"}}, -2);
  CHECK(pairs.officials() ==
        std::map<std::string, double>{{"", 0.375}, {"syntax", 0.6}, {"agreement", 0.75}, {"islands", 0}});
}

TEST_CASE("the official accuracy of entity tracking is the mean of its splits", "[babylm]") {
  Pairs boxes{.task = {.dataset = {"entity_tracking", "entity_tracking", BabylmFormat::entity_tracking}, .items = {}}};
  for (const auto* uid : {"regular_0_ops", "regular_1_ops", "regular_2_ops"}) boxes.add(uid, {}, -0.5F);
  boxes.add("ambiref_0_ops", {}, -2);
  const auto officials = boxes.officials();
  CHECK(officials.at("") == 0.5);
  CHECK(officials.at("regular") == 1);
  CHECK(officials.at("ambiref") == 0);
}
