#include "data/prepare/split.h"

#include <xxhash.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/random.h"
#include "data/prepare/near_duplicates.h"
#include "data/prepare/train_tokenizer.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A document of `words` random words.
std::string document_of(uint64_t number, int words) {
  auto stream = Rng(5).stream("document", 0, number);
  std::string text;
  for (int k = 0; k < words; ++k) text += "w" + std::to_string(stream.below(50)) + "q" + (k % 12 == 11 ? ".\n" : " ");
  return text;
}

/// The exact Jaccard similarity of the shingles of two texts.
double jaccard(const std::string& a, const std::string& b) {
  const auto shingles = [](const std::string& text) {
    std::set<std::string> found;
    for (size_t i = 0; i + 8 <= text.size(); ++i) found.insert(text.substr(i, 8));
    return found;
  };
  const auto left = shingles(a), right = shingles(b);
  double both = 0;
  for (const auto& s : left) both += static_cast<double>(right.count(s));
  return both / (static_cast<double>(left.size() + right.size()) - both);
}

struct Folder {
  TempDir dir;
  PrepareOptions options;
  Folder() {
    options.tokenizer = dir.write("vocab.txt", tiny_vocabulary(50));
    options.out = dir / "out";
    options.threads = 2;
  }
  /// Documents with a blank line between them.
  std::string text(const std::string& name, const std::vector<std::string>& documents) {
    std::string all;
    for (const auto& document : documents) all += document + "\n\n";
    return dir.write(name, all);
  }
};

uint64_t count(const std::vector<Assignment>& assignments, Assignment assignment) {
  return static_cast<uint64_t>(std::count(assignments.begin(), assignments.end(), assignment));
}

}  // namespace

TEST_CASE("sketches estimate the Jaccard similarity of the shingles of two texts", "[data][copies]") {
  auto stream = Rng(1).stream("edits");
  double squares = 0;
  constexpr int pairs = 200;
  for (uint64_t d = 0; d < pairs; ++d) {
    auto a = document_of(d, 120), b = a;
    std::replace(a.begin(), a.end(), '\n', ' '), std::replace(b.begin(), b.end(), '\n', ' ');
    for (uint64_t edits = d % 40; edits > 0; --edits)
      b[stream.below(b.size())] = static_cast<char>('A' + stream.below(26));
    a.pop_back(), b.pop_back();
    // The sketch ends a line with a space.
    const double counted = jaccard(a + " ", b + " "), estimated = resemblance(sketch_of({a}), sketch_of({b}));
    CAPTURE(d, counted, estimated);
    CHECK(std::abs(estimated - counted) < 5 * 0.045);
    squares += (estimated - counted) * (estimated - counted);
  }
  CHECK(std::sqrt(squares / pairs) < 0.045);
  CHECK(sketch_of({"a  b\tc", "", " d"}) == sketch_of({"a b c d"}));
  CHECK(resemblance(sketch_of({"a"}), sketch_of({"b"})) < 0.2);
}

TEST_CASE("near-duplicates are found among many documents, and no others", "[data][copies]") {
  TempDir dir;
  NearDuplicates near(dir / "sketches");
  constexpr uint32_t documents = 3000;
  for (uint32_t d = 0; d < documents; ++d) {
    auto text = document_of(d < 2900 ? d : d - 2900, 60 + static_cast<int>(d % 2900 % 50));
    if (d >= 2900) text[text.size() / 2] = '!';  // an early document with one character changed
    if (d == 2950) text = document_of(50, 60);   // a duplicate
    near.add(XXH3_64bits(text.data(), text.size()), sketch_of({text}));
  }
  const auto groups = near.groups();
  for (uint32_t d = 0; d < documents; ++d) CHECK(groups[d] == (d < 2900 ? d : d - 2900));
}

TEST_CASE("duplicates and near-duplicates are held out with their document", "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 200; ++d) documents.push_back(document_of(d, 100));
  for (uint64_t d = 0; d < 80; ++d) {
    auto near = documents[2 * d];
    if (d % 2 == 0) near[near.size() / 3] = 'Q';
    documents.push_back(near);
  }
  f.options.inputs = {f.text("text.txt", documents)};
  f.options.held_out = 0.3;
  const auto split = split_text(f.options, f.dir.path.string());
  CHECK(split.copies == 40);
  CHECK(split.near_duplicates == 40);
  CHECK(split.removed == 0);
  for (uint64_t d = 0; d < 80; ++d) CHECK(split.documents[200 + d] == split.documents[2 * d]);
  CHECK(std::abs(static_cast<double>(count(split.documents, Assignment::valid)) - 0.3 * 280) < 10);
  CHECK_FALSE(fs::exists(f.dir / "sketches"));

  f.options.dedup = true;
  const auto once = split_text(f.options, f.dir.path.string());
  CHECK(once.removed == 80);
  for (uint64_t d = 0; d < 280; ++d) CHECK((once.documents[d] == Assignment::removed) == (d >= 200));
}

