// Which source the documents of a store are of.
#include "data/prepare/sources.h"

#include "data/prepare/prepare.h"
#include "data/store/manifest.h"
#include "data/store/token_store.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// A text and its tokenizer, of words that begin with the letter of their file.
PrepareOptions lettered_text(const TempDir& dir, const std::string& letters, int documents) {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  PrepareOptions options;
  for (const char letter : letters) {
    std::string text;
    for (int d = 0; d < documents; ++d) {
      const auto word = letter + std::to_string(d);
      vocabulary += word + "\n";
      text += word + " " + word + " " + word + "\n\n";
    }
    options.inputs.push_back(dir.write(std::string(1, letter) + ".txt", text));
  }
  options.tokenizer = dir.write("vocab.txt", vocabulary);
  options.out = dir / "tokens";
  return options;
}

/// The source of every document, from the letter of its first token.
std::vector<std::string> sources_by_letter(const TokenStore& store) {
  std::vector<std::string> sources;
  for (uint64_t d = 0; d < store.num_documents(); ++d) {
    int64_t id = 0;
    store.read(store.document_token(d), 1, &id);
    sources.push_back(store.tokenizer().piece(id).substr(0, 1) + ".txt");
  }
  return sources;
}

std::vector<std::string> sources_by_store(const TokenStore& store) {
  std::vector<std::string> sources;
  for (const auto& span : store.sources()) sources.insert(sources.end(), span.documents, span.source);
  return sources;
}

}  // namespace

TEST_CASE("a source is called as its input, without the folders that all share", "[data][prepare]") {
  struct Case {
    std::map<std::string, std::string> input_of, sources;
  };
  const std::vector<Case> cases{
      {{{"a.txt", "a.txt"}, {"b.jsonl", "b.jsonl"}}, {{"a.txt", "a.txt"}, {"b.jsonl", "b.jsonl"}}},
      {{{"x/en/1", "x/en/"}, {"x/en/2", "x/en/"}, {"x/de", "x/de"}},
       {{"x/en/1", "en"}, {"x/en/2", "en"}, {"x/de", "de"}}},
      {{{"en/t.txt", "en/t.txt"}, {"de/t.txt", "./de/t.txt"}}, {{"en/t.txt", "en/t.txt"}, {"de/t.txt", "de/t.txt"}}},
      {{{"/x/a", "/x/a"}, {"y/b", "y/b"}}, {{"/x/a", "/x/a"}, {"y/b", "y/b"}}},
      {{{"-", "-"}, {"b", "b"}}, {{"-", "standard input"}, {"b", "b"}}},
      // A single input is taken apart.
      {{{"x/en/1", "x"}, {"x/en/2", "x"}, {"x/de", "x"}}, {{"x/en/1", "en"}, {"x/en/2", "en"}, {"x/de", "de"}}},
      {{{"x/y/1", "x/*"}, {"x/y/2", "x/*"}}, {{"x/y/1", "1"}, {"x/y/2", "2"}}},
      // There are no two.
      {{{"a.txt", "a.txt"}}, {}},
      {{{"x/1", "./x"}}, {}},
  };
  for (const auto& [input_of, sources] : cases) {
    INFO(input_of.begin()->first << " of " << input_of.begin()->second);
    CHECK(name_sources({.input_of = input_of}) == sources);
  }
}

TEST_CASE("a store knows the source of each held-out document, in files of tokens of any size", "[data][prepare]") {
  const TempDir dir;
  auto options = lettered_text(dir, "abc", 60);
  options.held_out = 0.2;
  for (const uint64_t file_tokens : {uint64_t{7}, shard_tokens}) {
    options.file_tokens = file_tokens;
    options.force = true;
    const auto report = prepare(options);
    const TokenStore store(options.out, "valid");
    CHECK(sources_by_store(store) == sources_by_letter(store));
    CHECK(store.sources().size() == 3);
    CHECK(report.held_out == store.sources());
    CHECK(TokenStore(options.out, "train").sources().empty());  // nobody asks for them
  }
  options.valid_inputs = {options.inputs[2], options.inputs[0]};
  options.inputs = {options.inputs[1]};
  prepare(options);
  const TokenStore store(options.out, "valid");
  CHECK(store.sources() == std::vector<SourceSpan>{{"c.txt", 60}, {"a.txt", 60}});
  CHECK(sources_by_store(store) == sources_by_letter(store));
}

TEST_CASE("a text of one source notes none", "[data][prepare]") {
  const TempDir dir;
  auto options = lettered_text(dir, "a", 60);
  options.held_out = 0.2;
  prepare(options);
  CHECK(TokenStore(options.out, "valid").sources().empty());
  CHECK_THAT(read_file(options.out + "/manifest.json"), !Catch::Contains("\"source\""));
}

TEST_CASE("tokens of an earlier version are read, reused and of no source", "[data][prepare]") {
  const TempDir dir;
  auto options = lettered_text(dir, "ab", 60);
  options.held_out = 0.2;
  prepare(options);
  auto manifest = read_manifest(options.out);
  manifest.made_from.erase("sources");
  for (auto& [split, shards] : manifest.splits)
    for (auto& shard : shards) shard.sources.clear();
  write_manifest(options.out, manifest);
  CHECK(TokenStore(options.out, "valid").sources().empty());
  CHECK(prepare(options).reused);
}

TEST_CASE("the same files in other sources are other tokens", "[data][prepare]") {
  const TempDir dir;
  auto options = lettered_text(dir, "ab", 60);
  options.held_out = 0.2;
  prepare(options);
  options.inputs = {dir / "[a]*.txt", dir / "b.txt"};
  CHECK_THROWS_WITH(prepare(options),
                    Catch::Contains("(sources was [\"a.txt\",\"b.txt\"], is [\"[a]*.txt\",\"b.txt\"])"));
}
