#include <filesystem>

#include "data/prepare/prepare.h"
#include "data/prepare/train_tokenizer.h"
#include "data/reading/sentences.h"
#include "data/store/token_store.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/utf8.h"
#include "data/word_starts.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/logged.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

using Texts = std::vector<std::string>;

Texts sentences_of(const std::string& text) {
  std::vector<std::string_view> sentences;
  split_sentences(text, sentences);
  return {sentences.begin(), sentences.end()};
}

/// White space of Unicode that is neither a space nor a line end of text files.
const Texts white_spaces = {"\u00A0", "\u0085", "\u1680", "\u2003", "\u2009",
                            "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"};

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

/// A byte-level tokenizer of no pieces but bytes and those that the texts give.
Tokenizer byte_level(TempDir& dir, const Texts& texts, int64_t pieces) {
  const auto files = train_byte_bpe(texts, pieces);
  dir.write("bytes/vocab.json", files.vocabulary);
  dir.write("bytes/merges.txt", files.merges);
  return Tokenizer::open(dir / "bytes").with_special_tokens();
}

std::vector<int64_t> ids_of(const Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.encode(text);
  return {ids.begin(), ids.end()};
}

/// The numbers of pieces of the words of a text.
std::vector<int64_t> word_lengths(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int64_t> lengths;
  for (const auto begins : WordStarts(tokenizer).of(ids_of(tokenizer, text))) {
    if (begins || lengths.empty()) lengths.push_back(0);
    ++lengths.back();
  }
  return lengths;
}

}  // namespace

TEST_CASE("any white space of Unicode after a stop ends a sentence as a space does", "[data][sentences]") {
  const std::string text = "One stop. Two stops! \"Three?\" Dr. No says e.g. this. 4 more.";
  const auto expected = sentences_of(text);
  REQUIRE(expected.size() == 5);
  for (const auto& space : white_spaces) {
    auto found = sentences_of(replaced(text, " ", space));
    for (auto& sentence : found) sentence = replaced(sentence, space, " ");
    CHECK(found == expected);
  }
  CHECK(sentences_of("\u00A0\u3000One.\u2009 ") == Texts{"One."});
}

TEST_CASE("the stops of other scripts end sentences, with their closing quotes", "[data][sentences]") {
  for (const std::string stop : {"\u0964", "\u0965", "\u061F", "\u06D4", "\u1362", "\u1367", "\u104B", "\u17D4",
                                 "\u17D5", "\u0589", "\u0F0D", "\u3002", "\uFF01", "\uFF61"}) {
    INFO(stop);
    CHECK(sentences_of("a" + stop + " b" + stop) == Texts{"a" + stop, "b" + stop});
    CHECK(sentences_of("a" + stop + "\u201D b") == Texts{"a" + stop + "\u201D", "b"});
  }
  CHECK(sentences_of("\u4F60\uFF1F\uFF01\u300D\u597D\u3002") == Texts{"\u4F60\uFF1F\uFF01\u300D", "\u597D\u3002"});
  CHECK(sentences_of("a\u060C b\u104A c").size() == 1);  // commas
}

TEST_CASE("a line of any white space ends a document", "[data][reader]") {
  TempDir dir;
  for (const auto& space : white_spaces)
    CHECK(read_all({.inputs = {dir.write("a.txt", "one\n" + space + " " + space + "\ntwo\n")}}) ==
          std::vector<Texts>{{"one"}, {"two"}});
}

TEST_CASE("a lone carriage return ends a line of text, and every mixture of line ends", "[data][reader]") {
  TempDir dir;
  const std::vector<Texts> expected = {{"one", "two"}, {"three"}};
  for (const std::string text : {"one\rtwo\r\rthree\r", "one\rtwo\n\rthree", "one\r\ntwo\r\n\r\nthree\r\n",
                                 "one\r\r\ntwo\r\r\n\r\r\n\r\nthree\r\r\n", "one\rtwo\r\n\nthree\n"})
    CHECK(read_all({.inputs = {dir.write("a.txt", text)}}) == expected);
  std::string long_text;  // line ends on the edges of blocks
  for (int i = 0; i < 300000; ++i) long_text += "abcde\r\nfg\r";
  const auto all = read_all({.inputs = {dir.write("b.txt", long_text)}});
  REQUIRE(all.size() == 1);
  CHECK(all[0].size() == 600000);
  CHECK(std::all_of(all[0].begin(), all[0].end(), [](const auto& line) { return line == "abcde" || line == "fg"; }));
  CHECK(read_all({.inputs = {dir.write("a.jsonl", "{\"text\": \"one\\rtwo\"}\r{\"text\": \"three\"}\r")}}) == expected);
}

