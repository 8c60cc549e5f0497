// Suites that are called by name.
#include "evaluation/suites/suite.h"

#include <cstdlib>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Catch::Contains;

namespace {

/// A folder of suites, which CLOZE_SUITES names.
struct Suites {
  TempDir dir;
  Suites() { setenv("CLOZE_SUITES", dir.path.c_str(), 1); }
  ~Suites() { unsetenv("CLOZE_SUITES"); }
};

void check_unknown(const std::string& name, const std::string& sentence) {
  CHECK_THROWS_AS(find_suite(name), ConfigError);
  CHECK_THROWS_WITH(find_suite(name), Contains(sentence));
}

}  // namespace

TEST_CASE("a suite is found by its path, else by its name in the folder of suites", "[suites]") {
  const Suites suites;
  const auto pairs = suites.dir.write("pairs.jsonl.xz", ""), blimp = suites.dir.write("blimp/one.jsonl", "");
  suites.dir.write(".hidden.jsonl", "");
  CHECK(find_suite(pairs) == pairs);
  CHECK(find_suite("pairs") == pairs);
  CHECK(find_suite("pairs.jsonl.xz") == pairs);
  CHECK(find_suite("blimp") == suites.dir / "blimp");
  CHECK(suites_folder() == suites.dir.path.string());
  check_unknown("pears",
                "--suite pears: no such file, and no suite of " + suites.dir.path.string() + "; did you mean 'pairs'?");
  check_unknown("hidden", "no suite of ");
  check_unknown("something-else",
                ", which has blimp, pairs; nothing is downloaded: put its file there, or name the file");
}

TEST_CASE("BabyLM's evaluation data is known by its two folders", "[suites][babylm]") {
  const TempDir dir;
  dir.write("full/full_eval/notes.txt", "");
  dir.write("fast/fast_eval/notes.txt", "");
  const auto file = dir.write("file/full_eval", "");
  CHECK(is_babylm_data(dir / "full"));
  CHECK(is_babylm_data(dir / "fast"));
  CHECK_FALSE(is_babylm_data(dir / "file"));
  CHECK_FALSE(is_babylm_data(file));
  CHECK_FALSE(is_babylm_data(dir / "none"));
  CHECK_FALSE(is_babylm_data(std::string(5000, 'x')));
}

TEST_CASE("a folder of suites that is empty or not there is said", "[suites]") {
  const Suites suites;
  check_unknown("blimp", "which is empty; nothing is downloaded");
  setenv("CLOZE_SUITES", (suites.dir / "none").c_str(), 1);
  check_unknown("blimp",
                "none, the folder of suites (CLOZE_SUITES names another), is not there; nothing is downloaded");
  unsetenv("CLOZE_SUITES");
  CHECK(suites_folder() == "suites");
}
