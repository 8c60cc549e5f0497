#include <filesystem>

#include "core/error.h"
#include "data/prepare/prepare.h"
#include "data/reading/byte_source.h"
#include "data/reading/line_reader.h"
#include "data/reading/reader.h"
#include "data/reading/sentences.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string_view> found;
  split_sentences(text, found);
  return {found.begin(), found.end()};
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

TEST_CASE("a file that decompresses to more than may be in memory is refused while it is read", "[data][reader]") {
  TempDir dir;
  dir.write("t.txt", std::string(3 << 20, '\n'));
  REQUIRE(std::system(("cd '" + dir.path.string() + "' && gzip t.txt").c_str()) == 0);
  const auto compressed = dir / "t.txt.gz";
  const std::string sentence =
      compressed + ": has more than 2 MiB, which are to be in memory at once; give a smaller file, or parts of it";
  CHECK_THROWS_WITH(read_bytes(compressed, 2 << 20), sentence);
  CHECK(read_bytes(compressed, 3 << 20).size() == 3 << 20);
  const auto lines_of = [&](uint64_t most) {
    LineReader lines(compressed, LoneReturn::ends_line, most);
    for (std::string_view line; lines.next(line);) continue;
    return lines.number;
  };
  CHECK_THROWS_WITH(lines_of(2 << 20), sentence);
  CHECK(lines_of(3 << 20) == 3 << 20);
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
      Catch::EndsWith("j.jsonl:1: has no key 'text'; no other key of the line has a text: give it one, or leave the "
                      "line out"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": 1}\n")}}),
                    Catch::Contains("'text' is a number, not a text; no other key of the line has a text"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": \"a\"}\n{\"text\": null}\n")}}),
                    Catch::EndsWith("j.jsonl:2: 'text' is null, not a text; no other key of the line has a text: give "
                                    "it one, or leave the line out (--skip-null leaves such lines out)"));
  for (const auto& [value, kind] : {std::pair{"true", "a boolean"}, {"[2]", "a number"}, {"{}", "an object"}})
    CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", concat("{\"b\": \"c\", \"text\": ", value, "}\n"))}}),
                      Catch::EndsWith(concat("j.jsonl:1: 'text' is ", kind,
                                             ", not a text; name the key of the text with "
                                             "--field; its texts: b")));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("j.jsonl", "{\"text\": \n")}}),
                    Catch::Contains("not a JSON object"));
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("d.jsonl", "{\"text\": \"a\"}\n{\"text\": " + deep + "}\n")}}),
                    Catch::Contains("d.jsonl:2: not a JSON object (column 73: nested deeper than 64 lists"));
  CHECK_THROWS_WITH(
      read_all({.inputs = {dir.write("d.jsonl", "{\"source\": " + deep + "}\n")}, .format = TextFormat::pairs}),
      Catch::Contains("d.jsonl:1: not a JSON object (column 75: nested deeper than 64 lists"));
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

