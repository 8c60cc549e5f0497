#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/interrupt.h"
#include "data/prepare/prepare.h"
#include "data/store/manifest.h"
#include "data/store/token_store.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/logged.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// Those of the tokens that a tiny store has, which are prepared.
PrepareOptions prepared_options(TempDir& dir) {
  tiny_store(dir);
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.out = dir / "tokens";
  options.tokenizer = dir / "vocab.txt";
  options.held_out = 0.1;
  options.format = TextFormat::lines;
  return options;
}

}  // namespace

TEST_CASE("damaged tokens are not taken for prepared ones, and are made again by force", "[data][prepare]") {
  TempDir dir;
  auto options = prepared_options(dir);
  CHECK(prepare(options).reused);
  for (const std::string name : {"train-00000.tokens", "valid-00000.tokens", "valid-00000.bytes"}) {
    INFO(name);
    const auto file = options.out + "/" + name, whole = read_file(file);
    auto damaged = whole;
    damaged[damaged.size() / 2] ^= 1;
    dir.write("tokens/" + name, damaged);
    options.force = false;
    CHECK_THROWS_WITH(prepare(options), file +
                                            ": its content does not match its checksum; make the tokens again with "
                                            "--force");
    options.force = true;
    CHECK_FALSE(prepare(options).reused);
    CHECK(read_file(file) == whole);
  }
  dir.write("tokens/manifest.json", "{}");
  options.force = false;
  CHECK_THROWS_WITH(prepare(options),
                    Catch::EndsWith("manifest.json: is damaged; prepare the text again with --force"));
}

TEST_CASE("preparing gives the same bytes for any number of threads", "[data][prepare]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  std::string bytes[2];
  for (const int64_t threads : {1, 5}) {
    PrepareOptions options;
    options.inputs = {dir / "text.txt"};
    options.out = dir / ("t" + std::to_string(threads));
    options.tokenizer = dir / "vocab.txt";
    options.threads = threads;
    options.held_out = 0.1;
    options.format = TextFormat::lines;
    prepare(options);
    bytes[threads > 1] = read_file(options.out + "/train-00000.tokens");
  }
  CHECK(bytes[0] == bytes[1]);
}

TEST_CASE("preparing again reuses the folder, and refuses other text", "[data][prepare]") {
  TempDir dir;
  auto options = prepared_options(dir);
  CHECK(prepare(options).reused);
  options.held_out = 0.2;
  CHECK_THROWS_WITH(
      prepare(options),
      Catch::EndsWith(
          "has tokens of other text or options (held_out was 0.1, is 0.2); name another --out, or overwrite "
          "it with --force"));
  options.held_out = 0.1;
  options.sentinels = 5;
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("(sentinels was none, is 5)") &&
                                          Catch::EndsWith("another number needs no new tokenizer: --tokenizer " +
                                                          options.out + "/tokenizer with another --out"));
  options.sentinels = 0;
  const auto given = options.tokenizer;
  options.tokenizer.clear();
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("(a tokenizer was given, and another is to be trained); name"));
  options.tokenizer = given;
  options.held_out = 0.2;
  options.force = true;
  CHECK_FALSE(prepare(options).reused);
}

TEST_CASE("tokens of a tokenizer that was trained are refused to another, with what differs", "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir);
  options.inputs = {dir.write("text.txt", "The cat sat on the mat. The cat slept.\n")};
  options.out = dir / "tokens";
  options.vocab_size = 30;
  prepare(options);
  const auto refused = [&](const std::string& why) {
    CHECK_THROWS_WITH(prepare(options), Catch::Contains("has tokens of other text or options (" + why + "); name "));
  };
  options.vocab_size = 32;
  refused("train: vocab_size was 30, is 32");
  options.tokenizer = dir.write("vocab.txt", tiny_vocabulary(5));
  options.held_out = 0.5;
  refused("a tokenizer was trained, and another is given; held_out was 0.0, is 0.5");
}

TEST_CASE("what is noticed in a tokenizer that is given is said once", "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir, "[UNK]\nthe\ncat\n");
  options.inputs = {dir.write("text.txt", "the cat\n")};
  options.out = dir / "tokens";
  for (const bool again : {false, true}) {
    options.force = again;
    const auto log = logged(dir, [&] { prepare(options); });
    const auto first = log.find("vocab.txt has no capitals: text is lower-cased");
    CHECK(first != std::string::npos);
    CHECK(log.find("has no capitals", first + 20) == std::string::npos);
  }
}

