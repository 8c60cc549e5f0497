// Files of tokenizers that are damaged, or not what they seem.
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/prepare/prepare.h"
#include "data/store/token_store.h"
#include "data/tokenizer.h"
#include "data/tokenizers/charsmap.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

const std::string words_of_bert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n";

/// A table of SentencePiece: a trie of 512 units and its texts. The children of the root start at index 256.
struct TinyTable {
  std::vector<uint32_t> units = std::vector<uint32_t>(512, 1u << 31);  // of no letter
  std::string written{"x\0", 2};

  TinyTable() { units[0] = 256u << 10; }
  /// Adds the child `letter` of the unit whose children start at `base`; its own children start at `next`.
  void add(size_t base, uint8_t letter, size_t next, bool is_leaf) {
    const auto child = base ^ letter;
    units[child] = static_cast<uint32_t>(child ^ next) << 10 | (is_leaf ? 1u << 8 : 0u) | letter;
  }
  std::string bytes() const {
    const auto size = static_cast<uint32_t>(4 * units.size());
    std::string text(4 + size, '\0');
    std::memcpy(text.data(), &size, 4);
    std::memcpy(text.data() + 4, units.data(), size);
    return text + written;
  }
  void check() const { require_readable_charsmap(bytes(), "table"); }
};

/// A trained SentencePiece model with the usual normalisation table.
const std::string& trained_model() {
  static const std::string content = [] {
    TempDir dir;
    std::string text;
    for (int i = 0; i < 400; ++i) text += "the cat " + std::to_string(i % 37) + " sat on the mat.\n\n";
    PrepareOptions options;
    options.inputs = {dir.write("text.txt", text)};
    options.out = dir / "tokens";
    options.vocab_size = 40;
    options.threads = 1;
    prepare(options);
    return read_file(dir / "tokens/tokenizer/spiece.model");
  }();
  return content;
}

}  // namespace

TEST_CASE("a table of SentencePiece is refused where the library would read outside of it", "[data][tokenizer]") {
  TinyTable good;
  good.add(256, 'a', 384, true);
  good.units[384] = 1u << 31 | 0;
  CHECK_NOTHROW(good.check());

  SECTION("children beyond the trie") {
    good.add(256, 'b', 600, false);
    CHECK_THROWS_WITH(good.check(), "table is not a table of SentencePiece: its trie is damaged");
  }
  SECTION("a text beyond the texts") {
    good.units[384] = 1u << 31 | 2;
    CHECK_THROWS_AS(good.check(), DataError);
  }
  SECTION("a path without an end") {
    good.add(256, 'b', 256, false);
    CHECK_THROWS_AS(good.check(), DataError);
  }
  SECTION("texts that are not closed") {
    good.written = "x";
    CHECK_THROWS_WITH(good.check(), "table is not a table of SentencePiece: its texts are cut off or not UTF-8");
  }
}

TEST_CASE("a SentencePiece model with a damaged table ends in a sentence, whatever byte is wrong",
          "[data][tokenizer]") {
  TempDir dir;
  const auto& whole = trained_model();
  const auto file = dir.write("whole/spiece.model", whole);
  const auto ids = Tokenizer::open(file).encode("The CAFE\u0301 \uFF21 \u00BD \u2460");
  CHECK_FALSE(ids.empty());
  // The table is the longest field by far: most of these positions are in it.
  size_t refused = 0;
  for (size_t i = 0; i < 120; ++i) {
    auto damaged = whole;
    const size_t at = damaged.size() / 121 * (i + 1);
    for (size_t k = at; k < std::min(at + 4, damaged.size()); ++k) damaged[k] = static_cast<char>(damaged[k] ^ 0xA5);
    try {
      const auto tokenizer = Tokenizer::open(dir.write("damaged/spiece.model", damaged));
      for (const auto* text : {"The CAFE\u0301", "\uFF21\uFF22 \u2460 \u00BD \uFB01", "\u1E9B\u0323 \u0915\u094D"})
        tokenizer.encode(text);
    } catch (const DataError&) {
      ++refused;
    }
  }
  CHECK(refused > 10);
}

