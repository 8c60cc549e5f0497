// What is given as text: folders, files of other kinds, keys of JSON lines, and options that do not fit.
#include <filesystem>

#include "core/error.h"
#include "core/random.h"
#include "data/prepare/input_survey.h"
#include "data/reading/line_reader.h"
#include "data/prepare/prepare.h"
#include "data/reading/reader.h"
#include "core/spelling.h"
#include "data/store/token_store.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/logged.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

std::string many(const std::string& line, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += line;
  return text;
}

}  // namespace

TEST_CASE("a folder stands for its files, sorted, without hidden ones", "[data][reader]") {
  TempDir dir;
  dir.write("in/b.txt", "b\n");
  dir.write("in/a/2.txt", "2\n");
  dir.write("in/a/1.txt", "1\n");
  dir.write("in/.git/config", "no\n");
  dir.write("in/.hidden", "no\n");
  CHECK(read_all({.inputs = {dir / "in"}}) == std::vector<std::vector<std::string>>{{"1"}, {"2"}, {"b"}});
}

TEST_CASE("a folder with JSON lines and plain text has the documents of both", "[data][reader]") {
  TempDir dir;
  dir.write("in/a.jsonl", "{\"text\": \"j\"}\n");
  dir.write("in/b.txt", "b\n");
  CHECK(read_all({.inputs = {dir / "in"}}) == std::vector<std::vector<std::string>>{{"j"}, {"b"}});
}

TEST_CASE("files that are no text are named, with the way out", "[data][reader]") {
  TempDir dir;
  const auto file = dir / "file", made = " " + file + " > " + file + ".txt";
  const auto refused = [&](const std::string& begin, const std::string& words) {
    INFO(words);
    dir.write("file", begin + std::string("\0\1\2 rest", 8));
    CHECK_THROWS_WITH(read_all({.inputs = {file}}), file + ": is " + words);
  };
  refused("PK\x03\x04", "a zip archive; unpack it: unzip -p" + made);
  refused("\x28\xB5\x2F\xFD", "compressed with zstd; unpack it: zstdcat" + made);
  refused("BZh91AY&SY", "compressed with bzip2; unpack it: bzcat" + made);
  refused("\x1F\x8B", "compressed with gzip; give it a name that ends in .gz, or unpack it: zcat" + made);
  refused("\xFD\x37zXZ", "compressed with xz; give it a name that ends in .xz, or unpack it: xzcat" + made);
  refused("%PDF-1.7", "a PDF; extract its text: pdftotext " + file + " " + file + ".txt");
  refused("\xFF\xFE", "UTF-16; convert it: iconv -f utf-16 -t utf-8" + made);
  refused("\xFE\xFF", "UTF-16; convert it: iconv -f utf-16 -t utf-8" + made);
  refused({"T\0h\0e\0", 6}, "UTF-16 without a byte order mark; convert it: iconv -f utf-16le -t utf-8" + made);
  refused({"\0T\0h\0e", 6}, "UTF-16 without a byte order mark; convert it: iconv -f utf-16be -t utf-8" + made);
  refused({"\xFF\xFE\0\0T\0\0\0", 8}, "UTF-32; convert it: iconv -f utf-32 -t utf-8" + made);
  refused({"\0\0\xFE\xFF\0\0\0T", 8}, "UTF-32; convert it: iconv -f utf-32 -t utf-8" + made);
  refused({"T\0\0\0h\0\0\0", 8}, "UTF-32 without a byte order mark; convert it: iconv -f utf-32le -t utf-8" + made);
  refused({"\0\0\0T\0\0\0h", 8}, "UTF-32 without a byte order mark; convert it: iconv -f utf-32be -t utf-8" + made);
  CHECK(read_all({.inputs = {dir.write("file", "BZh is a word\n")}}).size() == 1);
  CHECK(read_all({.inputs = {dir.write("file", "PAR1 is a gene\n")}}).size() == 1);
}

