// The tokenizer of a run is the one that it was trained with.
#include "run/run.h"

#include "core/error.h"
#include "tests/support/runs.h"

using namespace cloze;

TEST_CASE("a run whose tokenizer has changed is neither verified nor opened", "[run][tokenizer]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  CHECK_NOTHROW(verify_run(dir / "run"));
  auto vocabulary = read_file(dir / "run/tokenizer/vocab.txt");
  const auto at = vocabulary.find("wa\nwb\n");
  REQUIRE(at != std::string::npos);
  vocabulary.replace(at, 6, "wb\nwa\n");
  dir.write("run/tokenizer/vocab.txt", vocabulary);
  CHECK_THROWS_WITH(verify_run(dir / "run"),
                    Catch::Contains("run/tokenizer/vocab.txt: has changed since it was saved"));
  CHECK_THROWS_WITH(open_run(dir / "run"), Catch::Contains("run/tokenizer/vocab.txt: has changed since it was saved"));
}