TEST_CASE("duplicates of separate held-out text are removed from the training text, not the other way round",
          "[data][split]") {
  Folder f;
  std::vector<std::string> documents, held_out;
  for (uint64_t d = 0; d < 43; ++d) documents.push_back(document_of(d, 100));
  for (uint64_t d = 0; d < 10; ++d) held_out.push_back(document_of(d < 8 ? d : 100 + d, 100));
  for (uint64_t d = 0; d < 8; ++d) held_out[d][50] = '?';
  held_out.push_back(held_out[9]);
  f.options.inputs = {f.text("train.txt", documents)};
  f.options.valid_inputs = {f.text("valid.txt", held_out)};
  const auto found = prepare(f.options);
  CHECK(found.leaked_documents == 8);
  CHECK(found.documents == 43);
  f.options.dedup = true;
  f.options.out = f.dir / "once";
  const auto once = prepare(f.options);
  CHECK(once.removed_documents == 8);
  CHECK(once.removed_valid_documents == 1);
  CHECK(once.documents == 35);
  CHECK(once.valid_documents == 10);
  CHECK(TokenStore(f.options.out, "train").num_documents() == 35);
}

TEST_CASE("the held-out share is a share of tokens, for any document lengths", "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 300; ++d)
    documents.push_back(document_of(d, d % 100 == 0 ? 20000 : 20 + static_cast<int>(d * 7 % 500)));
  f.options.inputs = {f.text("text.txt", documents)};
  for (const double asked : {0.01, 0.05, 0.2, 0.5}) {
    f.options.held_out = asked;
    f.options.out = f.dir / ("out" + std::to_string(asked));
    const auto report = prepare(f.options);
    const double fraction =
        static_cast<double>(report.valid_tokens) / static_cast<double>(report.tokens + report.valid_tokens);
    CAPTURE(asked, fraction);
    CHECK(fraction > 0.85 * asked);
    CHECK(fraction < 1.05 * asked);
  }
  // One document more changes next to nothing.
  f.options.held_out = 0.2;
  const auto before = split_text(f.options, f.dir.path.string());
  documents.push_back(document_of(999, 100));
  f.options.inputs = {f.text("more.txt", documents)};
  const auto after = split_text(f.options, f.dir.path.string());
  uint64_t moved = 0;
  for (size_t d = 0; d < 300; ++d) moved += before.documents[d] != after.documents[d];
  CHECK(moved <= 3);
}

TEST_CASE("of eight documents the smallest is held out if it is small enough, else the end of one", "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 7; ++d) documents.push_back(document_of(d, 1000));
  documents.push_back(document_of(7, 9000));
  f.options.inputs = {f.text("text.txt", documents)};
  f.options.held_out = 0.1;
  const auto whole = prepare(f.options);
  CHECK(whole.valid_documents == 1);
  CHECK(whole.documents == 7);
  f.options.held_out = 0.01;
  f.options.out = f.dir / "end";
  const auto end = prepare(f.options);
  CHECK(end.documents == 8);
  CHECK(end.valid_documents == 1);
  CHECK(static_cast<double>(end.valid_tokens) / static_cast<double>(end.tokens + end.valid_tokens) ==
        Approx(0.01).epsilon(0.15));
  const TokenStore train(f.options.out, "train"), valid(f.options.out, "valid");
  CHECK(train.num_tokens() == end.tokens);
  CHECK(valid.num_tokens() == end.valid_tokens);
}

TEST_CASE("if all documents are near-duplicates of each other, some are still held out and counted as leaked",
          "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 40; ++d) {
    auto text = document_of(1, 100);
    text[10 + 7 * d] = '!';
    documents.push_back(text);
  }
  f.options.inputs = {f.text("text.txt", documents)};
  f.options.held_out = 0.1;
  const auto split = split_text(f.options, f.dir.path.string());
  CHECK(split.near_duplicates == 39);
  CHECK(count(split.documents, Assignment::valid) == 4);
  CHECK(split.leaked == 4);
}

TEST_CASE("of many duplicates of one document some are held out and counted as leaked", "[data][split]") {
  Folder f;
  f.options.inputs = {f.text("text.txt", std::vector<std::string>(50, document_of(1, 100)))};
  const auto report = prepare(f.options);
  CHECK(report.valid_documents == 1);
  CHECK(report.documents == 49);
  CHECK(report.leaked_documents == 1);
  // With few duplicates one is too much: the end of one is held out, which the others have too.
  f.options.inputs = {f.text("few.txt", std::vector<std::string>(5, document_of(1, 100)))};
  f.options.out = f.dir / "few";
  const auto few = prepare(f.options);
  CHECK(few.documents == 5);
  CHECK(few.valid_documents == 1);
  CHECK(few.leaked_documents == 1);
  // A pair has no end that could be held out.
  f.options.format = TextFormat::pairs;
  f.options.out = f.dir / "pairs";
  std::string pairs;
  for (int i = 0; i < 5; ++i) pairs += "w1q w2q\tw3q\n";
  f.options.inputs = {f.dir.write("pairs.tsv", pairs)};
  CHECK(prepare(f.options).valid_documents == 1);
}

