#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "core/error.h"
#include "data/prepare.h"
#include "data/reader.h"
#include "data/sampler.h"
#include "data/sentences.h"
#include "tests/objectives/store.h"
#include "tests/support/catch.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

std::vector<std::vector<std::string>> read_all(const ReaderOptions& options) {
  DocumentReader reader(options);
  std::vector<std::vector<std::string>> found;
  for (RawDocument document; reader.next(document);) found.push_back(document.lines);
  return found;
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string_view> found;
  split_sentences(text, found);
  return {found.begin(), found.end()};
}

void flip(const std::string& path, size_t at) {
  auto content = read_file(path);
  content[at] = static_cast<char>(content[at] ^ 0x55);
  std::ofstream(path, std::ios::binary) << content;
}

}  // namespace

TEST_CASE("text, JSON lines and WikiExtractor give their documents", "[data][reader]") {
  TempDir dir;
  CHECK(read_all({.inputs = {dir.write("a.txt", "\xEF\xBB\xBFone\r\ntwo\n\n\n three\n")}}) ==
        std::vector<std::vector<std::string>>{{"one", "two"}, {" three"}});
  CHECK(read_all({.inputs = {dir.write("a.jsonl", "{\"text\": \"one\\ntwo\"}\n\n{\"text\": \"three\"}\n")}}) ==
        std::vector<std::vector<std::string>>{{"one", "two"}, {"three"}});
  CHECK(
      read_all({.inputs = {dir.write("wiki",
                                     "<doc id=\"1\" url=\"u\" title=\"A & B\">\nA & B\n\nFirst.\nSecond <doc "
                                     "id=.\n</doc>\n<doc id=\"2\" url=\"u\" title=\"C\">\nC\n\nThird.\n</doc>\n")}}) ==
      std::vector<std::vector<std::string>>{{"First.", "Second <doc id=."}, {"Third."}});
  dir.write("g/1.txt", "x\n"), dir.write("g/2.txt", "y\n");
  CHECK(read_all({.inputs = {dir / "g/*.txt"}}) == std::vector<std::vector<std::string>>{{"x"}, {"y"}});
}

TEST_CASE("compressed files are decompressed, truncated ones are named", "[data][reader]") {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "line " + std::to_string(i * i) + "\n";
  const auto plain = read_all({.inputs = {dir.write("t.txt", text)}});
  REQUIRE(std::system(("cd '" + dir.path.string() + "' && gzip -k t.txt && xz -k t.txt").c_str()) == 0);
  CHECK(read_all({.inputs = {dir / "t.txt.gz"}}) == plain);
  CHECK(read_all({.inputs = {dir / "t.txt.xz"}}) == plain);
  for (const std::string end : {"gz", "xz"}) {
    const auto whole = read_file(dir / ("t.txt." + end));
    const auto cut = dir.write("cut.txt." + end, whole.substr(0, whole.size() / 2));
    CHECK_THROWS_WITH(read_all({.inputs = {cut}}), Catch::Contains("cut.txt." + end + ": the ") &&
                                                       Catch::Contains("file is cut off or damaged near byte"));
  }
}

TEST_CASE("unusable text is refused with a message", "[data][reader]") {
  TempDir dir;
  CHECK_THROWS_WITH(read_all({.inputs = {dir / "none.txt"}}),
                    Catch::Contains("none.txt: no such file; check the name"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir / "*.zzz"}}), Catch::Contains("no file matches this pattern"));
  fs::create_directories(dir / "empty/.hidden");
  CHECK_THROWS_WITH(read_all({.inputs = {dir / "empty"}}),
                    Catch::EndsWith("empty: is a folder without files; name one with text"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("b", std::string("ab\0c\n", 5))}}),
                    Catch::Contains("b:1: a NUL byte: the file looks binary; name a text file"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("long", std::string(40 << 20, 'x'))}}),
                    Catch::Contains("long:1: the line is longer than 16 MB"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("u", "ok\na\xFFz\n")}, .refuse_invalid_utf8 = true}),
                    Catch::Contains("u:2: byte 2 of the line is not valid UTF-8"));
  CHECK(read_all({.inputs = {dir.write("u", "a\xFF\xFEz\n")}}) == std::vector<std::vector<std::string>>{{"a\uFFFDz"}});
  CHECK_THROWS_WITH(
      read_all({.inputs = {dir.write("j.jsonl", "{\"txt\": 1}\n")}}),
      Catch::EndsWith("j.jsonl:1: has no key 'text'; name the key of the text with --field; its texts: no "
                      "text at all"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": 1}\n")}}),
                    Catch::Contains("'text' is not a text"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": \n")}}),
                    Catch::Contains("not a JSON object"));
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("d.jsonl", "{\"text\": \"a\"}\n{\"text\": " + deep + "}\n")}}),
                    Catch::Contains("d.jsonl:2: not a JSON object (line 1, column 73: nested deeper than 64 lists"));
  CHECK_THROWS_WITH(
      read_all({.inputs = {dir.write("d.jsonl", "{\"source\": " + deep + "}\n")}, .format = TextFormat::pairs}),
      Catch::Contains("d.jsonl:1: not a JSON object (line 1, column 75: nested deeper than 64 lists"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": \"a\\u0000b\"}\n")}}),
                    Catch::Contains("j.jsonl:1: the text contains a NUL; remove it"));
  CHECK_THROWS_WITH(
      read_all({.inputs = {dir.write("p.jsonl", "{\"source\": \"a\", \"target\": \"b\"}\n{\"source\": \"a\tb\"\n")},
                .format = TextFormat::pairs}),
      Catch::Contains("p.jsonl:2: not a JSON object, unlike the lines before"));
  CHECK(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": \"a\\r\\n\\r\\nb\"}\n")}}) ==
        std::vector<std::vector<std::string>>{{"a", "b"}});
  const auto one = dir.write("one.en", "a\n"), two = dir.write("two.en", "b\n");
  CHECK_THROWS_WITH(
      read_all({.inputs = {one, two}, .targets = {one}, .format = TextFormat::pairs}),
      Catch::Contains("one.en: 2 source files were given with 1 target files; name one target for each source"));
  CHECK_THROWS_AS(read_all({.inputs = {one}, .targets = {one, two}, .format = TextFormat::pairs}), ConfigError);
}