TEST_CASE("pieces of a SentencePiece model that would end the library are refused by their number",
          "[data][tokenizer]") {
  TempDir dir;
  const auto& whole = trained_model();
  const auto refused_with = [&](const std::string& content, const std::string& sentence) {
    const auto file = dir.write("spiece.model", content);
    CHECK_THROWS_WITH(Tokenizer::open(file), file + ": " + sentence + "; the model is damaged, get or train it again");
  };
  // Fields of a piece: its text, its score in fp32.
  const auto with_piece = [&](const std::string& text, float score) {
    std::string piece = "\x0A";
    for (size_t left = text.size(); piece.size() < 2 || left > 0; left >>= 7)
      piece += static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
    piece += text + "\x15";
    piece.append(reinterpret_cast<const char*>(&score), sizeof score);
    std::string field = "\x0A";
    for (size_t left = piece.size(); left > 0; left >>= 7)
      field += static_cast<char>((left & 0x7F) | (left > 0x7F ? 0x80 : 0));
    return field + piece + whole;
  };
  refused_with(with_piece(std::string("a\0b", 3), -1), "piece 0 has a NUL in it");
  refused_with(with_piece(std::string(200'000, 'a'), -1),
               "piece 0 has 200000 bytes, more than the 1024 that a piece can have");
  refused_with(with_piece("zz", std::nanf("")), "piece 0 has a score that is not a number");
  // A byte of a piece that becomes a NUL.
  for (size_t at = 0; at < 400; ++at) {
    auto damaged = whole;
    damaged[at] = '\0';
    try {
      Tokenizer::open(dir.write("damaged/spiece.model", damaged)).encode("the cat");
    } catch (const DataError&) {
    }
  }
}

TEST_CASE("a saved tokenizer whose files have changed is refused", "[data][tokenizer]") {
  TempDir dir;
  Tokenizer::open(dir.write("vocab.txt", words_of_bert)).save(dir / "saved");
  CHECK_NOTHROW(Tokenizer::open(dir / "saved"));
  dir.write("saved/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\ncat\nthe\n##s\n");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "saved"),
                    Catch::StartsWith(dir / "saved/vocab.txt" + ": has changed since it was saved (") &&
                        Catch::EndsWith("restore it, or remove cloze_tokenizer.json to take it as it is"));
  CHECK_THROWS_AS(Tokenizer::open(dir / "saved/vocab.txt"), DataError);
  CHECK_NOTHROW(Tokenizer::open(dir / "saved/tokenizer.json"));  // another file of the folder
  fs::remove(dir / "saved/cloze_tokenizer.json");
  fs::remove(dir / "saved/tokenizer.json");
  CHECK(Tokenizer::open(dir / "saved").id("cat") == 5);
}

TEST_CASE("a saved tokenizer whose facts have changed is refused", "[data][tokenizer]") {
  TempDir dir;
  Tokenizer::open(dir.write("vocab.txt", words_of_bert)).followed_by_sentinels(3).save(dir / "saved");
  const auto path = dir / "saved/cloze_tokenizer.json";
  auto facts = Json::parse(read_file(path));
  facts["special"]["mask"] = 5;  // the fingerprint, that of the mapping from text to ids, is the same
  dir.write("saved/cloze_tokenizer.json", facts.dump());
  CHECK_THROWS_WITH(Tokenizer::open(dir / "saved"), Catch::StartsWith(path + ": does not match its checksum; restore"));
  facts.erase("xxh3");
  dir.write("saved/cloze_tokenizer.json", facts.dump());
  CHECK_THROWS_WITH(Tokenizer::open(dir / "saved"), Catch::StartsWith(path + ": does not match its checksum; restore"));
  facts["version"] = 2;  // which had none at first
  dir.write("saved/cloze_tokenizer.json", facts.dump());
  CHECK(Tokenizer::open(dir / "saved").special().mask == 5);
}

TEST_CASE("appended sentinels are part of a tokenizer's fingerprint wherever they are saved", "[data][tokenizer]") {
  TempDir dir;
  Tokenizer::open(dir.write("vocab.txt", words_of_bert)).save(dir / "bert");
  fs::create_directories(dir / "whole");
  fs::copy_file(dir / "bert/tokenizer.json", dir / "whole/tokenizer.json");
  const auto tokenizer = Tokenizer::open(dir / "whole").with_sentinels(3);
  const TextReader reader{.kind = "bert"};
  tokenizer.save(dir / "saved");
  tokenizer.save(dir / "exported", reader);
  for (const auto* folder : {"saved", "exported"}) {
    INFO(folder);
    const auto again = Tokenizer::open(dir / folder);
    CHECK(again.fingerprint() == tokenizer.fingerprint());
    CHECK(again.sentinels() == tokenizer.sentinels());
    CHECK(again.size() == tokenizer.size());
  }
}

