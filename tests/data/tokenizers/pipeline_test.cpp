#include "data/tokenizers/pipeline.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"
#include "data/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Json = nlohmann::json;

namespace {

/// Made by make_tokenizers.py with Hugging Face's tokenizers and transformers.
const Json& pipeline_reference() {
  static const Json made = Json::parse(read_file(SOURCE_DIR "/tests/data/tokenizers/tokenizers.json"));
  return made;
}

const Json& kind(const std::string& name) {
  for (const auto& one : pipeline_reference()["cases"])
    if (one["name"] == name) return one["tokenizer"];
  FAIL("no case is named " << name);
  throw std::logic_error("unreachable");
}

std::unique_ptr<TokenizerModel> opened(const Json& tokenizer) {
  return make_pipeline(tokenizer.dump(), tokenizer, "tokenizer.json");
}

std::vector<int32_t> ids_of_spans(const TokenizerModel& model, const std::string& text) {
  std::vector<int32_t> ids;
  model.encode(text, ids);
  return ids;
}

std::vector<int32_t> ids_of_spans(const std::vector<TokenSpan>& tokens) {
  std::vector<int32_t> ids;
  for (const auto& token : tokens) ids.push_back(token.id);
  return ids;
}

/// The words of tokens, from 0 without gaps.
std::vector<int64_t> words_of(const std::vector<TokenSpan>& tokens) {
  std::vector<int64_t> words;
  for (size_t i = 0; i < tokens.size(); ++i)
    words.push_back(i == 0 ? 0 : words.back() + (tokens[i].word != tokens[i - 1].word));
  return words;
}

std::string refusal(const Json& tokenizer) {
  try {
    opened(tokenizer);
  } catch (const DataError& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("tokenizer.json of every kind gives the ids and offsets of Hugging Face's tokenizers", "[data][tokenizer]") {
  const auto& lines = pipeline_reference()["lines"];
  size_t compared = 0;
  for (const auto& one : pipeline_reference()["cases"]) {
    const auto model = opened(one["tokenizer"]);
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto line = lines[i].get<std::string>();
      INFO(one["name"] << ", line " << i << ": " << lines[i]);
      const auto placed = model->encode_with_offsets(line);
      std::vector<size_t> positions;
      for (const auto& piece : placed) positions.insert(positions.end(), {piece.begin, piece.end});
      CHECK(ids_of_spans(*model, line) == one["ids"][i].get<std::vector<int32_t>>());
      CHECK(ids_of_spans(placed) == one["ids"][i].get<std::vector<int32_t>>());
      CHECK(positions == one["places"][i].get<std::vector<size_t>>());
      ++compared;
    }
  }
  CHECK(compared >= 500);
}

TEST_CASE("tokens belong to the words of Hugging Face's word_ids", "[data][tokenizer]") {
  const auto& lines = pipeline_reference()["lines"];
  size_t compared = 0;
  for (const auto& one : pipeline_reference()["cases"]) {
    if (!one.contains("words")) continue;
    const auto model = opened(one["tokenizer"]);
    for (size_t i = 0; i < lines.size(); ++i) {
      INFO(one["name"] << ", line " << i << ": " << lines[i]);
      CHECK(words_of(model->encode_with_offsets(lines[i].get<std::string>())) ==
            one["words"][i].get<std::vector<int64_t>>());
      ++compared;
    }
  }
  CHECK(compared >= 500);
}

TEST_CASE("a text that no pre-tokenizer splits has words by white space", "[data][tokenizer]") {
  const Json vocabulary{{"<unk>", 0}, {"\u2581the", 1}, {"\u2581cat", 2}, {"s", 3}, {"\u2581", 4}, {".", 5}};
  const std::vector<std::pair<std::string, std::string>> pairs{{"t", "h"}, {"th", "e"}, {"\u2581", "the"},
                                                               {"c", "a"}, {"ca", "t"}, {"\u2581", "cat"}};
  const auto made = [&](const Json& normalizer, const Json& pre_tokenizer) {
    Json merges = Json::array();
    auto pieces = vocabulary;
    int32_t id = 6;
    for (const auto* piece : {"t", "h", "e", "c", "a", "th", "the", "ca", "cat"}) pieces[piece] = id++;
    for (const auto& [left, right] : pairs) merges.push_back(Json::array({left, right}));
    return opened({{"normalizer", normalizer},
                   {"pre_tokenizer", pre_tokenizer},
                   {"model", {{"type", "BPE"}, {"vocab", pieces}, {"merges", merges}, {"unk_token", "<unk>"}}}});
  };
  const Json mark{{"type", "Sequence"},
                  {"normalizers",
                   {{{"type", "Prepend"}, {"prepend", "\u2581"}},
                    {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "\u2581"}}}}};
  const Json metaspace{
      {"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}, {"split", false}};
  for (const auto& [normalizer, step] : {std::pair(mark, Json()), std::pair(Json(), metaspace)}) {
    const auto tokens = made(normalizer, step)->encode_with_offsets("the cats. the");
    CHECK(ids_of_spans(tokens) == std::vector<int32_t>{1, 2, 3, 5, 1});
    CHECK(words_of(tokens) == std::vector<int64_t>{0, 1, 1, 1, 2});
  }
}

TEST_CASE("options of a vocabulary folder are read as in transformers", "[data][tokenizer]") {
  TempDir dir;
  const auto& lines = pipeline_reference()["plain_lines"];
  size_t number = 0;
  for (const auto& one : pipeline_reference()["folders"]) {
    const auto folder = "folder" + std::to_string(number++);
    for (const auto& [name, content] : one["files"].items()) dir.write(folder + "/" + name, content.get<std::string>());
    const auto tokenizer = Tokenizer::open(dir / folder);
    tokenizer.save(dir / (folder + "-saved"));
    const auto again = Tokenizer::open(dir / (folder + "-saved"));
    for (size_t i = 0; i < lines.size(); ++i) {
      INFO(one["name"] << ", line " << i << ": " << lines[i]);
      const auto wanted = one["ids"][i].get<std::vector<int32_t>>();
      CHECK(tokenizer.encode(lines[i].get<std::string>()) == wanted);
      CHECK(again.encode(lines[i].get<std::string>()) == wanted);
      CHECK(words_of(tokenizer.encode_with_offsets(lines[i].get<std::string>())) ==
            one["words"][i].get<std::vector<int64_t>>());
    }
  }
  CHECK(number == 10);
  // A vocabulary in the folder of a Hugging Face model is read as in transformers, a bare one as in
  // google-research/bert.
  const auto words = pipeline_reference()["folders"][0]["files"]["vocab.txt"].get<std::string>();
  const std::string long_word(150, 'a');
  dir.write("bare/vocab.txt", words);
  dir.write("model/vocab.txt", words);
  dir.write("model/config.json", "{\"model_type\": \"bert\"}");
  CHECK(Tokenizer::open(dir / "bare").encode(long_word).size() > 1);
  CHECK(Tokenizer::open(dir / "model").encode(long_word) == std::vector<int32_t>{1});
}

TEST_CASE("the dedicated models of BERT and GPT-2 give the ids of the steps of their tokenizer.json",
          "[data][tokenizer]") {
  auto parts = separated(
      " |  |a|the|Cat|caf\u00E9|\u0301|\u0323|\u00A0|\u3000|\u2028|\u0085|\t|\u200B|\uFF21|7|.|##|\U0001F600|"
      "\uD55C|\u4E2D|\U0002B820|\u039F\u03A3|\u0130|'s|\uE000|\uFFFD|[MASK]|\xC3",
      "|");
  parts.emplace_back(1, '\0');
  for (const std::string name :
       {"bert", "bert cased", "bert accents", "bert stripped", "byte bpe", "byte bpe with a space"}) {
    const auto model = opened(kind(name));
    auto stream = Rng(3).stream("fuzz");
    for (int i = 0; i < 1500; ++i) {
      std::string line;
      for (uint64_t n = stream.below(10); n > 0; --n) line += parts[stream.below(parts.size())];
      INFO(name << ": " << Json(line).dump(-1, ' ', true, Json::error_handler_t::replace));
      REQUIRE(ids_of_spans(*model, line) == ids_of_spans(model->encode_with_offsets(line)));
    }
  }
}

TEST_CASE("offsets are within the text, for any text and any tokenizer", "[data][tokenizer]") {
  auto stream = Rng(4).stream("fuzz");
  for (const auto& one : pipeline_reference()["cases"]) {
    const auto model = opened(one["tokenizer"]);
    for (int i = 0; i < 60; ++i) {
      std::string line;
      for (uint64_t n = stream.below(40); n > 0; --n) line += static_cast<char>(stream.below(256));
      INFO(one["name"]);
      const auto ids = ids_of_spans(*model, line);
      for (const auto& piece : model->encode_with_offsets(line)) {
        REQUIRE(piece.begin <= piece.end);
        REQUIRE(piece.end <= line.size());
      }
      model->decode(std::vector<int64_t>(ids.begin(), ids.end()));
    }
  }
}

TEST_CASE("a tokenizer.json is saved unchanged, and opens again as the same tokenizer", "[data][tokenizer]") {
  TempDir dir;
  for (const auto& one : pipeline_reference()["cases"]) {
    INFO(one["name"]);
    const auto name = one["name"].get<std::string>();
    const auto tokenizer = Tokenizer::open(dir.write(name + "/tokenizer.json", one["tokenizer"].dump()));
    tokenizer.save(dir / (name + "-saved"));
    const auto written = Json::parse(read_file(dir / (name + "-saved/tokenizer.json")));
    for (const auto* part : {"normalizer", "pre_tokenizer", "model", "decoder"})
      CHECK(written[part] == one["tokenizer"][part]);
    CHECK(written["post_processor"] == one["tokenizer"]["post_processor"]);
    const auto again = Tokenizer::open(dir / (name + "-saved"));
    CHECK(again.fingerprint() == tokenizer.fingerprint());
    CHECK(again.size() == tokenizer.size());
    CHECK(again.special().mask == tokenizer.special().mask);
    const auto line = pipeline_reference()["lines"][3].get<std::string>();
    CHECK(again.encode(line) == tokenizer.encode(line));
  }
}

TEST_CASE("special tokens after a vocabulary and the post-processor are saved with a tokenizer.json",
          "[data][tokenizer]") {
  TempDir dir;
  Json came = kind("byte bpe");
  Json token = came["added_tokens"][0];
  const size_t after = came["model"]["vocab"].size();
  token["content"] = "<extra>";
  token["id"] = after;
  came["added_tokens"].push_back(token);
  const auto tokenizer = Tokenizer::open(dir.write("alone/tokenizer.json", came.dump()));
  CHECK(tokenizer.id("<extra>") == static_cast<int64_t>(after));
  tokenizer.save(dir / "saved");
  const auto written = Json::parse(read_file(dir / "saved/tokenizer.json"));
  CHECK(written["post_processor"] == came["post_processor"]);
  CHECK(written["added_tokens"] == came["added_tokens"]);
  const auto again = Tokenizer::open(dir / "saved");
  CHECK(again.id("<extra>") == static_cast<int64_t>(after));
  CHECK(again.size() == tokenizer.size());
  CHECK(again.fingerprint() == tokenizer.fingerprint());
}

TEST_CASE("text that spells a special token is ordinary text, and other added tokens are found in it",
          "[data][tokenizer]") {
  for (const auto& one : pipeline_reference()["cases"]) {
    const auto model = opened(one["tokenizer"]);
    for (const auto& token : one["tokenizer"]["added_tokens"]) {
      if (!token["special"].get<bool>() || token["content"] == "<unk>" || token["content"] == "[UNK]") continue;
      const auto spelled = token["content"].get<std::string>();
      INFO(one["name"] << " " << spelled);
      for (const auto& text : {spelled, "a " + spelled + " b"})
        for (const auto id : ids_of_spans(*model, text)) CHECK(id != token["id"].get<int32_t>());
    }
  }
  const auto model = opened(kind("added tokens"));
  const auto taken = ids_of_spans(*model, "a NEWTOK, newtok");
  CHECK(std::count_if(taken.begin(), taken.end(),
                      [&](int32_t id) { return model->pieces[static_cast<size_t>(id)] == "NewTok"; }) == 1);
  CHECK(model->pieces[static_cast<size_t>(taken.back())] == "newtok");
}

TEST_CASE("a text after another character has no mark before its first word", "[data][tokenizer]") {
  for (const std::string name :
       {"metaspace bpe always", "metaspace bpe first", "prepended bpe", "unigram", "byte bpe with a space"}) {
    INFO(name);
    const auto model = opened(kind(name));
    std::vector<int32_t> after, after_space;
    model->encode_after("the", after);
    model->encode_after(" the", after_space);
    CHECK(after_space == ids_of_spans(*model, "the"));
    CHECK(after != after_space);
    CHECK_FALSE(model->starts_word(after[0]));
    CHECK_FALSE(model->keeps_spaces());
  }
  CHECK(opened(kind("byte bpe"))->keeps_spaces());
}

TEST_CASE("a tokenizer.json that is damaged or of another kind is refused, naming the wrong part",
          "[data][tokenizer]") {
  const auto changed = [](const std::string& name, const char* pointer, const Json& value) {
    Json tokenizer = kind(name);
    tokenizer[Json::json_pointer(pointer)] = value;
    return refusal(tokenizer);
  };
  CHECK_THAT(changed("bert", "/normalizer/lowercase", 3),
             Catch::Contains("normalizer.lowercase is neither true nor false"));
  CHECK_THAT(changed("bert", "/normalizer/type", "Sing"),
             Catch::Contains("normalizer is of the kind 'Sing', a normalizer that Cloze does not support"));
  CHECK_THAT(changed("bert", "/pre_tokenizer/type", "UnicodeScripts"),
             Catch::Contains("pre_tokenizer is of the kind 'UnicodeScripts'"));
  CHECK_THAT(changed("bert", "/decoder/type", "CTC"), Catch::Contains("decodes speech"));
  CHECK_THAT(changed("bert", "/model/type", "Oracle"), Catch::Contains("model is of the kind 'Oracle'"));
  CHECK_THAT(changed("bert", "/model/vocab/the", 1000000000), Catch::Contains("gives 'the' the id 1000000000"));
  CHECK_THAT(changed("bert", "/model/vocab/the", -1), Catch::Contains("not a whole number from 0"));
  CHECK_THAT(changed("bert", "/model/vocab/the", 1), Catch::Contains("the id 1"));
  CHECK_THAT(changed("bert", "/model/vocab", "x"), Catch::Contains("model.vocab is not an object of tokens and ids"));
  CHECK_THAT(changed("bert", "/model", nullptr), Catch::Contains("model is not an object with a vocabulary"));
  CHECK_THAT(changed("added tokens", "/added_tokens/6/id", 3), Catch::Contains("the id 3"));
  // What a token of the vocabulary has under another id would be read as one of the two.
  Json twice = kind("bert");
  const auto added = twice["added_tokens"][0];
  const auto spelled = "'" + added["content"].get<std::string>() + "'";
  const auto own = " the id " + added["id"].dump() + " already; give it one id of its own";
  const auto the = twice["model"]["vocab"]["the"].dump();
  REQUIRE(twice["model"]["vocab"][added["content"].get<std::string>()] == added["id"]);
  CHECK(refusal(twice) == "nothing");
  twice["added_tokens"][0]["id"] = twice["model"]["vocab"]["the"];
  CHECK_THAT(refusal(twice), Catch::Contains("added_tokens gives " + spelled + " the id " + the +
                                             ", which 'the' has, and it has" + own));
  const auto beyond = twice["model"]["vocab"].size();
  twice["added_tokens"][0]["id"] = beyond;
  CHECK_THAT(refusal(twice), Catch::Contains("added_tokens gives " + spelled + " the id " + std::to_string(beyond) +
                                             ", and it has" + own));
  twice["added_tokens"][0] = added;
  for (int i = 0; i < 2; ++i) {
    auto fresh = added;
    fresh["content"] = "fresh";
    fresh["id"] = beyond + static_cast<size_t>(i);
    twice["added_tokens"].push_back(fresh);
  }
  CHECK_THAT(refusal(twice), Catch::Contains("gives 'fresh' the id " + std::to_string(beyond + 1) +
                                             ", and it has the id " + std::to_string(beyond) + " already"));
  CHECK_THAT(changed("added tokens", "/added_tokens/6/content", 3),
             Catch::Contains("added_tokens[6].content is not a text"));
  CHECK_THAT(changed("suffix bpe", "/model/dropout", 0.5), Catch::Contains("dropout is 0.5"));
  CHECK_THAT(changed("suffix bpe", "/model/merges/0", Json::array({"a"})), Catch::Contains("[0] is not two tokens"));
  CHECK_THAT(changed("suffix bpe", "/model/merges/0", Json::array({"a", "qqq"})),
             Catch::Contains("or their concatenation is not in the vocabulary"));
  CHECK_THAT(changed("prefix bpe", "/model/merges/0", Json::array({"a", "b"})),
             Catch::Contains("does not start with the prefix '@@'"));
  CHECK_THAT(changed("split bpe", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "("),
             Catch::Contains("not a valid Oniguruma expression"));
  CHECK_THAT(changed("split bpe", "/pre_tokenizer/pretokenizers/0/behavior", "Eaten"),
             Catch::Contains("it can be Removed, Isolated"));
  CHECK_THAT(changed("metaspace bpe first", "/pre_tokenizer/replacement", "ab"), Catch::Contains("not one character"));
  CHECK_THAT(changed("unigram", "/model/unk_id", 70000),
             Catch::Contains("model.unk_id is 70000, not a whole number from 0 to"));
  CHECK_THAT(changed("unigram", "/model/vocab/3", "x"), Catch::Contains("[3] is not a piece and its score"));
  CHECK_THAT(changed("unigram", "/normalizer/normalizers/0/precompiled_charsmap", "!"),
             Catch::Contains("is not base64"));
  CHECK_THAT(changed("unigram", "/normalizer/normalizers/0/precompiled_charsmap", "AAAA"),
             Catch::Contains("is not a table of SentencePiece"));
  CHECK_THAT(changed("byte bpe", "/post_processor/type", "Hat"),
             Catch::Contains("a post-processor that Cloze does not support"));
  Json nested = kind("bert")["normalizer"];
  for (int i = 0; i < 100; ++i) nested = {{"type", "Sequence"}, {"normalizers", {nested}}};
  CHECK_THAT(changed("bert", "/normalizer", nested), Catch::Contains("is a sequence within 16 others"));
  TempDir dir;
  CHECK_THROWS_WITH(
      Tokenizer::open(dir.write("a/tokenizer.json", "[")),
      Catch::Contains("a/tokenizer.json: is not a JSON object (line 1, column 2: the text ends in the middle); "
                      "it is damaged"));
}

TEST_CASE("a word that a model cannot encode gives an error if there is no unknown token", "[data][tokenizer]") {
  Json tokenizer = kind("wordlevel");
  tokenizer["model"]["unk_token"] = "nowhere";
  CHECK_THROWS_WITH(ids_of_spans(*opened(tokenizer), "xylophone"),
                    Catch::Contains("does not know the word 'xylophone'"));
  tokenizer = kind("unigram");
  tokenizer["model"]["unk_id"] = nullptr;
  CHECK_THROWS_WITH(ids_of_spans(*opened(tokenizer), "\u4E2D"), Catch::Contains("its model has no unk_id"));
}

TEST_CASE("damaged values of a tokenizer.json never crash", "[data][tokenizer]") {
  auto stream = Rng(6).stream("fuzz");
  const std::vector<Json> values{
      nullptr,          true,          -1, 5, 1e300, uint64_t{18446744073709551615u}, "", "x", "\u2581", Json::array(),
      Json::array({1}), Json::object()};
  const std::string text = "the cat [MASK] \u4E2D\u6587 caf\u00E9 1,2 \xFF";
  for (const auto& one : pipeline_reference()["cases"]) {
    Json small = one["tokenizer"];
    const auto flat = small.flatten();
    std::vector<std::string> pointers;
    for (const auto& [pointer, value] : flat.items())
      if (!pointer.starts_with("/model/vocab") && !pointer.starts_with("/model/merges")) pointers.push_back(pointer);
    for (int i = 0; i < 12; ++i) {
      Json broken = small;
      auto pointer = Json::json_pointer(pointers[stream.below(pointers.size())]);
      if (stream.below(3) == 0 && !pointer.parent_pointer().empty()) pointer = pointer.parent_pointer();
      broken[pointer] = values[stream.below(values.size())];
      INFO(one["name"] << " " << pointer << " = " << broken[pointer]);
      try {
        const auto model = opened(broken);
        const auto ids = ids_of_spans(*model, text);
        model->encode_with_offsets(text);
        model->decode(std::vector<int64_t>(ids.begin(), ids.end()));
        model->files();
      } catch (const DataError& e) {
        CHECK(std::string(e.what()).size() > 20);
      }
    }
    // A normalisation table with changed bytes.
    if (one["name"] != "unigram") continue;
    auto& map = small["normalizer"]["normalizers"][0]["precompiled_charsmap"].get_ref<std::string&>();
    for (int i = 0; i < 300; ++i) {
      Json broken = small;
      auto& bytes = broken["normalizer"]["normalizers"][0]["precompiled_charsmap"].get_ref<std::string&>();
      for (int k = 0; k < 4; ++k) bytes[stream.below(map.size())] = "ABCDwxyz0189+/"[stream.below(14)];
      try {
        ids_of_spans(*opened(broken), text + "\u00C5\uFF21\uFB01e\u0301\t");
      } catch (const DataError&) {
      }
    }
  }
}