TEST_CASE("the command for a file that is no text keeps the ending by which its text is read", "[data][reader]") {
  TempDir dir;
  const auto check = [&](const std::string& name, const std::string& begin, const std::string& ending) {
    const auto file = dir.write(name, begin + std::string("\0\1\2 rest", 8));
    CHECK_THROWS_WITH(read_all({.inputs = {file}}), Catch::EndsWith(" " + file + " > " + file + ending));
  };
  check("a.csv", "\xFF\xFE", ".csv");
  check("a.conll", "\xFE\xFF", ".conll");
  check("a.jsonl.zst", "\x28\xB5\x2F\xFD", ".jsonl");
  check("a.zst", "\x28\xB5\x2F\xFD", ".txt");
  CHECK(ending_of_text("notes.tsv.bz2") == ".tsv");
  CHECK(name_elsewhere("in/notes.csv", {"in"}) == "converted/notes.csv");
  CHECK(name_elsewhere("in/notes.jsonl.zst", {"in"}) == "converted/notes.jsonl.zst.jsonl");
  CHECK(name_elsewhere("in/a.pdf", {"in"}) == "converted/a.pdf.txt");
}

TEST_CASE("a document that is zipped XML is to be saved as text, by its name or its first file", "[data][reader]") {
  TempDir dir;
  const auto refused = [&](const std::string& name, const std::string& first) {
    const auto file = dir.write(name, "PK\x03\x04" + std::string(26, '\0') + first + std::string("\0\1\2", 3));
    CHECK_THROWS_WITH(read_all({.inputs = {file}}),
                      file +
                          ": is a document with markup (zipped XML); save it as plain text (UTF-8) with a program "
                          "that opens it");
  };
  refused("a.docx", "word/document.xml");
  refused("a.epub", "");
  refused("a", "[Content_Types].xml");
  refused("b", "mimetypeapplication/vnd.oasis.opendocument.text");
}

TEST_CASE("the names in a proposed command are quoted where a shell needs it", "[data][reader]") {
  CHECK(shell_word("a/b-1.txt") == "a/b-1.txt");
  CHECK(shell_word("my text") == "'my text'");
  CHECK(shell_word("it's;") == "'it'\\''s;'");
  CHECK(shell_word("-x") == "./-x");
  CHECK(shell_word("") == "''");
  TempDir dir;
  const auto file = dir.write("IN OUT.pdf", "%PDF-1.7\n");
  CHECK_THROWS_WITH(read_all({.inputs = {file}}),
                    file + ": is a PDF; extract its text: pdftotext '" + file + "' '" + file + ".txt'");
}

TEST_CASE("an archive of tar is refused with the command that reads it, compressed or not", "[data][reader]") {
  TempDir dir;
  std::string tar(1024, '\0');
  tar.replace(0, 5, "a.txt");
  tar.replace(257, 5, "ustar");
  tar.replace(512, 9, "the text\n");
  const auto refused = [&](const std::string& name) {
    CHECK_THROWS_WITH(read_all({.inputs = {dir / name}}),
                      Catch::EndsWith(name + ": is a tar archive; unpack it: tar -xOf " + dir / name + " > " +
                                      dir / (name + ".txt")));
  };
  dir.write("a.tar", tar);
  refused("a.tar");
  REQUIRE(std::system(("cd '" + dir.path.string() + "' && gzip -k a.tar && xz -k a.tar").c_str()) == 0);
  refused("a.tar.gz");
  refused("a.tar.xz");
  fs::copy_file(dir / "a.tar.gz", dir / "a.tgz");
  refused("a.tgz");
  fs::copy_file(dir / "a.tar.xz", dir / "a.txz");
  refused("a.txz");
  const auto prose = std::string(257, 'x') + "ustar is where tar has its mark.\n";
  CHECK(read_all({.inputs = {dir.write("prose.txt", prose)}}).size() == 1);
}

TEST_CASE("the text of JSON lines may be in an inner object, and the texts that are there are named",
          "[data][reader]") {
  TempDir dir;
  const auto file = dir.write("a.jsonl", R"({"meta": {"text": "inner", "id": 3}, "body": "outer", "a.b": "dotted"})");
  const auto text = [&](const std::string& field) { return read_all({.inputs = {file}, .field = field}).at(0).at(0); };
  CHECK(text("meta.text") == "inner");
  CHECK(text("body") == "outer");
  CHECK(text("a.b") == "dotted");
  CHECK_THROWS_WITH(text("text"),
                    Catch::EndsWith("a.jsonl:1: has no key 'text'; name the key of the text with --field; "
                                    "its texts: a.b, body, meta.text"));
  CHECK_THROWS_WITH(text("meta"), Catch::Contains("a.jsonl:1: 'meta' is an object, not a text; name the key"));
}

