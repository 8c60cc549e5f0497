// What a view shows: groups of tokens, calibration, projections, pictures.
#include <ATen/ATen.h>

#include <cmath>

#include "inference/views/view.h"
#include "tests/inference/scoring/random_run.h"
#include "tests/support/catch.h"
#include "tests/support/trained.h"
#include "tests/support/objective.h"

using namespace cloze;

namespace {

SeenToken token(int64_t id, int64_t position, double loss, double confidence, bool right) {
  return {.id = id, .position = position, .loss = loss, .confidence = confidence, .right = right};
}

}  // namespace

TEST_CASE("positions are grouped by powers of two, and a group has the means of its tokens") {
  const auto groups = by_position(
      {token(1, 0, 2, 0.5, true), token(1, 2, 1, 0.5, false), token(2, 3, 3, 0.5, true), token(3, 4, 5, 0.5, false)});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "0");
  CHECK(groups[1].name == "2 to 3");
  CHECK(groups[1].count == 2);
  CHECK(groups[1].loss == Approx(2));
  CHECK(groups[1].accuracy == Approx(0.5));
  CHECK(groups[2].name == "4 to 7");
}

TEST_CASE("frequencies are grouped by how often a token occurs in the texts") {
  std::vector<SeenToken> tokens{token(7, 0, 4, 0.5, false)};
  for (int64_t i = 0; i < 10; ++i) tokens.push_back(token(8, i, 1, 0.5, true));
  const auto groups = by_frequency(tokens);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].name == "1");
  CHECK(groups[0].loss == Approx(4));
  CHECK(groups[1].name == "10 to 99");
  CHECK(groups[1].count == 10);
}

TEST_CASE("frequencies are those of the training text where its counts are known") {
  const std::vector<SeenToken> tokens{token(2, 0, 4, 0.5, false), token(1, 1, 1, 0.5, true), token(9, 2, 2, 0.5, true)};
  const auto groups = by_frequency(tokens, std::vector<uint64_t>{7, 1, 250});
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].name == "0");  // an id without a count
  CHECK(groups[0].loss == Approx(2));
  CHECK(groups[1].name == "1");
  CHECK(groups[2].name == "100 to 999");
  CHECK(groups[2].loss == Approx(4));
}

TEST_CASE("the first texts are shown token by token, each with its loss") {
  const auto run = open_run(trained());
  const std::vector<SeenToken> tokens{token(5, 0, 2, 0.5, true), token(6, 1, 0.5, 0.5, false),
                                      token(7, 0, 3, 0.5, true), token(8, 0, 1, 0.5, true)};
  const auto texts = losses_of_texts(run.tokenizer, tokens, 2);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].pieces == std::vector{run.tokenizer.piece(5), run.tokenizer.piece(6)});
  CHECK(texts[0].losses == std::vector{2.0, 0.5});
  CHECK(texts[1].losses == std::vector{3.0});
  View view{.run = "run", .checkpoint = "step", .scored_by = "pll", .texts = 3, .read = texts};
  view.read[1].pieces = {"<b>"};
  const auto page = to_html(view);
  CHECK_THAT(page, Catch::Contains("The first 2 texts.") && Catch::Contains("up to 3.00 nats") &&
                       Catch::Contains("<span style=\"--loss: 0.167\" title=\"0.50 nats\">") &&
                       Catch::Contains("--loss: 1.000\" title=\"3.00 nats\">&lt;b&gt;</span>"));
}

TEST_CASE("the squares of attention have the tokens along their sides, as many as there is room for") {
  View view{.run = "run", .checkpoint = "step", .scored_by = "pll", .texts = 1};
  view.attention.tokens = {"[CLS]", "<a>", "[SEP]"};
  view.attention.heads = {{std::vector<float>(9, 0.3F), std::vector<float>(9, 0.3F)}};
  const auto labelled = [](const std::string& page, const std::string& label) {
    size_t count = 0;
    for (auto at = page.find(">" + label + "</text>"); at != std::string::npos;
         at = page.find(">" + label + "</text>", at + 1))
      ++count;
    return count;
  };
  const auto page = to_html(view);
  CHECK(labelled(page, "[CLS]") == 2);  // once on the left, once above, for all squares
  CHECK(labelled(page, "&lt;a&gt;") == 2);
  CHECK_THAT(page, Catch::Contains("<title>layer 1, head 2</title>") && Catch::Contains(">head 2</text>"));
  CHECK_THAT(page, !Catch::Contains("is named"));
  view.attention.tokens.assign(64, "a");
  view.attention.heads = {{std::vector<float>(64 * 64, 0.1F)}};
  const auto longer = to_html(view);
  CHECK(labelled(longer, "a") == 64);
  CHECK_THAT(longer, Catch::Contains("one in 2 is named"));
}

TEST_CASE("the calibration error is the weighted distance of confidence and accuracy over the bins") {
  // Two bins: 0.2 and 0.4 (mean 0.3) with half of them right, and 0.9 always wrong.
  const auto found = calibration_of(
      {token(1, 0, 1, 0.2, true), token(1, 0, 1, 0.4, false), token(1, 0, 1, 0.9, false), token(1, 0, 1, 0.9, false)},
      2);
  REQUIRE(found.bins.size() == 2);
  CHECK(found.error == Approx(0.5 * std::abs(0.5 - 0.3) + 0.5 * 0.9));
}

