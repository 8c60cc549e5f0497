// The folder that `prepare` makes: whole at every moment, and made by one process at a time.
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "core/lock.h"
#include "data/prepare/prepare.h"
#include "data/store/manifest.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/logged.h"
#include "tests/support/processes.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A folder with a text as the working directory.
struct WorkingFolder {
  explicit WorkingFolder(const TempDir& dir) : before(fs::current_path()) {
    dir.write("d/text.txt", "w0q w1q w2q w0q\n\nw2q w1q\n");
    dir.write("vocab.txt", tiny_vocabulary(3));
    fs::current_path(dir / "d");
  }
  ~WorkingFolder() { fs::current_path(before); }
  /// Options for all files of the folder, into one in it.
  static PrepareOptions options_for(const std::string& out) {
    PrepareOptions options;
    options.inputs = {"."};
    options.out = out;
    options.tokenizer = "../vocab.txt";
    options.held_out = 0;
    options.threads = 1;
    return options;
  }
  fs::path before;
};

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

TEST_CASE("a folder that is named through a dot, a slash or a link is made where it is, and nothing stays beside it",
          "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  fs::create_directories(dir / "parent/empty");
  fs::create_directory_symlink(dir / "parent", dir / "link");
  for (const std::string out : {"parent/new/.", "parent/./slash/", "parent/empty/.", "link/inside"}) {
    CAPTURE(out);
    CHECK_FALSE(prepare(options_for(dir, out, 0.1)).reused);
    CHECK(prepare(options_for(dir, out, 0.1)).reused);
  }
  for (const auto& entry : fs::directory_iterator(dir / "parent")) {
    CHECK(entry.path().string().find(".partial") == std::string::npos);
    TokenStore(entry.path().string(), "train").verify();
  }
  fs::create_directory_symlink(dir / "parent/new", dir / "named");
  const auto old_print = TokenStore(dir / "parent/new", "train").fingerprint();
  auto options = options_for(dir, "named", 0.3);
  options.force = true;
  CHECK_FALSE(prepare(options).reused);
  CHECK(fs::is_symlink(dir / "named"));
  CHECK(TokenStore(dir / "parent/new", "train").fingerprint() != old_print);
}

