// Tokens that were added to a tokenizer. Fixtures and expected ids: make_added_tokens.py.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "data/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using nlohmann::json;

namespace {

const json& reference() {
  static const auto made = json::parse(read_file(SOURCE_DIR "/tests/data/tokenizers/added_tokens.json"));
  return made;
}

/// Writes the files of a case into a folder of `dir`.
void write_files(const TempDir& dir, const std::string& folder, const json& files) {
  for (const auto& [name, content] : files.items()) {
    const auto text = content.get<std::string>();
    const auto model = SOURCE_DIR "/tests/data/tokenizers/families/" + text + ".model";
    dir.write(folder + "/" + name, name == "spiece.model" ? read_file(model) : text);
  }
}

std::vector<int32_t> ids_of(const std::vector<TokenSpan>& tokens) {
  std::vector<int32_t> ids;
  for (const auto& token : tokens) ids.push_back(token.id);
  return ids;
}

}  // namespace

TEST_CASE("added tokens of a vocabulary folder are found in text as in transformers", "[data][tokenizer]") {
  TempDir dir;
  size_t number = 0;
  for (const auto& one : reference()["folders"]) {
    const auto folder = "folder" + std::to_string(number++);
    write_files(dir, folder, one["files"]);
    const auto tokenizer = Tokenizer::open(dir / folder);
    set_log_file(dir / "log");
    tokenizer.save(dir / (folder + "-saved"));
    set_log_file("");
    // The exported tokenizer.json of a SentencePiece model finds added tokens by exact spelling, with a warning.
    const bool told = read_file(dir / "log").find("is searched in normalised text") != std::string::npos;
    CHECK(told == one["files"].contains("spiece.model"));
    std::filesystem::remove(dir / "log");
    const auto again = Tokenizer::open(dir / (folder + "-saved"));
    const auto exported = Tokenizer::open(dir / (folder + "-saved/tokenizer.json"));
    CHECK(again.fingerprint() == tokenizer.fingerprint());
    CHECK(again.size() == tokenizer.size());
    CHECK_FALSE(tokenizer.is_special(tokenizer.id("NewTok")));
    for (size_t i = 0; i < one["lines"].size(); ++i) {
      const auto line = one["lines"][i].get<std::string>();
      INFO(folder << " " << one["class"] << ": '" << line << "'");
      const auto wanted = one["ids"][i].get<std::vector<int32_t>>();
      CHECK(tokenizer.encode(line) == wanted);
      CHECK(ids_of(tokenizer.encode_with_offsets(line)) == wanted);
      CHECK(again.encode(line) == wanted);
      CHECK(exported.encode(line) == wanted);
      if (tokenizer.keeps_spaces()) CHECK(tokenizer.encode(line, /*inside=*/true) == tokenizer.encode(" " + line));
    }
  }
  CHECK(number == 9);
}

TEST_CASE("an added token keeps its offsets and its spelling, and is part of the fingerprint", "[data][tokenizer]") {
  TempDir dir;
  auto files = reference()["folders"][0]["files"];
  write_files(dir, "with", files);
  files.erase("added_tokens.json");
  write_files(dir, "without", files);
  const auto with = Tokenizer::open(dir / "with"), without = Tokenizer::open(dir / "without");
  CHECK(with.fingerprint() != without.fingerprint());
  CHECK_FALSE(with.has_fingerprint(without.fingerprint()));
  const auto placed = with.encode_with_offsets("the newTOK cat");
  REQUIRE(placed.size() == 3);
  CHECK(placed[1].begin == 4);
  CHECK(placed[1].end == 10);
  CHECK(placed[0].word < placed[1].word);
  CHECK(placed[1].word < placed[2].word);
  CHECK(with.decode(std::vector<int64_t>{placed[0].id, placed[1].id, placed[2].id}) == "the NewTok cat");
  // Special tokens that a user added are found in text, those named by a role are not.
  files["added_tokens.json"] = R"({"NewTok": 28, "<x>": 29})";
  files["special_tokens_map.json"] = R"({"additional_special_tokens": ["NewTok"], "bos_token": "<x>"})";
  write_files(dir, "named", files);
  const auto named = Tokenizer::open(dir / "named");
  CHECK(named.is_special(28));
  CHECK(named.special().bos == 29);
  const auto found = named.encode("NewTok <x>");
  CHECK(std::count(found.begin(), found.end(), 28) == 1);
  CHECK(std::count(found.begin(), found.end(), 29) == 0);
}

TEST_CASE("a tokenizer saved by an earlier version finds no added token in a text", "[data][tokenizer]") {
  TempDir dir;
  dir.write("vocab.txt", reference()["folders"][0]["files"]["vocab.txt"].get<std::string>());
  dir.write("cloze_tokenizer.json", R"({"format": "cloze-tokenizer", "version": 2, "added": {"28": "NewTok"}})");
  const auto tokenizer = Tokenizer::open(dir.path.string());
  CHECK(tokenizer.is_special(28));
  for (const auto id : tokenizer.encode("NewTok")) CHECK(id < 28);
}

TEST_CASE("added tokens of a tokenizer.json are found where tokenizers finds them, and never within words",
          "[data][tokenizer]") {
  TempDir dir;
  size_t compared = 0;
  for (const auto& one : reference()["wholes"]) {
    const auto tokenizer = Tokenizer::open(dir.write("tokenizer.json", one["tokenizer"].dump()));
    for (size_t i = 0; i < one["lines"].size(); ++i) {
      const auto line = one["lines"][i].get<std::string>();
      INFO(one["name"] << ": '" << line << "'");
      const auto placed = tokenizer.encode_with_offsets(line);
      std::vector<size_t> positions;
      for (const auto& piece : placed) positions.insert(positions.end(), {piece.begin, piece.end});
      CHECK(tokenizer.encode(line) == one["ids"][i].get<std::vector<int32_t>>());
      CHECK(ids_of(placed) == one["ids"][i].get<std::vector<int32_t>>());
      CHECK(positions == one["positions"][i].get<std::vector<size_t>>());
      ++compared;
    }
  }
  CHECK(compared == 41);
}

TEST_CASE("white space shared by two added tokens is examined once", "[data][tokenizer]") {
  TempDir dir;
  auto whole = reference()["wholes"][3]["tokenizer"];
  for (auto& token : whole["added_tokens"]) token["rstrip"] = token["content"] == "\n";
  const auto tokenizer = Tokenizer::open(dir.write("tokenizer.json", whole.dump()));
  const std::string lines(1 << 20, '\n');  // quadratic if every line end scans all following ones: minutes
  CHECK(tokenizer.encode(lines).size() == lines.size());
}