TEST_CASE("many duplicates stay in the training text if there is enough other text to hold out", "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 40; ++d) {
    auto near = document_of(1, 100);
    near[10 + 7 * d] = '!';
    documents.push_back(near);
    documents.push_back(document_of(2, 100));
  }
  for (uint64_t d = 10; d < 60; ++d) documents.push_back(document_of(d, 100));
  f.options.inputs = {f.text("text.txt", documents)};
  f.options.held_out = 0.1;
  const auto split = split_text(f.options, f.dir.path.string());
  CHECK(count(split.documents, Assignment::valid) >= 12);
  CHECK(split.leaked == 0);
  // Or the end of the only document without a duplicate.
  documents.resize(80);
  documents.push_back(document_of(99, 2000));
  f.options.inputs = {f.text("one.txt", documents)};
  f.options.held_out = 0.01;
  const auto end = split_text(f.options, f.dir.path.string());
  CHECK(end.tail_document == 80);
  CHECK(count(end.documents, Assignment::valid) == 0);
  CHECK(end.leaked == 0);
}

TEST_CASE("a tokenizer is trained on training text alone", "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 60; ++d) {
    auto text = document_of(d, 60);
    const std::string own(1, static_cast<char>('A' + d % 26)), other(1, static_cast<char>('a' + d / 26));
    for (int k = 0; k < 30; ++k) text += "x" + own + other + "x ";  // a word of this document alone
    documents.push_back(text + "\n");
  }
  f.options.inputs = {f.text("text.txt", documents)};
  f.options.held_out = 0.3;
  f.options.tokenizer.clear(), f.options.train_kind = TokenizerKind::byte_bpe, f.options.vocab_size = 4000;
  const auto split = split_text(f.options, f.dir.path.string());
  REQUIRE(count(split.documents, Assignment::valid) > 10);
  prepare(f.options);
  const auto tokenizer = Tokenizer::open(f.options.out + "/tokenizer");
  for (uint64_t d = 0; d < 60; ++d) {
    const std::string word =
        " x" + std::string(1, static_cast<char>('A' + d % 26)) + std::string(1, static_cast<char>('a' + d / 26)) + "x";
    CAPTURE(d, word);
    CHECK((tokenizer.encode(word).size() == 1) == (split.documents[d] == Assignment::train));
  }
}

TEST_CASE("a file that has changed since its documents were compared is named, and no output is made",
          "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 30; ++d) documents.push_back(document_of(d, 60));
  const auto still = f.text("still.txt", documents), text = f.text("text.txt", documents), before = read_file(text);
  f.options.inputs = {still, text};
  f.options.train_kind = TokenizerKind::byte_bpe;
  f.options.vocab_size = 300;
  const auto words = text + ": has changed while it was prepared (" + std::to_string(before.size()) + " bytes before, ";
  for (const std::string& now : {before + before, before.substr(0, before.size() / 2)}) {
    f.dir.write("text.txt", before);
    const auto split = split_text(f.options, f.dir.path.string());
    f.dir.write("text.txt", now);
    CHECK_THROWS_WITH(
        train_tokenizer(f.options, split, f.dir / "tokenizer"),
        Catch::Contains(words + std::to_string(now.size()) + " now); prepare it again when nothing writes to it"));
    CHECK_FALSE(fs::exists(f.dir / "tokenizer"));
  }
  // Of the same size, but rewritten.
  f.dir.write("text.txt", before);
  const auto split = split_text(f.options, f.dir.path.string());
  fs::last_write_time(text, fs::last_write_time(text) + std::chrono::seconds(2));
  CHECK_THROWS_AS(train_tokenizer(f.options, split, f.dir / "tokenizer"), DataError);
}

TEST_CASE("a split is the same for any number of threads", "[data][split]") {
  Folder f;
  std::vector<std::string> documents;
  for (uint64_t d = 0; d < 3000; ++d) documents.push_back(document_of(d % 2500, 100));
  f.options.inputs = {f.text("text.txt", documents)};
  f.options.threads = 1;
  const auto one = split_text(f.options, f.dir.path.string()).fingerprint();
  f.options.threads = 4;
  CHECK(split_text(f.options, f.dir.path.string()).fingerprint() == one);
}