TEST_CASE("options of training are refused where nothing is trained, or by the kind that is", "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", "a\n")};
  options.out = dir / "out";
  options.tokenizer = dir.write("vocab.txt", "[UNK]\na\n");
  options.lowercase = true;
  CHECK_THROWS_WITH(prepare(options), "--lowercase applies only to a tokenizer that is trained; " + options.tokenizer +
                                          " has its own rules for case; leave --lowercase out");
  options.lowercase = false;
  options.seed = 7;
  CHECK_THROWS_WITH(prepare(options), "--seed chooses the sentences that a tokenizer is trained on, and " +
                                          options.tokenizer + " is given; leave --seed out");
  options.seed = PrepareOptions().seed;
  options.byte_fallback = true;
  CHECK_THROWS_WITH(prepare(options), "--byte-fallback applies only to a tokenizer that is trained, and " +
                                          options.tokenizer + " is given; leave one of them out");
  options.byte_fallback = false;
  options.character_coverage = 1;
  CHECK_THROWS_WITH(prepare(options), Catch::StartsWith("--character-coverage applies only to a tokenizer that is"));
  options.byte_fallback = true;
  options.tokenizer.clear();
  options.train_kind = TokenizerKind::wordpiece;
  CHECK_THROWS_WITH(prepare(options),
                    "--byte-fallback applies to unigram and bpe, and --train is wordpiece; leave --byte-fallback out");
  options.byte_fallback = false;
  options.train_kind = TokenizerKind::byte_bpe;
  CHECK_THROWS_WITH(prepare(options), Catch::StartsWith("--character-coverage does not apply to byte_bpe"));
  options.character_coverage = 0.5;
  CHECK_THROWS_WITH(prepare(options), "--character-coverage is 0.5, must be in (0.9, 1]");
  options.character_coverage.reset();
  options.lowercase = true;
  options.train_kind = TokenizerKind::byte_bpe;
  CHECK_THROWS_WITH(prepare(options),
                    Catch::StartsWith("--lowercase does not apply to byte_bpe, which keeps every byte"));
}

TEST_CASE("the first line with invalid UTF-8 is named, in the file that has it, with the option that decodes it",
          "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  const auto warned = [&](const std::string& out) {
    options.out = dir / out;
    return logged(dir, [&] { prepare(options); });
  };
  const auto whole = dir.write("whole.txt", "a\na\n"), latin = dir.write("my latin.txt", "a\n\na caf\xE9 a \xE9\n");
  options.inputs = {whole, latin};
  CHECK_THAT(warned("two"),
             Catch::Contains("2 invalid UTF-8 sequences were replaced by U+FFFD, the first in " + latin +
                             ":3; if the text has another encoding, name it (--encoding latin1), or have such "
                             "lines refused with --invalid-utf8 refuse\n"));
  options.valid_inputs = {latin};
  options.inputs = {whole};
  CHECK_THAT(warned("valid"), Catch::Contains("the first in " + latin + ":3;"));
  options.valid_inputs.clear();
  options.format = TextFormat::pairs;
  options.targets = {dir.write("targets.txt", "a\na \xE9\n")};
  CHECK_THAT(warned("pairs"),
             Catch::Contains("1 invalid UTF-8 sequence was replaced by U+FFFD, in " + options.targets[0] + ":2;"));
  options.invalid_utf8 = InvalidUtf8::refuse;
  options.out = dir / "refused";
  CHECK_THROWS_WITH(prepare(options),
                    Catch::StartsWith(options.targets[0] + ":2: byte 3 of the line is not valid UTF-8; "
                                                           "name the encoding of the text (--encoding latin1, if"));
}

