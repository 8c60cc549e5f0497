#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "core/error.h"
#include "data/store/manifest.h"
#include "data/store/shard.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/processes.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

void flip(const std::string& path, size_t at) {
  auto content = read_file(path);
  content[at] = static_cast<char>(content[at] ^ 0x55);
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("the store returns documents, sentences and ids", "[data][store]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  CHECK(store.num_documents() + TokenStore(dir / "tokens", "valid").num_documents() == 40);
  CHECK(store.first_sentence(store.num_documents()) == store.num_sentences());
  CHECK(store.first_token(store.num_sentences()) == store.num_tokens());
  for (uint64_t d = 0; d < store.num_documents(); ++d) {
    CHECK(store.first_sentence(d + 1) - store.first_sentence(d) == 9);
    CHECK(store.document_of(store.document_token(d)) == d);
    CHECK(store.document_of(store.document_token(d + 1) - 1) == d);
  }
  uint64_t counted = 0;
  for (const auto n : store.train_counts()) counted += n;
  CHECK(counted == store.num_tokens());
  store.verify();
}

TEST_CASE("every flipped byte of a store is detected without a crash", "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir, 6, 3);
  }
  const auto file = dir / "tokens/train-00000.tokens", manifest = dir / "tokens/manifest.json";
  const auto check = [&] {
    const TokenStore store(dir / "tokens", "train");
    store.verify();
  };
  check();
  for (size_t at = 0; at < read_file(file).size(); ++at) {
    flip(file, at);
    CHECK_THROWS_AS(check(), DataError);
    flip(file, at);
  }
  for (size_t at = 0; at < read_file(manifest).size(); at += 3) {
    flip(manifest, at);
    CHECK_THROWS_AS(check(), Error);
    flip(manifest, at);
  }
  fs::resize_file(file, fs::file_size(file) - 4);
  CHECK_THROWS_WITH(check(), Catch::Contains("the file is cut off: prepare the text again"));
}

TEST_CASE("no token of a damaged file is read, whoever reads it", "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir, 6, 3);
  }
  const auto file = dir / "tokens/train-00000.tokens", whole = read_file(file);
  const auto read_first = [&] {
    const TokenStore store(dir / "tokens", "train");
    int64_t id = 0;
    store.read(0, 1, &id);
  };
  read_first();
  const auto ids = sizeof(ShardHeader);
  flip(file, ids + 7);  // of another token than the one that is read
  CHECK_THROWS_WITH(read_first(), file + ": its content does not match its checksum; prepare the text again");
  int64_t id = 0;
  const TokenStore valid(dir / "tokens", "valid");  // the other split is as it was
  CHECK_NOTHROW(valid.read(0, 1, &id));
  fs::resize_file(file, 40);
  CHECK(damaged_file(dir / "tokens", read_manifest(dir / "tokens").splits.at("train").front()) == file);
  std::ofstream(file, std::ios::binary) << whole;
  CHECK(damaged_file(dir / "tokens", read_manifest(dir / "tokens").splits.at("train").front()).empty());
}

TEST_CASE("a file of tokens that is far longer than its manifest says, or a pipe, is refused before it is read",
          "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir, 6, 3);
  }
  const auto bytes = dir / "tokens/valid-00000.bytes", tokens = dir / "tokens/train-00000.tokens";
  REQUIRE(fs::exists(bytes));
  fs::resize_file(bytes, uint64_t{1} << 33);  // of zeros that take no place on the disk
  CHECK_THROWS_WITH(TokenStore(dir / "tokens", "valid"),
                    bytes + ": its content does not match its checksum; prepare the text again");
  fs::remove(tokens);
  REQUIRE(mkfifo(tokens.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(TokenStore(dir / "tokens", "train"), Catch::Contains(tokens + ": is 0 bytes long"));
}

TEST_CASE("tokens with ids that their tokenizer does not have are refused, whatever their checksums", "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir, 6, 3);
  }
  const auto folder = dir / "tokens";
  auto manifest = read_manifest(folder);
  const auto counts = std::exchange(manifest.counts, {1});
  write_manifest(folder, manifest);
  CHECK_THROWS_WITH(TokenStore(folder, "train"),
                    folder + "/manifest.json: counts 1 tokens, and the tokenizer has 105; prepare the text again");
  ShardWriter writer(folder, "train-00000.tokens", 2);
  writer.add_sentence({5, 105, 6});
  writer.end_document();
  manifest.counts = counts;
  manifest.splits["train"] = {writer.finish()};
  write_manifest(folder, manifest);
  const TokenStore store(folder, "train");
  int64_t id = 0;
  const auto sentence =
      folder + "/train-00000.tokens: has the id 105, and its tokenizer has 105 tokens; prepare the text again";
  CHECK_THROWS_WITH(store.read(0, 1, &id), sentence);
  CHECK_THROWS_WITH(store.verify(), sentence);
}