TEST_CASE("a file that is not compressed as its name says is told another name", "[data][reader]") {
  TempDir dir;
  for (const auto& [name, kind] : {std::pair{"a b.txt.gz", "a gzip file"}, {"a b.txt.xz", "an xz file"}}) {
    const auto file = dir.write(name, "The cat sat on the mat.\n");
    CHECK_THROWS_WITH(read_all({.inputs = {file}}), file + ": is not " + kind + ", though its name ends in " +
                                                        file.substr(file.size() - 3) +
                                                        "; if it is plain text, give it another name: mv -n '" + file +
                                                        "' '" + dir / "a b.txt" + "'");
  }
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
  const auto spaced = dir.write("spaced.tsv", "en \tde\u00A0\na\tb\n");
  CHECK(read_all({.inputs = {spaced}, .format = TextFormat::pairs, .columns = "en,de"}) == Documents{{"a", "b"}});
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
  const auto both_refused = [&] {
    CHECK_THROWS_WITH(prepare(options), "--columns and --field both name the keys of pairs; leave --field out");
  };
  both_refused();
  options.field = "text";
  both_refused();
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

TEST_CASE("an xz file that takes more memory than is allowed is not called damaged", "[data][reader]") {
  TempDir dir;
  dir.write("t.txt", "One sentence. Another one.\n");
  REQUIRE(std::system(("xz -k '" + dir / "t.txt" + "'").c_str()) == 0);
  auto compressed = read_file(dir / "t.txt.xz");
  constexpr size_t header = 12, dictionary = header + 4;  // block: its size, its flags, the filter, 1, the dictionary
  REQUIRE(compressed[header + 2] == 0x21);
  compressed[dictionary] = 38;  // 2 GiB
  const size_t bytes = 4 * (static_cast<size_t>(compressed[header]) + 1) - 4;
  uint32_t crc = ~0u;
  for (size_t i = 0; i < bytes; ++i) {
    crc ^= static_cast<unsigned char>(compressed[header + i]);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  crc = ~crc;
  for (size_t i = 0; i < 4; ++i) compressed[header + bytes + i] = static_cast<char>(crc >> 8 * i);
  dir.write("t.txt.xz", compressed);
  CHECK_THROWS_WITH(read_all({.inputs = {dir / "t.txt.xz"}}),
                    Catch::Contains("MiB of memory to unpack, at most 1024 MiB are allowed; unpack it: xz -dk "));
}

TEST_CASE("a line of JSON whose bytes or escapes are not whole Unicode is skipped, counted and named",
          "[data][reader]") {
  TempDir dir;
  const auto count = [&](const std::string& bad, bool refuse = false) {
    const auto file = dir.write("a.jsonl", "{\"text\": \"one\"}\n" + bad + "\n{\"text\": \"two\"}\n" + bad + "\n");
    DocumentReader reader({.inputs = {file}, .refuse_invalid_utf8 = refuse});
    RawDocument document;
    int documents = 0;
    while (reader.next(document)) ++documents;
    CHECK(documents == 2);
    CHECK(reader.first_skipped().file == file);
    CHECK(reader.first_skipped().number == 2);
    return reader.skipped_lines();
  };
  for (const std::string bad : {"{\"text\": \"caf\xE9\"}", "{\"text\": \"\\ud83d\"}", "{\"text\": \"\\ude00 x\"}",
                                "{\"text\": \"\\ud83d\\u0041\"}"}) {
    CHECK(count(bad) == 2);
    CHECK_THROWS_WITH(count(bad, true), Catch::Contains("a.jsonl:2: not a JSON object"));
  }
  CHECK_THROWS_WITH(count("{\"text\": \"caf\xE9\""), Catch::Contains("a.jsonl:2: not a JSON object"));
  CHECK(read_all({.inputs = {dir.write("b.jsonl", R"({"text": "\ud83d\ude00 \\ud83d"})")}}) ==
        std::vector<std::vector<std::string>>{{"\U0001F600 \\ud83d"}});
}

TEST_CASE("the texts in lists of JSON lines are lines of one document", "[data][reader]") {
  TempDir dir;
  const auto file = dir.write("a.jsonl", R"({"article": {"sections": [{"text": "one\ntwo"}, {"head": "h"},)"
                                         R"( {"text": ["three", null, "four"]}]}, "ids": [1]})"
                                         "\n");
  const auto read = [&](const std::string& field) { return read_all({.inputs = {file}, .field = field}); };
  CHECK(read("article.sections.text") == std::vector<std::vector<std::string>>{{"one", "two", "three", "four"}});
  CHECK(read("article.sections.head") == std::vector<std::vector<std::string>>{{"h"}});
  CHECK_THROWS_WITH(read("ids"), Catch::Contains("a.jsonl:1: 'ids' is a number, not a text"));
  CHECK_THROWS_WITH(read("article.text"), Catch::Contains("has no key 'article.text'; name the key of the text with "
                                                          "--field; its texts: article.sections.text"));
}

TEST_CASE("a file that is one list of objects has an object a document, as JSON lines have", "[data][reader]") {
  TempDir dir;
  using Documents = std::vector<std::vector<std::string>>;
  const Documents two = {{"one, [two]", "\"three\\\" {"}, {"four"}};
  const std::string first = R"({"n": [1, {"text": 2}], "text": "one, [two]\n\"three\\\" {"})";
  const auto read = [&](const std::string& name, const std::string& text) {
    return read_all({.inputs = {dir.write(name, text)}});
  };
  CHECK(read("a.json", "[" + first + R"(, {"text": "four"}])") == two);
  CHECK(read("b.json", "\xEF\xBB\xBF [\r\n  " + first + "\r\n,{\n    \"text\":\r\n \"four\"\n}\n]\n\n") == two);
  CHECK(read("unnamed", "[\t{\"text\": \"four\"}]") == Documents{{"four"}});
  CHECK(read("prose.txt", "[{x\ny\n") == Documents{{"[{x", "y"}});
  std::string many;  // more than one block that is read at once
  for (int i = 0; i < 100000; ++i) many += (i > 0 ? ", " : "") + concat(R"({"text": "number )", i, "\"}");
  const auto numbers = read("many.json", "[" + many + "]");
  REQUIRE(numbers.size() == 100000);
  CHECK(numbers[99999] == std::vector<std::string>{"number 99999"});
  CHECK(
      read_all({.inputs = {dir.write("p.json", R"([{"source": "a", "target": "b"}, {"source": "c", "target": "d"}])")},
                .format = TextFormat::pairs}) == Documents{{"a", "b"}, {"c", "d"}});
}