TEST_CASE("lines that are not UTF-8 are decoded by --encoding, and those that are stay", "[data][prepare]") {
  TempDir dir;
  using Documents = std::vector<std::vector<std::string>>;
  const auto read = [&](const std::string& encoding, const std::string& name, const std::string& text) {
    return read_all({.inputs = {dir.write(name, text)}, .encoding = encoding});
  };
  CHECK(read("latin1", "a.txt", "caf\xE9\n\u00E9t\u00E9\n\nplain\n") ==
        Documents{{"caf\u00E9", "\u00E9t\u00E9"}, {"plain"}});
  CHECK(read("cp1252", "a.jsonl", "{\"text\": \"\x93so\x94\"}\n") == Documents{{"\u201Cso\u201D"}});
  CHECK(read("latin1", "a.csv", "id,text\n1,\"na\xEFve, \"\"a\"\"\"\n") == Documents{{"na\u00EFve, \"a\""}});
  CHECK(read("shift_jis", "b.txt", "\x93\xFA\x96\x7B\n") == Documents{{"\u65E5\u672C"}});
  CHECK(read("utf-8", "c.txt", "a\xE9 b\n") == Documents{{"a\uFFFD b"}});
  const auto pairs = ReaderOptions{.inputs = {dir.write("s", "\xE9\n")},
                                   .targets = {dir.write("t", "\xE8\n")},
                                   .format = TextFormat::pairs,
                                   .encoding = "latin1"};
  CHECK(read_all(pairs) == Documents{{"\u00E9", "\u00E8"}});
  CHECK_THROWS_WITH(read("klingon", "d.txt", "a\n"),
                    Catch::StartsWith("--encoding is 'klingon', which is no encoding"));
  for (const std::string wide : {"utf-16", "iso-2022-jp", "utf-7", "ebcdic-us"})
    CHECK_THROWS_WITH(read(wide, "d.txt", "a\n"), Catch::Contains("whose lines cannot be told from ASCII or UTF-8"));
}