TEST_CASE("a written tokenizer.json that took over added tokens opens with the fingerprint of earlier versions",
          "[data][tokenizer]") {
  TempDir dir;
  const Json model{{"type", "WordLevel"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"cat", 1}, {"the", 2}}}};
  dir.write("level/tokenizer.json", Json{{"version", "1.0"}, {"model", model}}.dump());
  dir.write("level/added_tokens.json", R"({"new": 3})");
  const auto tokenizer = Tokenizer::open(dir / "level");
  tokenizer.save(dir / "exported", TextReader{.kind = "bert"});
  auto facts = Json::parse(read_file(dir / "exported/cloze_tokenizer.json"));
  CHECK_FALSE(facts.contains("fingerprint"));
  facts.erase("xxh3");
  facts["version"] = 2;
  facts["fingerprint"] = tokenizer.fingerprint();
  dir.write("exported/cloze_tokenizer.json", facts.dump());
  const auto again = Tokenizer::open(dir / "exported");
  CHECK(again.fingerprint() != tokenizer.fingerprint());
  CHECK(again.id("new") == 3);
}

TEST_CASE("a vocabulary that is not UTF-8 is answered with the line", "[data][tokenizer]") {
  TempDir dir;
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("vocab.txt", words_of_bert + "caf\xE9\n")),
                    Catch::EndsWith("vocab.txt:9: byte 4 of the line is not UTF-8; convert the vocabulary (iconv -t "
                                    "utf-8), or get it again"));
}

TEST_CASE("two tokens on one id are refused", "[data][tokenizer]") {
  TempDir dir;
  dir.write("bert/vocab.txt", words_of_bert);
  dir.write("bert/config.json", R"({"model_type": "bert"})");
  dir.write("bert/added_tokens.json", R"({"one": 8, "two": 8})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "bert"),
                    Catch::EndsWith("added_tokens.json: 'one' and 'two' have the same id, 8; give each token its own"));
  const Json model{{"type", "WordLevel"}, {"unk_token", "a"}, {"vocab", {{"", 1}, {"a", 0}, {"b", 1}}}};
  CHECK_THROWS_WITH(
      Tokenizer::open(dir.write("level/tokenizer.json", Json{{"version", "1.0"}, {"model", model}}.dump())),
      Catch::Contains("the id 1, which '"));
}

TEST_CASE("a value of any other kind in tokenizer.json ends in a sentence", "[data][tokenizer]") {
  TempDir dir;
  const auto cases = Json::parse(read_file(SOURCE_DIR "/tests/data/tokenizers/tokenizers.json"))["cases"];
  const std::vector<Json> others{nullptr, true, 7, -1, 1.5, "x", Json::array(), Json::object(), {7}, {{"x", 7}}};
  size_t tried = 0, refused = 0;
  for (size_t i = 0; i < cases.size(); i += 4) {
    const auto& whole = cases[i]["tokenizer"];
    std::vector<Json::json_pointer> keys;
    const std::function<void(const Json&, const Json::json_pointer&)> collect = [&](const Json& value,
                                                                                    const Json::json_pointer& at) {
      if (!at.empty()) keys.push_back(at);
      const bool is_long = value.size() > 12;  // of a vocabulary and its merges, the first entries
      size_t taken = 0;
      if (value.is_structured())
        for (const auto& [key, child] : value.items())
          if (!is_long || ++taken < 3)
            collect(child, value.is_array() ? at / static_cast<size_t>(std::stoul(key)) : at / key);
    };
    collect(whole, Json::json_pointer());
    for (size_t k = 0; k < keys.size(); ++k) {
      auto changed = whole;
      changed[keys[k]] = others[(k + tried) % others.size()];
      INFO(cases[i]["name"] << " " << keys[k].to_string() << " = " << changed[keys[k]]);
      ++tried;
      try {
        const auto tokenizer = Tokenizer::open(dir.write("tokenizer.json", changed.dump()));
        tokenizer.encode("the cat sat, 3 na\u00EFve");
        tokenizer.fingerprint();
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(tried > 100);
  CHECK(refused > 20);
}