TEST_CASE("a list of objects that is no JSON is refused with the place", "[data][reader]") {
  TempDir dir;
  const auto fault = [&](const std::string& text) {
    std::string said;
    try {
      read_all({.inputs = {dir.write("a.json", text)}});
    } catch (const DataError& error) {
      said = error.what();
    }
    return said.substr(std::min(said.find("a.json"), said.size()));
  };
  const std::string one = R"({"text": "one"})";
  CHECK(fault("[" + one + ", " + one) == "a.json: its list of objects does not end; the file is cut off, get it again");
  CHECK(fault("[" + one + ",]") ==
        "a.json: its list has nothing before the ']' at byte 18; remove a comma, or get the "
        "file again");
  CHECK(fault("[" + one + ",," + one + "]").starts_with("a.json: its list has nothing before the ',' at byte 18"));
  CHECK(fault("[" + one + "] " + one).starts_with("a.json: goes on after the end of its list of objects, at byte 19"));
  CHECK(fault("[" + one + ", 7]").starts_with("a.json: object 2: not a JSON object"));
  CHECK(fault("[" + one + " " + one + "]").starts_with("a.json: object 1: not a JSON object"));
  CHECK(fault("[" + one + "}").starts_with("a.json: object 1: not a JSON object"));
  CHECK(
      fault("[" + one + R"(, {"body": "x"}])")
          .starts_with("a.json: object 2: has no key 'text'; name the key of the text with --field; its texts: body"));
}

