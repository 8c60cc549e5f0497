// The tokenizer of a run is the one that it was trained with.
#include "run/run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
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

TEST_CASE("verifying a run warns of a whole tokenizer that is not the one of its provenance", "[run][tokenizer]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  const auto verified = [&] {
    const auto path = dir / "log.txt";
    std::filesystem::remove(path);
    set_log_file(path);
    verify_run(dir / "run");
    set_log_file("");
    return read_file(path);
  };
  CHECK_THAT(verified(), !Catch::Contains("restore its tokenizer"));
  auto origin = nlohmann::json::parse(read_file(dir / "run/provenance.json"));
  origin["data"]["tokenizer"] = "0123456789abcdef";
  dir.write("run/provenance.json", origin.dump());
  CHECK_THAT(verified(), Catch::Contains("provenance.json 0123456789abcdef; unless the run was resumed"));
  origin.erase("data");
  dir.write("run/provenance.json", origin.dump());
  CHECK_THAT(verified(), !Catch::Contains("restore its tokenizer"));
}