TEST_CASE("a file in another encoding is unreadable where such files are left out, and not for a lone bad byte",
          "[data][prepare]") {
  TempDir dir;
  dir.write("in/latin.txt", "caf\xE9 a\n");
  dir.write("in/whole.txt", "\u00E9t\u00E9 a \xE9\n");
  dir.write("in/plain.txt", "a a\n");
  auto options = small_text_options(dir, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  options.inputs = {dir / "in"};
  const auto files = [&](const std::string& out) {
    options.out = dir / out;
    return prepare(options).files;
  };
  CHECK(files("replaced") == 3);
  options.skip_unreadable = true;
  CHECK_THAT(logged(dir, [&] { CHECK(files("without") == 2); }),
             Catch::Contains("1 of 3 files left out (1 in another encoding)") && Catch::Contains("in/latin.txt"));
  options.invalid_utf8 = InvalidUtf8::refuse;
  CHECK(files("plain") == 1);
  options.encoding = "latin1";
  CHECK(files("decoded") == 3);
}

TEST_CASE("--exclude leaves out files by their name or path, or by that of a folder below the text",
          "[data][prepare]") {
  TempDir dir;
  for (const auto* name : {"in/a.txt", "in/b.json", "in/old/c.txt", "in/old/d/e.txt", "in/new/old.txt"})
    dir.write(name, "a\n");
  auto options = small_text_options(dir, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  options.inputs = {dir / "in"};
  options.force = true;
  const auto left = [&](const std::vector<std::string>& patterns) {
    options.exclude = patterns;
    return prepare(options).files;
  };
  CHECK(left({}) == 5);
  CHECK(left({"*.json"}) == 4);
  CHECK(left({"old"}) == 3);
  CHECK(left({"old/*"}) == 3);
  CHECK(left({dir / "in/old"}) == 3);
  CHECK(left({"old*", "a.*"}) == 1);
  CHECK(left({"in"}) == 5);  // above the text
  CHECK_THAT(logged(dir, [&] { left({"*.jsn"}); }),
             Catch::Contains("--exclude '*.jsn' names no file of " + (dir / "in")));
  CHECK_THROWS_WITH(left({"*"}), Catch::StartsWith("--exclude '*' leaves no file of the text"));
}

TEST_CASE("a folder of the hub is read without its card, and splits and missing files are told", "[data][prepare]") {
  TempDir dir;
  for (const auto* name : {"train-00000-of-00004", "train-00003-of-00004", "test-00000-of-00001"})
    dir.write(concat("hub/data/", name, ".jsonl"), "{\"text\": \"a\"}\n");
  dir.write("hub/README.md", "# Data\n");
  dir.write("notes/README.md", "---\nlicense: mit\n---\n");
  dir.write("notes/a.txt", "a\n");
  dir.write("prose/README.md", "a\n");
  dir.write("prose/b.txt", "a\n");
  auto options = small_text_options(dir, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  options.force = true;
  const auto read = [&](const std::string& folder, uint64_t files) {
    options.inputs = {dir / folder};
    return logged(dir, [&] { CHECK(prepare(options).files == files); });
  };
  const auto said = read("hub", 3);
  CHECK_THAT(said, Catch::Contains("left out as the cards of datasets: " + (dir / "hub/README.md")));
  CHECK_THAT(said, Catch::Contains("files of several splits are read as one text") &&
                       Catch::Contains("leave some out: --exclude '*test*'"));
  CHECK_THAT(said, Catch::Contains("by the name of 2 files, " + (dir / "hub/data/train-00001-of-00004, ")) &&
                       Catch::Contains("train-00002-of-00004 are missing; get"));
  options.exclude = {"*test*"};
  CHECK_THAT(read("hub", 2), !Catch::Contains("splits"));
  options.exclude.clear();
  CHECK_THAT(read("notes", 1), Catch::Contains("notes/README.md"));
  CHECK_THAT(read("prose", 2), !Catch::Contains("README.md"));
}

TEST_CASE("each kind of files has its own --field, and one that is asked for is a column of every table",
          "[data][prepare]") {
  TempDir dir;
  const auto table = dir.write("a.csv", "Text,body\nalpha,a\n"),
             records = dir.write("b.jsonl", "{\"content\": \"a a\"}\n");
  auto options = small_text_options(dir, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  options.inputs = {table, records};
  add_field(options, "csv:body");
  add_field(options, "jsonl:content");
  CHECK(prepare(options).unknown_tokens == 0);
  CHECK_THROWS_WITH(add_field(options, "csv:Text"), "--field is given twice for csv; leave one out");
  options.force = true;
  options.fields.clear();
  options.inputs = {table};
  add_field(options, "text");
  CHECK_THROWS_WITH(prepare(options),
                    Catch::EndsWith("a.csv:1: no column is named 'text'; name the column of the text with "
                                    "--field, one of Text, body"));
  CHECK_THROWS_WITH(add_field(options, "body"), Catch::Contains("--field csv:text --field jsonl:body"));
  options.field.reset();
  add_field(options, "tsv:body");
  CHECK_THROWS_WITH(prepare(options), "--field is 'tsv:body', and none of the text is tsv; leave it out");
}

TEST_CASE("JSON lines whose text is null are refused, or left out and counted where that is asked for",
          "[data][reader]") {
  TempDir dir;
  const auto file =
      dir.write("a.jsonl", "{\"m\": {\"t\": \"a\"}}\n{\"m\": {\"t\": null}}\n{\"m\": null}\n{\"m\": {\"t\": \"b\"}}\n");
  CHECK_THROWS_WITH(read_all({.inputs = {file}, .field = "m.t"}),
                    Catch::Contains("a.jsonl:2: 'm.t' is null, not a text") &&
                        Catch::EndsWith("(--skip-null leaves such lines out)"));
  DocumentReader reader({.inputs = {file}, .field = "m.t", .skip_null = true});
  RawDocument document;
  int documents = 0;
  while (reader.next(document)) ++documents;
  CHECK(documents == 2);
  CHECK(reader.null_rows() == 2);
  CHECK(reader.first_null().number == 2);
}

TEST_CASE("a pointer of Git LFS is named, whatever it stands for", "[data][reader]") {
  TempDir dir;
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
  for (const std::string name : {"a.parquet", "a.txt", "a.jsonl", "a.csv", "a.txt.gz", "a.txt.xz", "a.json"})
    CHECK_THROWS_WITH(
        read_all({.inputs = {dir.write(name, pointer)}}),
        Catch::EndsWith(name + ": is a pointer of Git LFS; get the file that it stands for: git lfs pull"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir / "a.parquet"}, .format = TextFormat::parquet}),
                    Catch::Contains("a.parquet: is a pointer of Git LFS"));
}

TEST_CASE("a key of JSON lines is refused where no text has any", "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir, "[UNK]\na\n");
  options.field = "body";
  options.inputs = {dir.write("text.txt", "a\n\na a\n")};
  const std::string refusal =
      "--field is 'body', a key of JSON lines, and none of the text is JSON lines; leave --field out";
  CHECK_THROWS_WITH(prepare(options), refusal + ", or read the text as such with --format jsonl");
  options.format = TextFormat::lines;
  CHECK_THROWS_WITH(prepare(options), refusal);
  options.format = TextFormat::pairs;
  options.targets = options.inputs;
  CHECK_THROWS_WITH(prepare(options), refusal);
  CHECK_FALSE(fs::exists(dir / "out.partial"));
  options.targets.clear();
  options.format = TextFormat::automatic;
  options.field = "text";
  CHECK_THROWS_WITH(prepare(options),
                    Catch::StartsWith("--field is 'text', a key of JSON lines, and none of the text"));
  options.field = "body";
  options.inputs.push_back(dir.write("unnamed", "\n{\"body\": \"a\"}\n"));
  CHECK(prepare(options).documents == 3);
}

TEST_CASE("with --byte-fallback no character is unknown, and with full coverage every one has a piece",
          "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir);
  options.inputs = {dir.write("text.txt", many("the cat sat on the mat.\n\n", 20000) + "a \u4E2D b\n")};
  options.vocab_size = 300;
  options.out = dir / "plain";
  prepare(options);
  const auto plain = TokenStore(options.out, "train").tokenizer();
  CHECK(plain.id("\u4E2D") == -1);
  options.out = dir / "covered";
  options.character_coverage = 1;
  prepare(options);
  CHECK(TokenStore(options.out, "train").tokenizer().id("\u4E2D") >= 0);
  options.out = dir / "bytes";
  options.character_coverage.reset();
  options.byte_fallback = true;
  prepare(options);
  const auto bytes = TokenStore(options.out, "train").tokenizer();
  for (const auto id : bytes.encode("\u4E2D \u0416")) CHECK(id != bytes.special().unk);
}

TEST_CASE("a vocabulary below the characters of a text is told their number, and both options that help",
          "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", many("abcdefghijklmnopqrstuvwxyz.\n", 20))};
  options.out = dir / "out";
  options.threads = 1;
  options.vocab_size = 20;
  for (const auto kind : {TokenizerKind::unigram, TokenizerKind::bpe}) {
    options.train_kind = kind;
    CHECK_THROWS_WITH(prepare(options),
                      "a vocabulary of 20 pieces is too small for this text, whose special tokens and characters are "
                      "33; raise --vocab-size to that or more, or leave rare characters out with a "
                      "--character-coverage below 0.9995");
  }
  options.vocab_size = 33;
  prepare(options);
}