TEST_CASE("the current folder, a link to nothing and a name that is too long are refused before any work",
          "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  auto options = options_for(dir, "out", 0.1);
  options.inputs = {dir / "none.txt"};  // looked for after the folder
  options.out = fs::current_path().string() + "/.";
  CHECK_THROWS_AS(prepare(options), ConfigError);
  CHECK_THROWS_WITH(prepare(options), Catch::StartsWith(options.out + ": is the current folder"));
  options.out = dir / "dangling";
  fs::create_directory_symlink(dir / "nowhere", options.out);
  CHECK_THROWS_WITH(prepare(options), Catch::StartsWith(options.out + ": is a link to a folder that does not exist"));
  options.out = dir / std::string(10'000, 'x');
  CHECK_THROWS_WITH(prepare(options), Catch::Contains(": cannot be used (File name too long)"));
  CHECK_FALSE(fs::exists(dir / "dangling.partial"));
}

TEST_CASE("a folder that is being made is locked by every name that it has", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  fs::create_directories(dir / "out");
  fs::create_directory_symlink(dir / "out", dir / "link");
  const auto lock = Lock::take(dir / "out.partial.lock");
  REQUIRE(lock);
  for (const std::string name : {"link", "link/", "out/.", "./out"})
    CHECK_THROWS_WITH(prepare(options_for(dir, name, 0.1)),
                      Catch::StartsWith(dir / name + ": process " + std::to_string(getpid())));
}

TEST_CASE("tokens whose tokenizer is damaged are not taken for complete", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  auto options = options_for(dir, "out", 0.1);
  prepare(options);
  CHECK(prepare(options).reused);
  dir.write("out/tokenizer/vocab.txt", read_file(dir / "out/tokenizer/vocab.txt") + "other\n");
  CHECK_THROWS_AS(prepare(options), DataError);
  fs::remove_all(dir / "out/tokenizer");
  CHECK_THROWS_AS(prepare(options), DataError);
  options.force = true;
  CHECK_FALSE(prepare(options).reused);
  options.force = false;
  CHECK(prepare(options).reused);
}

TEST_CASE("a folder of text that holds its own tokens, and others, is its text alone", "[data][prepare]") {
  TempDir dir;
  const WorkingFolder folder(dir);
  const auto options = WorkingFolder::options_for("tokens");
  CHECK_FALSE(prepare(options).reused);
  dir.write("d/tokens.partial.lock", "4242");  // as a killed process leaves it
  dir.write("d/other.partial/key.json", "{}");
  dir.write("d/runs/one/run.yaml", "model: {}");
  dir.write("d/runs/one/log.txt", "a log");
  CHECK(prepare(options).reused);
  const auto log = logged(dir, [] { prepare(WorkingFolder::options_for("tokens2")); });
  CHECK_THAT(log, Catch::Contains("prepared text and runs in . are left out: ./other.partial, ./runs/one, ./tokens\n"));
  CHECK(TokenStore("tokens2", "train").num_tokens() == TokenStore("tokens", "train").num_tokens());
}

TEST_CASE("tokens with a damaged manifest are no text of the folder that they are in", "[data][prepare]") {
  TempDir dir;
  const WorkingFolder folder(dir);
  auto options = WorkingFolder::options_for("tokens");
  prepare(options);
  dir.write("d/tokens/manifest.json", "{");
  options.force = true;
  prepare(options);
  CHECK(read_manifest("tokens").made_from["inputs"].size() == 1);
}

TEST_CASE("a folder with nothing but tokens is named with these", "[data][prepare]") {
  TempDir dir;
  const WorkingFolder folder(dir);
  prepare(WorkingFolder::options_for("tokens"));
  fs::remove("text.txt");
  CHECK_THROWS_WITH(prepare(WorkingFolder::options_for("others")),
                    ".: is a folder without files but those of Cloze (./tokens); name one with text");
}

TEST_CASE("a binary file in a folder is named, with a glob that leaves it out", "[data][prepare]") {
  TempDir dir;
  const WorkingFolder folder(dir);
  const std::string picture("\x89PNG\r\n\x1A\n\0\0\0\rIHDR", 16);
  dir.write("d/deep/picture.png", picture);
  dir.write("d/deep/one.text", "w0q\n");
  dir.write("d/deep/two.text", "w1q\n");
  CHECK_THROWS_WITH(prepare(WorkingFolder::options_for("tokens")),
                    "./deep/picture.png:3: a NUL byte: the file looks binary; name a text file (UTF-8); the folder . "
                    "stands for all its files: name its text alone by a glob, such as './deep/*.text', or leave it out "
                    "with --skip-unreadable");
  CHECK_FALSE(fs::exists("tokens.partial"));
  auto options = WorkingFolder::options_for("tokens");
  options.inputs = {"deep/picture.png"};
  CHECK_THROWS_WITH(prepare(options), Catch::EndsWith("name a text file (UTF-8)"));
  dir.write("alone/picture.png", picture);
  options.inputs = {dir / "alone"};
  CHECK_THROWS_WITH(prepare(options),
                    Catch::EndsWith("; the folder " + options.inputs[0] +
                                    " stands for all its files: name its text alone, or leave it out with "
                                    "--skip-unreadable"));
  dir.write("alone/second.gif", picture);
  dir.write("alone/zipped.docx", "PK\x03\x04");
  CHECK_THROWS_WITH(prepare(options), Catch::StartsWith("3 of 3 files (2 binary, 1 document with markup) "
                                                        "cannot be read, each for the reason above; --field csv:NAME "
                                                        "or jsonl:NAME names the text of one kind of files; "));
}

TEST_CASE("a preparation that fails leaves nothing where a resumed one could take nothing up", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  auto options = options_for(dir, "made", 0);
  options.force = true;
  const auto check_failure = [&](const std::string& sentence) {
    CHECK_THROWS_WITH(prepare(options), Catch::Contains(sentence));
    CHECK_FALSE(fs::exists(dir / "made.partial"));
  };
  options.tokenizer = dir.write("twice/vocab.txt", "the\nthe\n");
  check_failure("the token 'the' is a duplicate");
  options.tokenizer = dir / "vocab.txt";
  options.inputs = {dir.write("silent.txt", "\u0301\n")};  // an accent
  check_failure("silent.txt: leaves no text to train on");
  options.inputs = {dir / "text.txt"};
  prepare(options);
  options.tokenizer = dir / "twice/vocab.txt";
  check_failure("the token 'the' is a duplicate");
  CHECK(fs::exists(dir / "made/manifest.json"));
}

TEST_CASE("a device is no text, and a stream without ends of lines is not copied without end", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  auto options = options_for(dir, "out", 0);
  for (const auto* device : {"/dev/zero", "/dev/urandom", "/dev/full"}) {
    options.inputs = {device};
    CHECK_THROWS_WITH(prepare(options),
                      Catch::Equals(std::string(device) + ": is a device, which has no text; name a file"));
  }
  REQUIRE(
      std::system(("mkfifo '" + dir / "pipe" + "' && (tr '\\0' x < /dev/zero > '" + dir / "pipe" + "' 2> /dev/null &)")
                      .c_str()) == 0);
  options.inputs = {dir / "pipe"};
  CHECK_THROWS_WITH(prepare(options),
                    Catch::Contains("pipe:1: the line is longer than 16 MB; break the text into lines"));
  CHECK_FALSE(fs::exists(dir / "out"));
  CHECK_FALSE(fs::exists(dir / "out.partial"));
}

TEST_CASE("tokens are not made through links in a half-made folder", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  dir.write("outside/train-00000.tokens", "kept");
  dir.write("outside/notes.tmp-4194000", "of the user");
  for (const std::string name : {"out.partial", "out.partial/tokenizer", "out.partial/train-00000.tokens"}) {
    fs::create_directories((dir / name).substr(0, (dir / name).rfind('/')));
    fs::create_symlink(name.ends_with(".tokens") ? dir / "outside/train-00000.tokens" : dir / "outside", dir / name);
    CHECK_THROWS_WITH(prepare(options_for(dir, "out", 0.1)),
                      Catch::Contains(dir / name + ": is a link, through which"));
    fs::remove_all(dir / "out.partial");
  }
  if (geteuid() == 0) {
    fs::create_directories(dir / "out.partial");
    REQUIRE(chown((dir / "out.partial").c_str(), 1, 1) == 0);
    CHECK_THROWS_WITH(prepare(options_for(dir, "out", 0.1)), Catch::Contains("out.partial: belongs to another user"));
  }
  fs::remove_all(dir / "out.partial");
  fs::create_directories(dir / "out.partial/tokenizer");
  fs::create_symlink(dir / "outside", dir / "out.partial/tokenizer/vocab.json");  // where what is left is swept
  prepare(options_for(dir, "out", 0.1));
  CHECK(std::distance(fs::directory_iterator(dir / "outside"), fs::directory_iterator{}) == 2);
  CHECK(read_file(dir / "outside/train-00000.tokens") == "kept");
}

TEST_CASE("what no prepare wrote is not removed from a folder of tokens, nor from those beside it", "[data][prepare]") {
  TempDir dir;
  const WorkingFolder working(dir);
  auto options = WorkingFolder::options_for("tokens");
  prepare(options);
  options.force = true;
  const auto holds = [](const std::string& folder, const std::string& name) {
    return Catch::Contains(folder + ": holds " + name +
                           ", which no `cloze prepare` wrote and which would be removed; " +
                           "move it, or name another --out");
  };
  for (const std::string folder : {"tokens", "tokens.partial", "tokens.partial.old"}) {
    for (const std::string name : {"notes.txt", "train-notes.txt", "valid-00000.tokens.bak", "train-0001.tokens",
                                   "sketches.md", "pipe-dream", "notes.txt.tmp-4242"}) {
      INFO(folder << "/" << name);
      const auto notes = dir.write("d/" + folder + "/" + name, "mine");
      CHECK_THROWS_WITH(prepare(options), holds(folder, name));
      CHECK(read_file(notes) == "mine");
      fs::remove(notes);
    }
    const auto merges = dir.write("d/" + folder + "/tokenizer/my-merges.txt", "mine");
    CHECK_THROWS_WITH(prepare(options), holds(folder + "/tokenizer", "my-merges.txt"));
    CHECK(read_file(merges) == "mine");
    fs::remove(merges);
    if (folder != "tokens") fs::remove_all(folder);
  }
  dir.write("d/tokens.partial.old", "mine");
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("tokens.partial.old: stands where the tokens are made; move it"));
  fs::remove("tokens.partial.old");
  CHECK_NOTHROW(prepare(options));
  CHECK_FALSE(fs::exists("tokens.partial"));
}