TEST_CASE("what is noted of the files of a text is guarded, and no part of the fingerprint of its tokens", "[data]") {
  const TempDir dir;
  Manifest manifest;
  manifest.splits["train"] = {};
  write_manifest(dir.path.string(), manifest);
  const auto fingerprint = read_manifest(dir.path.string()).fingerprint;
  manifest.contents = {{"a.txt", "0123"}};
  write_manifest(dir.path.string(), manifest);
  const auto noted = read_manifest(dir.path.string());
  CHECK(noted.fingerprint == fingerprint);
  CHECK(noted.contents == manifest.contents);
  auto text = read_file(dir / "manifest.json");
  text.replace(text.find("0123"), 4, "0124");
  dir.write("manifest.json", text);
  CHECK_THROWS_WITH(read_manifest(dir.path.string()), Catch::EndsWith("is damaged; prepare the text again"));
}

TEST_CASE("a manifest that has other types than prepare writes is damaged, whatever its fingerprint says", "[data]") {
  const TempDir dir;
  const auto is_refused = [&](const Manifest& manifest) {
    write_manifest(dir.path.string(), manifest);
    CHECK_THROWS_WITH(read_manifest(dir.path.string()), Catch::EndsWith("is damaged; prepare the text again"));
  };
  Manifest manifest;
  manifest.splits["train"] = {};
  write_manifest(dir.path.string(), manifest);
  CHECK_NOTHROW(read_manifest(dir.path.string()));
  for (const char* report : {"null", R"({"documents": "many"})", R"({"tokens": -1})"}) {
    auto hostile = manifest;
    hostile.report = nlohmann::json::parse(report);
    is_refused(hostile);
  }
  for (const char* fact : {R"({"path": 1})", R"({"path": "a.txt", "bytes": "many"})"}) {
    auto hostile = manifest;
    hostile.made_from["inputs"] = nlohmann::json::array({nlohmann::json::parse(fact)});
    is_refused(hostile);
  }
  auto hostile = manifest;
  hostile.made_from = nlohmann::json::array();
  is_refused(hostile);
}

TEST_CASE("a folder that does not exist is not called prepared text, and prepared text of a similar name is named",
          "[data]") {
  const TempDir dir;
  fs::create_directories(dir / "plain");
  CHECK_THROWS_WITH(read_manifest(dir / "plain"),
                    dir / "plain: is not prepared text (it has no manifest.json); create it with `cloze prepare`");
  const auto none = dir / "plian: no such folder; ";
  CHECK_THROWS_WITH(read_manifest(dir / "plian"), none + "create it with `cloze prepare`");
  write_manifest(dir / "plain", {});
  CHECK_THROWS_WITH(read_manifest(dir / "plian"), none + "did you mean '" + dir / "plain" + "'?");
  CHECK_THROWS_WITH(read_manifest(dir / "plian/"), Catch::EndsWith("; did you mean '" + dir / "plain" + "'?"));
  CHECK_THROWS_WITH(read_manifest(dir / "none/plain"), Catch::EndsWith("; create it with `cloze prepare`"));
}

TEST_CASE("tokens whose tokenizer has changed are refused with what restores them", "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  dir.write("tokens/tokenizer/vocab.txt", read_file(dir / "tokens/tokenizer/vocab.txt") + "other\n");
  CHECK_THROWS_WITH(TokenStore(dir / "tokens", "train"),
                    Catch::Contains("vocab.txt: has changed since it was saved (") &&
                        Catch::EndsWith("); restore it, or prepare the text again"));
}

TEST_CASE("tokens that are cut while they are read end the process with a sentence", "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  const auto file = dir / "tokens/train-00000.tokens";
  REQUIRE(fs::exists(file));
  const pid_t child = fork();
  if (child == 0) {
    const TokenStore store(dir / "tokens", "train");
    dup2(open((dir / "errors").c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    fs::resize_file(file, 0);
    store.verify();
    _exit(3);
  }
  CHECK(wait_for(child) == 1);
  CHECK(read_file(dir / "errors") ==
        "cloze: error: " + file + ": became shorter while it was read; prepare the text again\n");
}

TEST_CASE("tokens that were cut within a page, which the system fills with zeros, are not taken for text",
          "[data][store]") {
  TempDir dir;
  {
    tiny_store(dir);
  }
  const auto file = dir / "tokens/train-00000.tokens";
  const TokenStore store(dir / "tokens", "train");
  CHECK_NOTHROW(store.require_intact());
  fs::resize_file(file, fs::file_size(file) - 1);
  CHECK_THROWS_WITH(store.require_intact(), file + ": became shorter while it was read; prepare the text again");
}