TEST_CASE("pairs are the columns of a table of two, or named columns, never the first two of more", "[data][reader]") {
  TempDir dir;
  using Documents = std::vector<std::vector<std::string>>;
  const auto two = dir.write("two.tsv", "a\tb\n\nc\td\n");
  const auto four = dir.write(
      "four.tsv", "\xEF\xBB\xBFindex\tsentence1\tsentence2\tlabel\r\n0\ta \"quoted\tb\tyes\r\n1\tc\td\tno\r\n");
  CHECK(read_all({.inputs = {two}, .format = TextFormat::pairs}) == Documents{{"a", "b"}, {"c", "d"}});
  CHECK_THROWS_WITH(read_all({.inputs = {four}, .format = TextFormat::pairs}),
                    Catch::EndsWith("four.tsv:1: has 4 columns, but a pair has two; write two, or select two with "
                                    "--columns NAME,NAME by the names in the file's first line"));
  CHECK(read_all({.inputs = {four}, .format = TextFormat::pairs, .columns = "sentence1,sentence2"}) ==
        Documents{{"a \"quoted", "b"}, {"c", "d"}});
  CHECK(read_all({.inputs = {four, four}, .format = TextFormat::pairs, .columns = "label,index"}) ==
        Documents{{"yes", "0"}, {"no", "1"}, {"yes", "0"}, {"no", "1"}});
  const auto twice = dir.write("twice.tsv", "en\ten\tde\n0\ta\tb\n");
  CHECK_THROWS_WITH(read_all({.inputs = {twice}, .format = TextFormat::pairs, .columns = "en,de"}),
                    Catch::Contains("twice.tsv:1: two columns are named 'en'; give each column a name of its own"));
  CHECK_THROWS_WITH(read_all({.inputs = {four}, .format = TextFormat::pairs, .columns = "label,label"}),
                    Catch::Contains("four.tsv:1: --columns label,label names one column twice; a pair has two"));
  CHECK_THROWS_WITH(read_all({.inputs = {four}, .format = TextFormat::pairs, .columns = "sentence1,sentence3"}),
                    Catch::Contains("four.tsv:1: no column is named 'sentence3'; --columns takes two names of this "
                                    "first line: index\tsentence1\tsentence2\tlabel"));
  CHECK_THROWS_WITH(
      read_all({.inputs = {dir.write("short.tsv", "x\ty\tz\n1\t2\t3\n1\t2\n")},
                .format = TextFormat::pairs,
                .columns = "x,z"}),
      Catch::EndsWith("short.tsv:3: has 2 columns, the file's first line has 3; write the same number in every line"));
  const auto json = dir.write("p.jsonl", "{\"x\": \"a\", \"y\": \"b\", \"z\": \"c\"}\n");
  CHECK(read_all({.inputs = {json}, .format = TextFormat::pairs, .columns = "z,x"}) == Documents{{"c", "a"}});
  CHECK_THROWS_WITH(read_all({.inputs = {json}, .format = TextFormat::pairs}),
                    Catch::Contains("has no text 'source'; name the keys of both sides with --columns NAME,NAME"));
  PrepareOptions options;
  options.inputs = {four};
  options.out = dir / "out";
  options.format = TextFormat::pairs;
  options.columns = "sentence1";
  CHECK_THROWS_WITH(
      prepare(options),
      "--columns is 'sentence1', must be two names with a comma between them: --columns sentence1,sentence2");
  options.columns = "sentence1,sentence2";
  options.targets = {two};
  CHECK_THROWS_WITH(prepare(options),
                    "--columns names both sides of pairs in one line; add --format pairs, and leave --target out");
  options.targets.clear(), options.field = "x,y";
  CHECK_THROWS_WITH(prepare(options), "--columns and --field both name the keys of pairs; leave --field out");
}