TEST_CASE("a column of CSV and TSV is its text, with separators, quotes and line ends in quotes", "[data][reader]") {
  TempDir dir;
  const auto csv = dir.write("a.csv", "id,text,label\r\n0,plain,x\r\n1,\"a, \"\"b\"\"\n\nc\",y\r\n\n2,,z\n3,last,\n");
  const std::vector<std::vector<std::string>> expected = {{"plain"}, {"a, \"b\"", "c"}, {"last"}};
  CHECK(read_all({.inputs = {csv}}) == expected);
  CHECK(read_all({.inputs = {csv}, .field = "label"}) == std::vector<std::vector<std::string>>{{"x"}, {"y"}, {"z"}});
  const auto semicolons = dir.write("b.csv", "\xEF\xBB\xBFtext;n\na, b;1\n");
  CHECK(read_all({.inputs = {semicolons}}) == std::vector<std::vector<std::string>>{{"a, b"}});
  const auto tsv = dir.write("c.tsv", "n\ttext\n1\t\"quoted\" word\n2\t\"open\n3\t\"two\tcells\"\n");
  CHECK(read_all({.inputs = {tsv}}) ==
        std::vector<std::vector<std::string>>{{"\"quoted\" word"}, {"\"open"}, {"two\tcells"}});
  const auto quotes = dir.write("q.tsv",
                                "text\tn\n\"open, in the middle\t1\n\"Play\" is a \"Lullaby\"\t2\n\"a \"\"b\"\"\"\t3\n"
                                "\"two\nlines\"\t4\n\"\t5\n\"\"\"\t6\n");
  CHECK(
      read_all({.inputs = {quotes}}) ==
      std::vector<std::vector<std::string>>{
          {"\"open, in the middle"}, {"\"Play\" is a \"Lullaby\""}, {"a \"b\""}, {"two", "lines"}, {"\""}, {"\"\"\""}});
  CHECK(read_all({.inputs = {dir.write("d", "text\ta\n1\t2\n")}, .format = TextFormat::tsv}) ==
        std::vector<std::vector<std::string>>{{"1"}});
  CHECK(read_all({.inputs = {dir.write("spaced.csv", "id, text\n1,2\n")}}) ==
        std::vector<std::vector<std::string>>{{"2"}});
  CHECK_THROWS_WITH(read_all({.inputs = {csv}, .format = TextFormat::csv, .field = "body"}),
                    Catch::EndsWith("a.csv:1: no column is named 'body'; name the column of the text with --field, one "
                                    "of id, text, label"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("e.csv", "id,text\n1,a,b\n")}}),
                    Catch::Contains("e.csv:2: has 3 cells, the file's first line has 2"));
  CHECK_THROWS_WITH(read_all({.inputs = {dir.write("f.csv", "id,text\n1,\"a\nb\n")}}),
                    Catch::Contains("f.csv:2: a cell in quotes does not end"));
}

TEST_CASE("text after the closing quote of a cell is refused, with the mend for quotes after a backslash",
          "[data][reader]") {
  TempDir dir;
  const auto fault = [&](const std::string& text) {
    CHECK_THROWS_WITH(read_all({.inputs = {dir.write("a.csv", text)}}),
                      Catch::Contains("a.csv:2: text follows the closing "));
    try {
      read_all({.inputs = {dir / "a.csv"}});
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(fault("id,text\n1,\"abc\" def\n"), Catch::EndsWith("double the quotes inside of it (RFC 4180)"));
  CHECK_THAT(fault("id,text\n1,\"so \\\"no\\\" it\"\n"), Catch::Contains("read_csv(FILE, escapechar=\"\\\\\")"));
  CHECK_THAT(fault("id,text\n1,\"so \\\"no, no\\\"\"\n"), Catch::Contains("escapechar"));
  CHECK_THAT(fault("id,text\n1,\"two\nlines\"x\n"), Catch::Contains("RFC 4180"));
  CHECK(read_all({.inputs = {dir.write("b.csv", "text,n\n\"ends \\\" ,1\n")}}).size() == 1);  // a space, a backslash
}

TEST_CASE("a document of text is what --document says: lines up to an empty one, a file, or a line", "[data][reader]") {
  TempDir dir;
  const auto one = dir.write("a.txt", "a\nb\n\nc\n"), two = dir.write("b.txt", "d\n\n\ne\n");
  const auto read = [&](DocumentUnit unit) { return read_all({.inputs = {one, two}, .document = unit}); };
  using Documents = std::vector<std::vector<std::string>>;
  CHECK(read(DocumentUnit::blank_line) == Documents{{"a", "b"}, {"c"}, {"d"}, {"e"}});
  CHECK(read(DocumentUnit::file) == Documents{{"a", "b", "c"}, {"d", "e"}});
  CHECK(read(DocumentUnit::line) == Documents{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}});
}