TEST_CASE("a file that only its time tells from the prepared one is known by its content", "[data][prepare]") {
  TempDir dir;
  auto options = prepared_options(dir);
  const auto age = [&] {
    fs::last_write_time(dir / "text.txt", fs::last_write_time(dir / "text.txt") + std::chrono::seconds(2));
  };
  const auto refused =
      Catch::Contains("has tokens of other text or options (" + dir / "text.txt" + ": modified since)");
  age();
  CHECK(prepare(options).reused);
  auto text = read_file(dir / "text.txt");
  const auto whole = text;
  text[1] = text[1] == '1' ? '2' : '1';
  dir.write("text.txt", text);
  age();
  CHECK_THROWS_WITH(prepare(options), refused);
  dir.write("text.txt", whole);
  age();
  CHECK(prepare(options).reused);
  auto manifest = read_manifest(options.out);
  manifest.contents = nlohmann::json::object();  // as earlier versions wrote it
  write_manifest(options.out, manifest);
  CHECK_THROWS_WITH(prepare(options), refused);
}

TEST_CASE("files that are new, missing, of another size or in another order are named where tokens are refused",
          "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir, tiny_vocabulary(5));
  options.out = dir / "tokens";
  for (const std::string name : {"a", "b", "c", "d"}) dir.write(name, "w1q w2q.\n");
  options.inputs = {dir / "a", dir / "b"};
  prepare(options);
  const auto refused = [&](const std::string& why) {
    CHECK_THROWS_WITH(prepare(options), Catch::StartsWith(options.out + ": has tokens of other text or options (" +
                                                          why + "); name another --out"));
  };
  options.inputs = {dir / "b", dir / "a"};
  refused("the files have another order");
  options.inputs = {dir / "a", dir / "c"};
  refused(dir / "c" + ": is new; " + dir / "b" + ": is missing");
  options.inputs = {dir / "b", dir / "c", dir / "d"};
  refused(dir / "c" + ": is new; " + dir / "d" + ": is new; " + dir / "a" + ": is missing");
  dir.write("a", "w1q w2q w3q.\n");
  options.inputs = {dir / "a", dir / "b"};
  options.held_out = 0.5;
  refused("held_out was 0.0, is 0.5; " + dir / "a" + ": other size (9 bytes before, 13 now)");
}

TEST_CASE("source bytes of pairs are those of their sides, without a separator", "[data][prepare]") {
  TempDir dir;
  std::string pairs;
  std::vector<uint64_t> bytes;
  for (int i = 0; i < 30; ++i) {
    const auto source = "The cat " + std::to_string(i) + " slept.",
               target = "It  woke \xC3\x9F" + std::to_string(i * i);
    pairs += source + "\t" + target + "\n";
    bytes.push_back(source.size()), bytes.push_back(target.size());
  }
  for (const std::string kind : {"byte_bpe", "wordpiece", "unigram"}) {
    INFO(kind);
    PrepareOptions options;
    options.inputs = {dir.write("pairs.tsv", pairs)};
    options.valid_inputs = options.inputs;
    options.format = TextFormat::pairs;
    options.out = dir / kind;
    options.train_kind = choice_of<TokenizerKind>(kind);
    options.vocab_size = kind == "byte_bpe" ? 280 : 50;
    prepare(options);
    const TokenStore store(options.out, "valid");
    REQUIRE(store.num_sentences() == bytes.size());
    for (uint64_t s = 0; s < store.num_sentences(); ++s) {
      uint64_t sum = 0;
      for (uint64_t t = store.first_token(s); t < store.first_token(s + 1); ++t) sum += *store.source_bytes(t);
      CHECK(sum == bytes[s]);
    }
  }
}

TEST_CASE("of a small text a document is held out, of a single document its end", "[data][prepare]") {
  TempDir dir;
  dir.write("vocab.txt", tiny_vocabulary(20));
  PrepareOptions options;
  options.tokenizer = dir / "vocab.txt";
  options.inputs = {dir.write("two.txt", "w1q w2q.\n\nw3q w4q.\n")};
  options.out = dir / "two";
  const auto two = prepare(options);
  CHECK(two.documents == 1);
  CHECK(two.valid_documents == 1);
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += "W" + std::to_string(i) + "q w2q.\n";
  options.inputs = {dir.write("one.txt", lines)};
  options.out = dir / "one";
  const auto one = prepare(options);
  CHECK(one.valid_documents == 1);
  CHECK(one.tokens > one.valid_tokens);
  options.inputs = {dir.write("empty.txt", "\n\n")};
  options.out = dir / "empty";
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("empty.txt: has no text; name files with text"));
}

TEST_CASE("a signal ends the reading of the files again, with the file and what to do", "[data][prepare]") {
  const TempDir dir;
  const auto file = dir.write("text.txt", "wa wb\n");
  interrupts().requested = true;
  CHECK_THROWS_WITH(contents_of({file}), "stopped while " + file + " was read again; run the same command again");
  interrupts().requested = false;
  CHECK(contents_of({file, file}).size() == 1);
}