TEST_CASE("sentences end where a reader would end them", "[data][sentences]") {
  CHECK(
      split("He came. She left! Did they? \"Yes.\" It was 3.14 and more... and so on.") ==
      std::vector<std::string>{"He came.", "She left!", "Did they?", "\"Yes.\"", "It was 3.14 and more... and so on."});
  CHECK(split("Dr. Smith met J. R. Ewing in the U.S. Army. It rained.") ==
        std::vector<std::string>{"Dr. Smith met J. R. Ewing in the U.S. Army.", "It rained."});
  CHECK(split("\u4ECA\u65E5\u306F\u3002\u660E\u65E5\u3002") ==
        std::vector<std::string>{"\u4ECA\u65E5\u306F\u3002", "\u660E\u65E5\u3002"});
  CHECK(split("   ").empty());
}

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
  {
    tiny_store(dir);
  }
  PrepareOptions options;
  options.inputs = {dir / "text.txt"};
  options.out = dir / "tokens";
  options.tokenizer = dir / "vocab.txt";
  options.held_out = 0.1;
  options.format = TextFormat::lines;
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
  options.held_out = 0.2;
  options.sentinels = 0;
  options.force = true;
  CHECK_FALSE(prepare(options).reused);
}

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
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
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
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WEXITSTATUS(status) == 1);
    CHECK_THAT(read_file(options.out + ".error"),
               Catch::Contains(kind + ".txt: has changed while it was prepared (" + std::to_string(text.size())));
    CHECK_FALSE(fs::exists(options.out));
  }
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

namespace {

/// How often each token occurs in the examples of an epoch.
std::vector<int> times_seen(const TokenStore& store, const Sampler& sampler, uint64_t epoch) {
  std::vector<int> seen(store.num_tokens());
  Example example;
  for (uint64_t i = epoch * sampler.size(); i < (epoch + 1) * sampler.size(); ++i) {
    sampler.sample(i, example);
    for (const auto& span : example.spans)
      for (uint64_t t = span.first; t < span.first + span.count; ++t) ++seen[t];
  }
  return seen;
}

constexpr auto every_packing = {Packing::document,      Packing::full,          Packing::sentences,
                                Packing::two_sentences, Packing::doc_sentences, Packing::full_sentences,
                                Packing::whole};

}  // namespace

TEST_CASE("every chunk is read once an epoch, in a different order each time, from any position", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto packing : every_packing) {
    const Sampler sampler(store, {.packing = packing, .length = 24, .random_next_prob = 0.5}, Rng(3));
    std::vector<uint64_t> order[2];
    Example example;
    for (uint64_t i = 0; i < 2 * sampler.size(); ++i) {
      sampler.sample(i, example);
      order[i / sampler.size()].push_back(example.item);
      CHECK(example.epoch == i / sampler.size());
      uint64_t tokens = 0;
      for (const auto& span : example.spans) tokens += span.count;
      if (packing == Packing::document || packing == Packing::full) CHECK(tokens <= 24);
    }
    CHECK(std::set<uint64_t>(order[0].begin(), order[0].end()).size() == sampler.size());
    CHECK(order[0] != order[1]);
    Example again;
    sampler.sample(17, again);
    sampler.sample(17, example);
    CHECK(again.item == example.item);
  }
}

TEST_CASE("every token is read once an epoch, for all packings, short sequences and random segments",
          "[data][sampler]") {
  TempDir dir;
  const auto tiny = tiny_store(dir);
  // Sentences of 70 tokens, longer than a row, and documents with remainders of 1 to 9 tokens.
  std::string text;
  for (int d = 1; d < 10; ++d) {
    for (int k = 0; k < 70 + 24 * (d % 3) + d; ++k)
      text += "w" + std::to_string((d + k) % 50) + (k % 70 == 69 ? "q\n" : "q ");
    text += "\n\n";
  }
  PrepareOptions options;
  options.inputs = {dir.write("long.txt", text)};
  options.out = dir / "long";
  options.tokenizer = dir / "vocab.txt";
  options.format = TextFormat::lines;
  options.held_out = 0;
  options.threads = 1;
  prepare(options);
  for (const auto& store : {tiny, TokenStore(dir / "long", "train")})
    for (const auto packing : every_packing)
      for (const double short_seq_prob : {0.0, 0.3, 1.0})
        for (const double random_next_prob : {0.0, 0.5, 1.0}) {
          CAPTURE(static_cast<int>(packing), short_seq_prob, random_next_prob);
          const Sampler sampler(store,
                                {.packing = packing,
                                 .length = 24,
                                 .short_seq_prob = short_seq_prob,
                                 .random_next_prob = random_next_prob},
                                Rng(3));
          for (const uint64_t epoch : {0, 3})
            CHECK(times_seen(store, sampler, epoch) == std::vector<int>(store.num_tokens(), 1));
        }
}

