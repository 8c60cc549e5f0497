#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "core/error.h"
#include "data/prepare/prepare.h"
#include "data/store/token_store.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// Prepares in a child process until it has started this file, or is done: then the text is too short for the test. An
/// error in the text ends it with status 1 and the message in `options.out`.error.
pid_t preparing(const PrepareOptions& options, const std::string& file) {
  const pid_t child = fork();
  if (child == 0) {
    try {
      prepare(options);
    } catch (const DataError& e) {
      std::ofstream(options.out + ".error") << e.what();
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  while (!fs::exists(options.out + ".partial/" + file) && waitpid(child, &status, WNOHANG) == 0) usleep(200);
  return child;
}

/// Kills a preparation when it has started this file; false if it was done before.
bool killed_behind(const PrepareOptions& options, const std::string& file) {
  const pid_t child = preparing(options, file);
  kill(child, SIGKILL);
  return wait_for(child) == 128 + SIGKILL;
}

/// Redirects standard input to a file.
struct StandardInput {
  explicit StandardInput(const std::string& path) : kept(dup(0)) {
    const int file = open(path.c_str(), O_RDONLY);
    dup2(file, 0);
    close(file);
  }
  ~StandardInput() {
    dup2(kept, 0);
    close(kept);
  }
  int kept;
};

}  // namespace

TEST_CASE("a killed preparation resumes after its closed files and ends with the same bytes", "[data][prepare]") {
  TempDir dir;
  dir.write("vocab.txt", tiny_vocabulary(20));
  std::string text;
  for (int d = 0; d < 60000; ++d)
    text += "w" + std::to_string(d % 20) + "q w" + std::to_string(d * 7 % 20) + "q. w3q w" +
            std::to_string(d / 20 % 20) + "q.\n\n";
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", text)};
  options.tokenizer = dir / "vocab.txt";
  options.threads = 2;
  options.file_tokens = 20000;
  options.out = dir / "whole";
  prepare(options);
  options.out = dir / "cut";
  REQUIRE(killed_behind(options, "train-00002.tokens"));
  REQUIRE_FALSE(std::filesystem::exists(dir / "cut"));
  prepare(options);
  CHECK(TokenStore(dir / "cut", "train").fingerprint() == TokenStore(dir / "whole", "train").fingerprint());
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir / "whole"))
    if (entry.path().extension() == ".tokens") {
      ++files;
      CHECK(read_file(entry.path().string()) == read_file(dir / ("cut/" + entry.path().filename().string())));
    }
  CHECK(files > 3);
  // A closed file that was damaged meanwhile is made again.
  options.out = dir / "hurt";
  REQUIRE(killed_behind(options, "train-00002.tokens"));
  auto damaged = read_file(dir / "hurt.partial/train-00000.tokens");
  damaged[damaged.size() / 2] ^= 1;
  dir.write("hurt.partial/train-00000.tokens", damaged);
  prepare(options);
  for (const std::string name : {"train-00000.tokens", "train-00002.tokens", "manifest.json"})
    CHECK(read_file(dir / "hurt/" + name) == read_file(dir / "whole/" + name));
}

