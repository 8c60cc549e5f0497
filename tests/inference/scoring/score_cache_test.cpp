// Scores that are kept.
#include <filesystem>
#include <fstream>
#include <thread>

#include "inference/scoring/score_cache.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;

namespace {

std::string only_file(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) found.push_back(entry.path().string());
  REQUIRE(found.size() == 1);
  return found[0];
}

}  // namespace

TEST_CASE("a score that was computed before has the same bits, and its text is not scored again", "[scoring][cache]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const ScoringOptions options{.cache = dir / "scores"};
  const auto first = Scorer(run, options).score(whole(some_texts));
  const auto file = only_file(dir / "scores");
  const auto size = std::filesystem::file_size(file);
  CHECK((Scorer(run, options).score(whole(some_texts)) == first));
  CHECK(std::filesystem::file_size(file) == size);
  // Another batch would compute other bits, were they not known.
  CHECK((Scorer(run, {.cache = dir / "scores", .batch_tokens = 9}).score(whole({some_texts[3]}))[0] == first[3]));
  CHECK((first == Scorer(run, {}).score(whole(some_texts))));
}

TEST_CASE("ranks are kept with their scores, apart from scores without ranks", "[scoring][cache]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const ScoringOptions ranked{.cache = dir / "scores", .ranks = true};
  Scorer(run, {.cache = dir / "scores"}).score(whole(some_texts));
  const auto first = Scorer(run, ranked).score(whole(some_texts));
  CHECK((first == Scorer(run, {.ranks = true}).score(whole(some_texts))));
  for (const auto& token : first[0].tokens) CHECK(token.rank > 0);
  // Another batch would compute other bits, were they not known.
  auto other = ranked;
  other.batch_tokens = 9;
  CHECK((Scorer(run, other).score(whole({some_texts[3]}))[0] == first[3]));
}

TEST_CASE("a file of scores is made when there is one to keep", "[scoring][cache]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const Scorer scorer(run, {.cache = dir / "scores"});
  scorer.check_fit(whole(some_texts));
  CHECK_FALSE(std::filesystem::exists(dir / "scores"));
  const ScoreCache cache(dir / "scores", "x");
  CHECK(std::filesystem::is_empty(dir / "scores"));
  scorer.score(whole(some_texts));
  CHECK(std::filesystem::file_size(only_file(dir / "scores")) > 0);
}

TEST_CASE("other weights, another form and another stride have other files", "[scoring][cache]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto texts = whole({"the cats"});
  const auto files = [&] {
    size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir / "scores")) ++count;
    return count;
  };
  const auto before = Scorer(run, {.cache = dir / "scores"}).score(texts);
  Scorer(run, {.form = ScoringForm::pll_word_l2r, .cache = dir / "scores"}).score(texts);
  Scorer(run, {.stride = 5, .cache = dir / "scores"}).score(texts);
  CHECK(files() == 3);
  {
    const at::NoGradGuard no_grad;
    collect_params(*run.network)[0].param.value()[8].add_(0.5);
  }
  CHECK((Scorer(run, {.cache = dir / "scores"}).score(texts) != before));
  CHECK(files() == 4);
}

TEST_CASE("a passage is known by all of its parts", "[scoring][cache]") {
  const TempDir dir;
  ScoreCache cache(dir / "scores", "x");
  cache.add({.left = "ab", .scored = "c"}, {-1});
  CHECK(cache.find({.left = "ab", .scored = "c"}));
  CHECK_FALSE(cache.find({.left = "a", .scored = "bc"}));
  CHECK_FALSE(cache.find({.scored = "c", .right = "ab"}));
}

TEST_CASE("a file of scores that was cut off keeps its whole records and goes on after them", "[scoring][cache]") {
  const TempDir dir;
  const auto text = [](int i) { return Passage{.scored = "text " + std::to_string(i)}; };
  std::string path;
  {
    ScoreCache cache(dir / "scores", "x");
    for (int i = 0; i < 4; ++i) cache.add(text(i), {-0.5 * i, -1.0 / 3});
    cache.flush();
    path = cache.path();
  }
  const auto size = std::filesystem::file_size(path);
  const auto content = read_file(path);
  const auto cut = GENERATE(1, 8, 20, 39, 40);
  std::filesystem::resize_file(path, size - static_cast<size_t>(cut));
  ScoreCache cache(dir / "scores", "x");
  CHECK(cache.find(text(2))->back() == -1.0 / 3);
  CHECK_FALSE(cache.find(text(3)));
  cache.add(text(3), {-1.5, -1.0 / 3});
  cache.flush();
  CHECK(read_file(path) == content);
}

TEST_CASE("bytes that are no records are cut off, a record of a damaged number is not taken", "[scoring][cache]") {
  const TempDir dir;
  {
    ScoreCache cache(dir / "scores", "x");
    cache.add({.scored = "one"}, {-1});
    cache.flush();
    cache.add({.scored = "two"}, {-2});
    cache.flush();
  }
  const auto path = dir / "scores/x.scores";
  auto content = read_file(path);
  content[content.size() - 10] = static_cast<char>(content[content.size() - 10] ^ 1);  // in the second value
  std::ofstream(path, std::ios::binary) << content << "rubbish";
  ScoreCache cache(dir / "scores", "x");
  CHECK(cache.find({.scored = "one"}));
  CHECK_FALSE(cache.find({.scored = "two"}));
  dir.write("scores/y.scores", std::string(100, '\xFF'));
  CHECK_FALSE(ScoreCache(dir / "scores", "y").find({.scored = "one"}));
}

TEST_CASE("two writers of one file of scores keep each other's records", "[scoring][cache]") {
  const TempDir dir;
  constexpr int each = 200;
  const auto work = [&](int writer) {
    ScoreCache cache(dir / "scores", "x");
    for (int i = 0; i < each; ++i) {
      cache.add({.scored = concat(writer, " ", i)}, std::vector<double>(static_cast<size_t>(i % 7), -i));
      cache.flush();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  const ScoreCache cache(dir / "scores", "x");
  for (int writer = 0; writer < 2; ++writer)
    for (int i = 0; i < each; ++i) {
      const auto found = cache.find({.scored = concat(writer, " ", i)});
      REQUIRE(found);
      CHECK(found->size() == static_cast<size_t>(i % 7));
    }
}

TEST_CASE("a folder of scores that cannot be made is named", "[scoring][cache]") {
  const TempDir dir;
  dir.write("file", "");
  CHECK_THROWS_WITH(ScoreCache(dir / "file/scores", "x"), Catch::Contains("file/scores: cannot be created ("));
}