TEST_CASE("a remainder of less than eight tokens is filled up from the previous chunk", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, {.packing = Packing::document, .length = 24}, Rng(3));
  Example example;
  for (uint64_t i = 0; i < sampler.size(); ++i) {
    sampler.sample(i, example);
    REQUIRE(example.spans.size() == 1);
    CHECK(example.spans[0].count >= 8);
    CHECK(example.target_length == example.spans[0].count);
  }
}

TEST_CASE("the requested share of the sequences of an epoch has a random second segment, single sentences included",
          "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto packing : {Packing::sentences, Packing::two_sentences})
    for (const double asked : {0.0, 0.3, 0.5, 1.0}) {
      CAPTURE(static_cast<int>(packing), asked);
      const Sampler sampler(store, {.packing = packing, .length = 24, .short_seq_prob = 0.1, .random_next_prob = asked},
                            Rng(3));
      const auto chunks = Sampler(store, {.packing = packing, .length = 24, .short_seq_prob = 0.1}, Rng(3)).size();
      uint64_t random = 0, single = 0;
      Example example;
      for (uint64_t i = 5 * sampler.size(); i < 6 * sampler.size(); ++i) {
        sampler.sample(i, example);
        random += example.random_next;
        single += example.cuts.empty() && example.item < chunks && asked == 0;
        CHECK((example.random_next || !example.cuts.empty()));
      }
      const auto share = static_cast<double>(random) / static_cast<double>(sampler.size());
      CHECK(share == Approx(sampler.random_next_share()));
      if (asked == 0)
        CHECK(random == single);
      else
        CHECK(std::abs(share - asked) <= 1.0 / static_cast<double>(sampler.size()));
    }
}

TEST_CASE("whole sentences are packed as long as they fit, across documents or not", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  for (const auto packing : {Packing::doc_sentences, Packing::full_sentences}) {
    const Sampler sampler(store, {.packing = packing, .length = 24}, Rng(3));
    std::vector<Example> chunks(sampler.size());
    for (uint64_t i = 0; i < sampler.size(); ++i) {
      Example example;
      sampler.sample(i, example);
      chunks[example.item] = example;
    }
    bool crosses = false;
    for (size_t p = 0; p < chunks.size(); ++p) {
      const auto& spans = chunks[p].spans;
      uint64_t length = spans.size() - 1;
      for (const auto& span : spans) {
        length += span.count;
        CHECK(store.first_token(store.sentence_of(span.first)) == span.first);  // starts with a sentence, ends with one
        const uint64_t end = span.first + span.count;
        CHECK((end == store.num_tokens() || store.first_token(store.sentence_of(end)) == end));
      }
      crosses = crosses || spans.size() > 1;
      const uint64_t sentence = store.sentence_of(spans.front().first),
                     first_length = store.first_token(sentence + 1) - store.first_token(sentence);
      CHECK((length <= 24 || (spans.size() == 1 && spans[0].count == first_length)));
      CHECK(chunks[p].target_length == length);
      if (p + 1 == chunks.size()) continue;
      const uint64_t next = chunks[p + 1].spans.front().first, following = store.sentence_of(next);
      const bool new_document =
          chunks[p + 1].document != chunks[p].document && store.document_token(chunks[p + 1].document) == next;
      if (packing == Packing::doc_sentences && new_document) continue;
      CHECK(length + (new_document ? 1 : 0) + store.first_token(following + 1) - next >
            24);  // the next sentence did not fit
    }
    CHECK(crosses == (packing == Packing::full_sentences));
  }
}

TEST_CASE("a tenth of the sequences are cut to a random shorter length", "[data][sampler]") {
  TempDir dir;
  const auto store = tiny_store(dir);
  const Sampler sampler(store, {.packing = Packing::sentences, .length = 6, .short_seq_prob = 0.1}, Rng(3));
  Example example;
  double cut = 0;
  const auto all = static_cast<double>(sampler.size());
  for (uint64_t i = 0; i < sampler.size(); ++i) {
    sampler.sample(i, example);
    REQUIRE(example.target_length >= 2);
    REQUIRE(example.target_length <= 6);
    cut += example.target_length < 6;
  }
  REQUIRE(all > 300);
  CHECK(std::abs(cut - all * 0.1 * 4 / 5) < 4.5 * std::sqrt(all * 0.08));
}