TEST_CASE("a log says which share of the text the characters of a tokenizer cover, where it is not all of it",
          "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", many("the cat sat on the mat.\n\n", 50))};
  options.vocab_size = 60;
  options.threads = 1;
  options.force = true;
  options.out = dir / "out";
  const auto log = [&] { return logged(dir, [&] { prepare(options); }); };
  CHECK_THAT(log(), Catch::Contains("sentences; its characters cover a share of 0.9995 of the text "
                                    "(--character-coverage), rarer ones are unknown\n"));
  options.byte_fallback = true;
  options.vocab_size = 400;
  CHECK_THAT(log(), Catch::Contains("cover a share of 0.9995 of the text (--character-coverage), rarer ones become"));
  options.byte_fallback = false;
  options.character_coverage = 1;
  CHECK_THAT(log(), Catch::Contains("training a unigram tokenizer") && !Catch::Contains("--character-coverage"));
  options.character_coverage.reset();
  options.train_kind = TokenizerKind::wordpiece;
  CHECK_THAT(log(), Catch::Contains("training a wordpiece tokenizer") && !Catch::Contains("--character-coverage"));
}

TEST_CASE("tables, JSON, HTML, RTF and a tokenizer that does not fit are warned of", "[data][prepare]") {
  TempDir dir;
  auto options = small_text_options(dir, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nthe\n##a\n##b\n");
  const auto warned = [&](const std::string& name, const std::string& text) {
    options.inputs = {dir.write(name, text)};
    options.out = dir / (name + "-out");
    return logged(dir, [&] { prepare(options); });
  };
  CHECK_THAT(warned("a.txt", many("the\tthe\tthe\n", 5)), Catch::Contains("a.txt looks like a table and is read as"));
  CHECK_THAT(warned("b.csv", many("the,the\n", 5)), Catch::Contains("b.csv looks like a table"));
  CHECK_THAT(warned("c.json", "[\n" + many("the\n", 5) + "]\n"), Catch::Contains("c.json looks like JSON"));
  CHECK_THAT(warned("h.txt", many("the\tthe the\n", 5)), Catch::Contains("h.txt looks like a table"));
  CHECK_THAT(warned("i.txt", many("the\tthe\n", 5) + "the\n"), !Catch::Contains("looks like"));
  CHECK_THAT(warned("j.txt", many("*MOT:\tthe the\n", 5)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("k.txt", many("\t\tthe the\n", 5)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("l.html", "<!DOCTYPE html><p>the the</p>\n"),
             Catch::Contains("l.html looks like HTML and is read as prose, markup and all; extract its text"));
  CHECK_THAT(warned("m.txt", many("<p>the</p>\nthe\n", 5)), Catch::Contains("m.txt looks like HTML or XML and"));
  CHECK_THAT(warned("n.txt", many("<p>the</p>\nthe\nthe\n", 5)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("o.txt", many("<3 the\n", 5)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("p.txt", "name,the,b\n" + many("a,\"the, the\",b\n", 8)),
             Catch::Contains("p.txt looks like a table and is read as prose"));
  CHECK_THAT(warned("q.txt", many("a, the, b\n", 8)), Catch::Contains("q.txt looks like a table"));
  CHECK_THAT(warned("r.txt", many("a,the,the the.\n", 8)), Catch::Contains("r.txt looks like a table"));
  CHECK_THAT(warned("s.txt", many("a,the,b\n", 5)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("t.txt", many("the the, the the, and the the.\n", 50)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("u.txt", many("a,b,the\nthe the\n", 8)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("v.txt", many("a,the\n", 50)), !Catch::Contains("looks like"));
  CHECK_THAT(
      warned("w.rtf", "{\\rtf1\\ansi the the\n" + many("the\n", 5)),
      Catch::Contains("w.rtf looks like RTF and is read as prose, markup and all; save it as plain text (UTF-8), "
                      "or confirm it with --format text"));
  REQUIRE(std::system(("cd '" + dir.path.string() + "' && gzip -k b.csv").c_str()) == 0);
  CHECK_THAT(warned("b.csv.gz", read_file(dir / "b.csv.gz")), Catch::Contains("b.csv.gz looks like a table"));
  CHECK_THAT(warned("d.txt", many("the the the\n\n", 5)), !Catch::Contains("looks like"));
  CHECK_THAT(warned("g.txt", "[the] the\n"), !Catch::Contains("looks like"));
  CHECK_THAT(warned("e.txt", many("abababab abab\n\n", 300)), Catch::Contains("the tokenizer does not fit the text"));
  CHECK_THAT(warned("f.txt", many("the the the the\n\n", 500)), !Catch::Contains("does not fit the text"));
}

TEST_CASE(
    "a tokenizer that is trained and hardly covers more than a byte with a token is warned of, unless it was to "
    "be tiny",
    "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  auto stream = Rng(3).stream("letters");
  std::string text;
  for (int i = 0; i < 4000; ++i) text += i % 50 == 49 ? '\n' : static_cast<char>('a' + stream.below(26));
  options.inputs = {dir.write("letters.txt", text)};
  options.threads = 1;
  options.held_out = 0;
  options.train_kind = TokenizerKind::byte_bpe;
  options.vocab_size = 270;
  options.out = dir / "bytes";
  CHECK_THAT(logged(dir, [&] { prepare(options); }),
             Catch::Contains(" bytes of text, where 3 to 5 are usual; the tokenizer does not fit the text: raise "
                             "--vocab-size, or name more text to train it on"));
  options.train_kind = TokenizerKind::unigram;
  options.vocab_size = 40;
  options.out = dir / "characters";
  CHECK_THAT(logged(dir, [&] { prepare(options); }), !Catch::Contains("does not fit the text"));
}

TEST_CASE("every file of a folder is looked at, and all that cannot be read are refused at once", "[data][prepare]") {
  TempDir dir;
  for (int i = 0; i < 12; ++i) dir.write(concat("in/", i, ".txt"), concat("the a b ", i, "\n"));
  dir.write("in/z/wiki_00", "<doc id=\"1\" url=\"u\" title=\"A\">\nA\n\nthe b\n</doc>\n");
  dir.write("in/z/notes.csv", "id,body\n1,the\n");
  dir.write("in/z/state.json", "{\n  \"a\": 1\n}\n");
  dir.write("in/z/info.json", "{\"splits\": [1]}");
  dir.write("in/z/records.jsonl", "{\"body\": \"the a\"}\n");
  dir.write("in/z/empty.txt", "");
  dir.write("in/z/wide.txt", {"\xFF\xFEt\0h\0e\0", 8});
  dir.write("in/z/data.arrow", {"\xFF\xFF\xFF\xFF\x20\2\0\0", 8});
  PrepareOptions options;
  options.tokenizer = dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nthe\n");
  options.inputs = {dir / "in"};
  options.out = dir / "out";
  options.threads = 1;
  const auto refused = logged(dir, [&] {
    CHECK_THROWS_WITH(prepare(options), Catch::StartsWith("6 of 20 files (12 text, 2 JSON metadata, "));
  });
  for (const std::string sentence :
       {"wide.txt: is UTF-16; convert it: mkdir -p converted && iconv -f utf-16 -t utf-8 ", " > converted/z-wide.txt",
        "data.arrow: is a",  // damaged table, or table that is read by another build
        "no column is named 'text'; name the column of the text with --field, one of id, body",
        "records.jsonl:1: has no key 'text'", "state.json: is JSON, not prose", "info.json:1: has no key"})
    CHECK_THAT(refused, Catch::Contains(sentence));
  options.skip_unreadable = true;
  const auto log = logged(dir, [&] { CHECK(prepare(options).files == 14); });
  CHECK_THAT(log, Catch::Contains("20 files: 12 text, ") && Catch::Contains("1 WikiExtractor"));
  CHECK_THAT(log, Catch::Contains("6 of 20 files left out (") && Catch::Contains("in/z/state.json"));
  options.field = "body";
  options.out = dir / "with-columns";
  CHECK(prepare(options).files == 16);
}

TEST_CASE("a text that shows nothing is refused in a sentence, whatever tokenizer is trained", "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  options.inputs = {dir.write("a.txt", "\u200B\u200B\n\n\u2060\u00AD\n\n\uFEFF\u200B\uFE0F\n")};
  options.threads = 1;
  options.vocab_size = 300;
  for (const auto kind : {TokenizerKind::unigram, TokenizerKind::wordpiece, TokenizerKind::byte_bpe}) {
    options.train_kind = kind;
    options.out = dir / name_of(kind);
    CHECK_THROWS_WITH(prepare(options), Catch::Contains("a.txt: has no text that can be seen"));
  }
}

TEST_CASE("a tokenizer is trained on lines of Chinese longer than 4,000 bytes", "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  options.inputs = {dir.write("stops.txt", many("\u4EBA\u4EBA\u751F\u800C\u81EA\u7531\u3002", 400) + "\n\n" +
                                               many("\u5728\u5C0A\u4E25\uFF0C", 500) + "\n")};
  options.format = TextFormat::lines;
  options.train_kind = TokenizerKind::byte_bpe;
  options.vocab_size = 270;
  options.threads = 1;
  options.out = dir / "out";
  const auto log = logged(dir, [&] { prepare(options); });
  CHECK_THAT(log, !Catch::Contains("left out"));
}

TEST_CASE("one text that nothing divides is told at once that no text is held out", "[data][prepare]") {
  TempDir dir;
  PrepareOptions options;
  options.inputs = {dir.write("a.txt", many("the a b ", 200))};
  options.tokenizer = dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nthe\n");
  options.threads = 1;
  options.out = dir / "out";
  CHECK_THAT(logged(dir, [&] { prepare(options); }),
             Catch::Contains("no text is held out") && Catch::Contains("--valid"));
  options.out = dir / "none";
  options.held_out = 0;
  CHECK_THAT(logged(dir, [&] { prepare(options); }), !Catch::Contains("no text is held out"));
}

TEST_CASE("--document is refused where records are documents", "[data][prepare]") {
  PrepareOptions options;
  options.out = "out";
  options.document = DocumentUnit::file;
  options.format = TextFormat::jsonl;
  CHECK_THROWS_WITH(check_options(options),
                    Catch::StartsWith("--document is 'file', which says what a document is in"));
  TempDir dir;
  options.format = TextFormat::automatic;
  options.inputs = {dir.write("a.jsonl", "{\"text\": \"the a\"}\n")};
  options.out = dir / "out";
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("and none of the text is either; leave --document out"));
}