TEST_CASE("a resumed preparation has the same report as an uninterrupted one, skipped pairs included",
          "[data][prepare]") {
  TempDir dir;
  dir.write("vocab.txt", tiny_vocabulary(20));
  std::string pairs;
  uint64_t incomplete = 0;
  for (int i = 0; i < 40000; ++i) {
    for (int k = 0; k < 16; ++k) pairs += "w" + std::to_string((i + k) % 20) + "q ";
    pairs += i % 7 == 0 ? "\t\u200B\n" : i % 11 == 0 ? "\t\n" : "\tw3q\n";  // a zero-width space has no token
    incomplete += i % 7 == 0 || i % 11 == 0;
  }
  PrepareOptions options;
  options.inputs = {dir.write("train.tsv", pairs)};
  options.valid_inputs = {dir.write("valid.tsv", pairs)};
  options.format = TextFormat::pairs;
  options.tokenizer = dir / "vocab.txt";
  options.threads = 1;
  options.file_tokens = 20000;
  options.out = dir / "whole";
  const auto whole = prepare(options);
  CHECK(whole.incomplete_pairs == 2 * incomplete);
  for (const std::string side : {"train", "valid"}) {
    INFO("cut off in " << side);
    options.out = dir / ("cut-" + side);
    REQUIRE(killed_behind(options, side + "-00002.tokens"));
    const auto report = prepare(options);
    CHECK(report.incomplete_pairs == whole.incomplete_pairs);
    CHECK(report.sentences == whole.sentences);
    CHECK(report.documents == whole.documents);
    CHECK(report.valid_documents == whole.valid_documents);
    CHECK(TokenStore(options.out, "train").fingerprint() == TokenStore(dir / "whole", "train").fingerprint());
  }
}

TEST_CASE("preparation of standard input is resumed only with the same text", "[data][prepare]") {
  TempDir dir;
  const auto text_of = [](const std::string& letter) {
    std::string text;
    for (int d = 0; d < 40000; ++d) text += letter + letter + letter + " " + std::to_string(d) + ".\n\n";
    return text;
  };
  const auto first = dir.write("first.txt", text_of("x")), second = dir.write("second.txt", text_of("y"));
  PrepareOptions options;
  options.inputs = {"-"};
  options.train_kind = TokenizerKind::byte_bpe;
  options.vocab_size = 280;
  options.threads = 1;
  options.file_tokens = 20000;
  const auto prepared = [&](const std::string& file, const std::string& out) {
    const StandardInput in(file);
    options.out = dir / out;
    prepare(options);
    return TokenStore(options.out, "train").fingerprint();
  };
  const auto cut_off = [&](const std::string& out) {
    const StandardInput in(first);
    options.out = dir / out;
    return killed_behind(options, "train-00001.tokens");
  };
  const auto whole = prepared(first, "first"), other = prepared(second, "second");
  CHECK(other != whole);
  REQUIRE(cut_off("cut"));
  CHECK(prepared(second, "cut") == other);
  REQUIRE(cut_off("again"));
  const auto begun = fs::last_write_time(dir / "again.partial/train-00000.tokens");
  CHECK(prepared(first, "again") == whole);
  CHECK(fs::last_write_time(dir / "again/train-00000.tokens") == begun);
  // Existing files are not reused for other content of standard input, on either side of the pairs.
  options.out = dir / "valid";
  options.inputs = {first};
  options.valid_inputs = {"-"};
  {
    const StandardInput in(second);
    prepare(options);
  }
  const StandardInput in(first);
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("exists; name another --out, or overwrite it with --force"));
}

TEST_CASE("a file that changes during preparation is named", "[data][prepare]") {
  TempDir dir;
  dir.write("vocab.txt", tiny_vocabulary(20));
  std::string text;
  for (int d = 0; d < 60000; ++d)
    text += "w" + std::to_string(d % 20) + "q w3q. w" + std::to_string(d / 20 % 20) + "q.\n\n";
  PrepareOptions options;
  options.tokenizer = dir / "vocab.txt";
  options.threads = 1;
  options.file_tokens = 20000;
  for (const std::string kind : {"longer", "shorter"}) {
    INFO(kind);
    options.inputs = {dir.write(kind + ".txt", text)};
    options.out = dir / kind;
    const auto child = preparing(options, "train-00001.tokens");
    kill(child, SIGSTOP);
    fs::resize_file(options.inputs[0], kind == "longer" ? 2 * text.size() : text.size() / 2);
    kill(child, SIGCONT);
    CHECK(wait_for(child) == 1);
    CHECK_THAT(read_file(options.out + ".error"),
               Catch::Contains(kind + ".txt: has changed while it was prepared (" + std::to_string(text.size())));
    CHECK_FALSE(fs::exists(options.out));
  }
}
