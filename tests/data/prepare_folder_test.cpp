// The folder that `prepare` makes: whole at every moment, and made by one process at a time.
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "core/lock.h"
#include "data/manifest.h"
#include "data/prepare.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// Options for the text of `tiny_store`, into `out`.
PrepareOptions options_for(const TempDir& dir, const std::string& out, double held_out) {
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.out = dir / out;
  options.tokenizer = dir / "vocab.txt";
  options.format = TextFormat::lines;
  options.held_out = held_out;
  options.threads = 1;
  return options;
}

/// Tokens of one share of held-out text in `old`, of another in `new`.
void write_two(const TempDir& dir) {
  {
    tiny_store(dir);
  }
  prepare(options_for(dir, "old", 0.1));
  prepare(options_for(dir, "new", 0.3));
}

}  // namespace

TEST_CASE("tokens that a kill left between the old name and the new one are found by the next preparation",
          "[data][prepare]") {
  TempDir dir;
  write_two(dir);
  const auto old_print = TokenStore(dir / "old", "train").fingerprint();
  const auto new_print = TokenStore(dir / "new", "train").fingerprint();
  REQUIRE(old_print != new_print);
  SECTION("killed after the old ones were renamed") {
    fs::rename(dir / "old", dir / "out.partial.old");
    fs::rename(dir / "new", dir / "out.partial");
    CHECK(prepare(options_for(dir, "out", 0.3)).reused);
    CHECK(TokenStore(dir / "out", "train").fingerprint() == new_print);
  }
  SECTION("killed before the old ones were removed") {
    fs::rename(dir / "old", dir / "out.partial.old");
    fs::rename(dir / "new", dir / "out");
    auto options = options_for(dir, "out", 0.3);
    options.force = true;
    CHECK_FALSE(prepare(options).reused);
    CHECK(TokenStore(dir / "out", "train").fingerprint() == new_print);
  }
  SECTION("the new ones are gone") {
    fs::rename(dir / "old", dir / "out.partial.old");
    CHECK(prepare(options_for(dir, "out", 0.1)).reused);
    CHECK(TokenStore(dir / "out", "train").fingerprint() == old_print);
  }
  CHECK_FALSE(fs::exists(dir / "out.partial"));
  CHECK_FALSE(fs::exists(dir / "out.partial.old"));
  CHECK_FALSE(fs::exists(dir / "out.partial.lock"));
}

TEST_CASE("a folder that is made again and again is whole whenever the process is killed", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  auto options = options_for(dir, "out", 0.1);
  prepare(options);
  const auto wanted = TokenStore(dir / "out", "train").fingerprint();
  for (int attempt = 0; attempt < 40; ++attempt) {
    const pid_t child = fork();
    if (child == 0) {
      options.force = true;
      for (;;) prepare(options);
    }
    usleep(static_cast<useconds_t>(500 + 700 * attempt));
    kill(child, SIGKILL);
    wait_for(child);
    CHECK(prepare(options).reused);  // never from nothing
    const TokenStore store(dir / "out", "train");
    store.verify();
    CHECK(store.fingerprint() == wanted);
  }
}

TEST_CASE("a second preparation of one folder is told who works there, and a dead one is no hindrance",
          "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  const auto options = options_for(dir, "out", 0.1);
  {
    const auto lock = Lock::take(dir / "out.partial.lock");
    REQUIRE(lock);
    CHECK_THROWS_WITH(prepare(options), Catch::StartsWith(dir / "out" + ": process " + std::to_string(getpid())) &&
                                            Catch::EndsWith("works on it; wait for its end, or stop it"));
  }
  CHECK(fs::exists(dir / "out.partial.lock"));  // as a killed process leaves it
  CHECK_FALSE(prepare(options).reused);
  TokenStore(dir / "out", "train").verify();
}

TEST_CASE("temporary files of a killed preparation are no part of the tokens", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  prepare(options_for(dir, "first", 0.1));
  const auto options = options_for(dir, "out", 0.1);
  dir.write("out.partial/key.json", read_manifest(dir / "first").made_from.dump());  // so that it is resumed
  dir.write("out.partial/progress.json.tmp-4242", "{");
  dir.write("out.partial/tokenizer/vocab.txt.tmp-4242", "[PAD]");
  prepare(options);
  for (const auto& entry : fs::recursive_directory_iterator(dir / "out"))
    CHECK(entry.path().string().find(".tmp-") == std::string::npos);
}