TEST_CASE("principal components keep the distances of points in a plane") {
  const auto plane = at::tensor({1.0, 2.0, 0.0, -1.0, 0.5, 0.0, 3.0, -2.0, 0.0}, at::kDouble).view({3, 3});
  const auto found = principal_components(plane);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 3; ++j) {
      const auto [xi, yi] = found.points[i];
      const auto [xj, yj] = found.points[j];
      const auto distance = (plane[static_cast<int64_t>(i)] - plane[static_cast<int64_t>(j)]).norm().item<double>();
      CHECK(std::hypot(xi - xj, yi - yj) == Approx(distance).margin(1e-12));
    }
  CHECK(found.first_share + found.second_share == Approx(1));
}

TEST_CASE("a picture is a bitmap of its size") {
  const auto uri = picture_uri({0, 1, 0.5, 0.25}, 2, 1);
  CHECK(uri.starts_with("data:image/bmp;base64,Qk"));  // BM
  CHECK(uri.size() == 22 + (14 + 40 + 1024 + 8 + 2) / 3 * 4);
  const std::vector<float> map{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  CHECK(shrunk(map, 4, 4) == map);
  CHECK(shrunk(map, 4, 2) == std::vector<float>{2.5, 4.5, 10.5, 12.5});
}

TEST_CASE("a view of a run holds the scores of its texts, and its page refers to nothing outside") {
  const auto run = open_run(trained());
  const std::vector<std::string> texts{"wa wd wk", "wb wh wg wd", "wc wk"};
  const auto view = view_of(run, texts, {});
  int64_t count = 0;
  double loss = 0;
  for (const auto& group : view.positions) {
    count += group.count;
    loss += static_cast<double>(group.count) * group.loss;
  }
  CHECK(count == 9);
  double sum = 0;
  std::vector<Passage> passages;
  for (const auto& text : texts) passages.push_back({.left = {}, .scored = text, .right = {}});
  for (const auto& score : Scorer(run, {}).score(passages)) sum += score.sum;
  CHECK(loss == Approx(-sum).epsilon(1e-9));
  REQUIRE(view.attention.heads.size() == 1);
  REQUIRE(view.attention.heads[0].size() == 2);
  float row = 0;
  for (size_t i = 0; i < 5; ++i) row += view.attention.heads[0][0][i];
  CHECK(row == Approx(1).epsilon(1e-4));
  const auto page = to_html(view);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("http") == std::string::npos);
  CHECK(page.find("occurrences in these texts") != std::string::npos);
  CHECK(page.find("is not known; these are the numbers in") != std::string::npos);
  CHECK(page.find("as confident as right</li>") != std::string::npos);  // the legend of the calibration
  CHECK(to_json(view)["frequency_of"] == "texts");
  CHECK(to_json(view)["mean_cosine"].is_number());
  const auto single = view_of(run, {"wa wd wk"}, {});
  CHECK(to_json(single)["mean_cosine"].is_null());
  CHECK(to_html(single).find("Two texts or more make a picture") != std::string::npos);
  CHECK(to_html(single).find(">1 text, checkpoint ") != std::string::npos);
  const auto counted = view_of(run, texts, {.training_counts = std::vector<uint64_t>(40, 3)});
  CHECK(to_json(counted)["frequency_of"] == "training");
  CHECK(to_html(counted).find("occurrences in the training text") != std::string::npos);
  REQUIRE(counted.frequencies.size() == 1);
  CHECK(counted.frequencies[0].name == "2 to 9");
}

TEST_CASE("the axis of groups has a tick for each row of their table") {
  View view{.run = "run", .checkpoint = "step", .scored_by = "pll", .texts = 1};
  view.positions = {{.name = "0", .count = 1, .loss = 2},
                    {.name = "1", .count = 1, .loss = 1},
                    {.name = "2 to 3", .count = 2, .loss = 1}};
  const auto page = to_html(view);
  const auto section = page.substr(page.find("Loss by position"), page.find("<table") - page.find("Loss by position"));
  const auto x_ticks = [&](const std::string& text) {
    return section.find("text-anchor=\"middle\">" + text + "</text>") != std::string::npos;
  };
  CHECK((x_ticks("1") && x_ticks("2") && x_ticks("3")));
  CHECK_FALSE(x_ticks("0.5"));
}

TEST_CASE("a view of rtd is of the tokens that the generator predicts, and needs one") {
  const TempDir dir;
  const std::vector<std::string> texts{"the cats see a dog", "singing birds"};
  const auto run = random_run(dir, "electra");
  const auto view = view_of(run, texts, {});
  CHECK(view.scored_by.find("by the generator") != std::string::npos);
  double sum = 0, loss = 0;
  for (const auto& score : Scorer(run, {.form = ScoringForm::pll}).score(whole(texts))) sum += score.sum;
  for (const auto& group : view.positions) loss += static_cast<double>(group.count) * group.loss;
  CHECK(loss == Approx(-sum).epsilon(1e-9));
  for (const auto& bin : view.calibration.bins) CHECK(bin.confidence < 1);
  const auto uniform = objective("{kind: rtd, replace_by: uniform}");
  CHECK_THROWS_AS(view_of(random_run(dir, family("electra").model, {uniform}), texts, {}), ConfigError);
}