TEST_CASE("where lines end by returns here and by feeds there, each ends a line, side by side too", "[data][reader]") {
  TempDir dir;
  std::string plain, mixed;
  const std::string ends[] = {"\r", "\n", "\r\n"};
  for (size_t i = 0; i < 90; ++i) {
    plain += "line " + std::to_string(i) + "\n\n";
    mixed += "line " + std::to_string(i) + ends[i % 3] + ends[i / 3 % 3];
  }
  CHECK(read_all({.inputs = {dir.write("mixed.txt", mixed)}}) == read_all({.inputs = {dir.write("lf.txt", plain)}}));
  // A stray return does not make two ends of CR LF.
  std::string windows = "a\rb\nc\n";
  for (int i = 0; i < 90; ++i) windows += "line\r\n";
  CHECK(read_all({.inputs = {dir.write("windows.txt", windows)}}).size() == 1);
}

TEST_CASE("a carriage return inside a cell of pairs ends no line where line feeds do", "[data][reader]") {
  TempDir dir;
  CHECK(read_all({.inputs = {dir.write("a.tsv", "a\rb\tc\nd\te\n")}, .format = TextFormat::pairs}) ==
        std::vector<Texts>{{"a\rb", "c"}, {"d", "e"}});
  CHECK(read_all({.inputs = {dir.write("b.tsv", "a\tc\rd\te\r")}, .format = TextFormat::pairs}) ==
        std::vector<Texts>{{"a", "c"}, {"d", "e"}});
}

TEST_CASE("words of scripts without spaces are their characters, in whole pieces and in bytes", "[data][tokenizers]") {
  TempDir dir;
  const Texts scripts = {"\u4EBA\u4EBA\u751F\u800C\u81EA\u7531",
                         "\u3059\u3079\u3066\u306E\u4EBA\u9593",
                         "\u0E40\u0E23\u0E32\u0E17\u0E38\u0E01\u0E04\u0E19",
                         "\u0E82\u0EAD\u0E87\u0EC2\u0EA5\u0E81",
                         "\u1798\u1793\u17BB\u179F\u17D2\u179F",
                         "\u101C\u1030\u1010\u102D\u102F\u1004\u103A\u1038",
                         "\U00020000\U00020001"};
  for (const int64_t pieces : {261, 400}) {
    const auto tokenizer = byte_level(dir, scripts, pieces);
    for (const auto& text : scripts) {
      INFO(text);
      const auto lengths = word_lengths(tokenizer, text);
      CHECK(lengths.size() >= 2);
      CHECK(*std::max_element(lengths.begin(), lengths.end()) <= 12);
    }
  }
  const auto bytes = byte_level(dir, {"a"}, 261);
  CHECK(word_lengths(bytes, "\u4EBA\u751F") == std::vector<int64_t>{3, 3});
  CHECK(word_lengths(bytes, "\u0E19\u0E35\u0E49\u0E19") == std::vector<int64_t>{9, 3});  // with its vowel and its tone
  CHECK(word_lengths(bytes, "\u00FCber \uD55C\uAD6D") == std::vector<int64_t>{5, 7});    // scripts with spaces
  CHECK(word_lengths(bytes, " a\u0395\u03B9 b") == std::vector<int64_t>{6, 2});
}

TEST_CASE("pieces of WordPiece and SentencePiece of scripts without spaces begin words", "[data][tokenizers]") {
  TempDir dir;
  const auto wordpiece = Tokenizer::open(dir.write("vocab.txt", "[UNK]\n\u0E01\n##\u0E19\n##\u0E31\n##a\n"));
  CHECK(WordStarts(wordpiece).of(std::vector<int64_t>{1, 2, 3, 4}) == std::vector<uint8_t>{1, 1, 0, 0});
}

TEST_CASE("byte-level pieces of whole characters are shown as these characters, parts of a character as bytes") {
  TempDir dir;
  const auto tokenizer = byte_level(dir, Texts(20, "你好 你好 the the"), 280);
  std::string shown;
  for (const auto id : ids_of(tokenizer, "你好 the")) shown += tokenizer.readable_piece(id) + "|";
  CHECK(shown == "你好|Ġthe|");
  const auto part = ids_of(tokenizer, "é").front();
  CHECK(tokenizer.readable_piece(part) == tokenizer.piece(part));
}
