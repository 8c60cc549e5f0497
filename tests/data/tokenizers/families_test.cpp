// The tokenizers of published families of models. Fixtures and expected ids: make_families.py.
#include "core/contains.h"
#include "data/tokenizers/families.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "data/tokenizer.h"
#include "core/log.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using nlohmann::json;

namespace {

const std::string fixtures = SOURCE_DIR "/tests/data/tokenizers/families/";

std::string model(const std::string& name) { return read_file(fixtures + name + ".model"); }

/// Ids of one text or two, with special tokens as in transformers.
std::vector<int64_t> framed(const Tokenizer& tokenizer, const std::string& text, const std::string* second = nullptr) {
  const auto frame = tokenizer.frame();
  auto ids = frame.before;
  for (const auto id : tokenizer.encode(text)) ids.push_back(id);
  if (second) {
    ids.insert(ids.end(), frame.between.begin(), frame.between.end());
    for (const auto id : tokenizer.encode(*second)) ids.push_back(id);
  }
  ids.insert(ids.end(), frame.after.begin(), frame.after.end());
  return ids;
}

}  // namespace

TEST_CASE("each family's tokenizer has the ids, special tokens and frames of its published code", "[data][tokenizer]") {
  TempDir dir;
  const auto expected = json::parse(read_file(fixtures + "expected.json"));
  const auto lines = expected["lines"].get<std::vector<std::string>>();
  REQUIRE(expected["families"].size() == 11);
  for (const auto& [name, family] : expected["families"].items()) {
    INFO(name);
    dir.write(name + "/" + family["file"].get<std::string>(), model(family["model"]));
    dir.write(name + "/tokenizer_config.json", family["config"].dump());
    const auto opened = Tokenizer::open(dir / name);
    opened.save(dir / (name + "-saved"));
    for (const auto& tokenizer : {opened, Tokenizer::open(dir / (name + "-saved"))}) {
      CHECK(tokenizer.size() == family["size"]);
      for (const auto& [piece, id] : family["special"].items()) CHECK(tokenizer.id(piece) == id.get<int64_t>());
      for (size_t i = 0; i < lines.size(); ++i) {
        INFO("'" << lines[i] << "'");
        const auto wanted = family["ids"][i].get<std::vector<int32_t>>();
        CHECK(tokenizer.encode(lines[i]) == wanted);
        std::vector<int32_t> placed;
        for (const auto& piece : tokenizer.encode_with_offsets(lines[i])) placed.push_back(piece.id);
        CHECK(placed == wanted);
      }
      CHECK(framed(tokenizer, lines[0]) == family["single"].get<std::vector<int64_t>>());
      CHECK(framed(tokenizer, lines[0], &lines[1]) == family["pair"].get<std::vector<int64_t>>());
      CHECK(tokenizer.fingerprint() == opened.fingerprint());
    }
  }
}

TEST_CASE(
    "the model's config.json selects the family if no tokenizer class is named, and an unknown one is refused by name",
    "[data][tokenizer]") {
  TempDir dir;
  dir.write("a/sentencepiece.bpe.model", model("fairseq"));
  dir.write("a/config.json", R"({"model_type": "xlm-roberta"})");
  const auto tokenizer = Tokenizer::open(dir / "a");
  CHECK(tokenizer.piece(1) == "<pad>");
  CHECK(tokenizer.special().mask == tokenizer.size() - 1);
  CHECK(tokenizer.special().bos == 0);
  dir.write("b/spiece.model", model("fairseq"));
  dir.write("b/tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  CHECK_THROWS_WITH(
      Tokenizer::open(dir / "b"),
      Catch::Contains("belongs to 'LlamaTokenizer', whose ids Cloze does not know; it knows those of bert, roberta"));
  dir.write("c/spiece.model", model("t5"));
  dir.write("c/config.json", R"({"model_type": "mbart"})");
  CHECK_THROWS_WITH(
      Tokenizer::open(dir / "c"),
      Catch::Contains("its unknown piece is 2; it is not the SentencePiece file of a tokenizer of mbart"));
  dir.write("d/spiece.model", model("t5"));
  dir.write("d/tokenizer_config.json", R"({"tokenizer_class": "PegasusTokenizer", "offset": 0})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "d"),
                    Catch::Contains("offset is 0; Cloze supports PEGASUS with the offset 103 only"));
}

TEST_CASE("XLNet and ALBERT keep accents and case if their folder says so, and tokens keep their offsets",
          "[data][tokenizer]") {
  TempDir dir;
  dir.write("a/spiece.model", model("xlnet"));
  dir.write("a/tokenizer_config.json",
            R"({"tokenizer_class": "XLNetTokenizer", "keep_accents": true, "do_lower_case": true})");
  const auto kept = Tokenizer::open(dir / "a");
  CHECK(kept.piece(kept.encode("caf\u00E9")[0]) == "\u2581caf\u00E9");
  CHECK(kept.encode("THE CAT") == kept.encode("the cat"));
  dir.write("b/spiece.model", model("xlnet"));
  dir.write("b/tokenizer_config.json", R"({"tokenizer_class": "XLNetTokenizer"})");
  const auto tokenizer = Tokenizer::open(dir / "b");
  CHECK(tokenizer.fingerprint() != kept.fingerprint());
  std::string offsets;
  for (const auto& token : tokenizer.encode_with_offsets("the  na\u00EFve 99, x"))
    offsets += std::to_string(token.begin) + ".." + std::to_string(token.end) + " ";
  CHECK(offsets.starts_with("0..3 "));
  CHECK(offsets.find(" 14..15 ") != std::string::npos);  // the comma after the digits
}

TEST_CASE("a model's tokenizer gets no token that the model lacks, and a missing one is reported where it is needed",
          "[data][tokenizer]") {
  TempDir dir;
  json vocabulary = json::object();
  for (int b = 0; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    static int next = 256;
    const int code = printable ? b : next++;
    vocabulary[code < 0x80
                   ? std::string(1, static_cast<char>(code))
                   : std::string{static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))}] = b;
  }
  vocabulary["<|endoftext|>"] = 256;
  dir.write("gpt2/vocab.json", vocabulary.dump());
  dir.write("gpt2/merges.txt", "#version: 0.2\n");
  dir.write("gpt2/config.json", R"({"model_type": "gpt2", "vocab_size": 257})");
  dir.write("gpt2/tokenizer_config.json", R"({"model_max_length": 1024})");
  const auto tokenizer = Tokenizer::open(dir / "gpt2");
  CHECK(tokenizer.size() == 257);
  CHECK(tokenizer.belongs_to_model());
  CHECK(tokenizer.special().pad == -1);
  CHECK(tokenizer.special().mask == -1);
  CHECK(tokenizer.special().filler() == 256);
  CHECK(tokenizer.special().eos == 256);
  CHECK(framed(tokenizer, "a") == std::vector<int64_t>{tokenizer.encode("a")[0]});
  const auto more = tokenizer.with_special_tokens();
  CHECK(more.size() == 259);
  CHECK(more.special().pad == 257);
  CHECK(more.special().mask == 258);
  more.save(dir / "more");
  CHECK(Tokenizer::open(dir / "more").special().mask == 258);
  // Added tokens have the ids in their files.
  dir.write("gpt2/added_tokens.json", R"({"[PAD]": 257})");
  dir.write("gpt2/special_tokens_map.json", R"({"pad_token": "[PAD]"})");
  CHECK(Tokenizer::open(dir / "gpt2").special().pad == 257);
  dir.write("gpt2/added_tokens.json", R"({"[PAD]": 300})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "gpt2"),
                    Catch::Contains("the added token '[PAD]' has id 300, the vocabulary ends at 256"));
}

TEST_CASE("a tokenizer saved by an earlier version opens with its appended tokens and its fingerprint",
          "[data][tokenizer]") {
  TempDir dir;
  // As saved by version 1: [CLS] and [MASK], which the model lacks, follow its pieces.
  dir.write("old/spiece.model", model("t5"));
  const auto size = Tokenizer::open(dir / "old").size();
  json facts{{"format", "cloze-tokenizer"},
             {"version", 1},
             {"do_lower_case", true},
             {"split_digit_commas", true},
             {"keep_accents", false},
             {"special", {{"pad", 0}, {"unk", 2}, {"cls", size}, {"sep", 1}, {"mask", size + 1}}}};
  dir.write("old/cloze_tokenizer.json", facts.dump());
  const auto tokenizer = Tokenizer::open(dir / "old");
  CHECK(tokenizer.size() == size + 2);
  CHECK(tokenizer.piece(size) == "[CLS]");
  CHECK(tokenizer.special().mask == size + 1);
  CHECK(tokenizer.encode("THE CAT") == tokenizer.encode("the cat"));
  // Version 1 hashed only the file and the case, so that tokenizers with different digit rules had one fingerprint.
  facts["split_digit_commas"] = false;
  facts["keep_accents"] = true;
  dir.write("plain/spiece.model", model("t5"));
  dir.write("plain/cloze_tokenizer.json", facts.dump());
  const auto plain = Tokenizer::open(dir / "plain");
  CHECK(plain.fingerprint() != tokenizer.fingerprint());
  CHECK(tokenizer.has_fingerprint(tokenizer.fingerprint()));
  CHECK_FALSE(plain.has_fingerprint(tokenizer.fingerprint()));
  // The version 1 fingerprint of ALBERT's tokenizer is still accepted, although rules are hashed now.
  dir.write("albert/spiece.model", model("albert"));
  facts["split_digit_commas"] = true;
  facts["keep_accents"] = false;
  facts["special"] = {{"pad", 0}, {"unk", 1}, {"cls", 2}, {"sep", 3}, {"mask", 4}};
  dir.write("albert/cloze_tokenizer.json", facts.dump());
  const auto albert = Tokenizer::open(dir / "albert");
  CHECK(albert.fingerprint() != "0cffdb099aa84417");
  CHECK(albert.has_fingerprint("0cffdb099aa84417"));
}

TEST_CASE("exported files have the special tokens, lengths, segments and frames of the model that reads the texts",
          "[data][tokenizer]") {
  TempDir dir;
  dir.write("xlnet/spiece.model", model("xlnet"));
  dir.write("xlnet/config.json", R"({"model_type": "xlnet"})");
  const auto tokenizer = Tokenizer::open(dir / "xlnet");
  const auto written = [&](const TextReader& reader) {
    tokenizer.save(dir / "out", reader);
    const auto config = json::parse(read_file(dir / "out/tokenizer_config.json"));
    const auto whole = json::parse(read_file(dir / "out/tokenizer.json"));
    std::string found = config["model_input_names"].dump() + " " + config.value("model_max_length", json()).dump() +
                        " " + config.value("padding_side", "right") + ": ";
    for (const auto& part : whole["post_processor"]["pair"])
      for (const auto& [what, token] : part.items())
        found += token["id"].get<std::string>() + "/" + std::to_string(token["type_id"].get<int>()) + " ";
    return found;
  };
  CHECK(written({.kind = "xlnet"}) ==
        R"(["input_ids","token_type_ids","attention_mask"] null left: A/0 <sep>/0 B/1 <sep>/1 <cls>/2 )");
  CHECK(written({.kind = "bert", .max_length = 512}) ==
        R"(["input_ids","token_type_ids","attention_mask"] 512 right: <cls>/0 A/0 <sep>/0 B/1 <sep>/1 )");
  CHECK(written({.kind = "roberta", .segments = false}) ==
        R"(["input_ids","attention_mask"] null right: <cls>/0 A/0 <sep>/0 <sep>/0 B/0 <sep>/0 )");
  CHECK(written({.kind = "bart", .segments = false, .end = 2}) ==
        R"(["input_ids","attention_mask"] null right: <cls>/0 A/0 </s>/0 </s>/0 B/0 </s>/0 )");
  CHECK(written({.kind = "t5", .segments = false}) ==
        R"(["input_ids","attention_mask"] null right: A/0 <sep>/0 B/0 <sep>/0 )");
  CHECK(written({.kind = "pegasus", .segments = false}) ==
        R"(["input_ids","attention_mask"] null right: A/0 B/0 <sep>/0 )");
  CHECK(written({.kind = "gpt2", .segments = false}) == R"(["input_ids","attention_mask"] null right: A/0 B/0 )");
  const auto config = json::parse(read_file(dir / "out/tokenizer_config.json"));
  CHECK(config["bos_token"] == "<s>");
  CHECK(config["eos_token"] == "</s>");
}

TEST_CASE("the original files of transformers are saved unchanged if they fit the model", "[data][tokenizer]") {
  TempDir dir;
  dir.write("a/sentencepiece.bpe.model", model("fairseq"));
  dir.write("a/tokenizer_config.json", R"({"tokenizer_class": "XLMRobertaTokenizer", "own": 1})");
  Tokenizer::open(dir / "a").save(dir / "made");
  auto whole = json::parse(read_file(dir / "made/tokenizer.json"));
  whole["post_processor"]["own"] = 2;
  dir.write("a/tokenizer.json", whole.dump());
  Tokenizer::open(dir / "a").save(dir / "run");
  const auto again = Tokenizer::open(dir / "run");
  CHECK(again.size() == Tokenizer::open(dir / "made").size());
  CHECK(again.special().mask == again.size() - 1);
  again.save(dir / "roberta", TextReader{.kind = "roberta"});
  CHECK(read_file(dir / "roberta/tokenizer.json") == whole.dump());
  CHECK(json::parse(read_file(dir / "roberta/tokenizer_config.json"))["own"] == 1);
  again.save(dir / "t5", TextReader{.kind = "t5", .segments = false});
  const auto framed_anew = json::parse(read_file(dir / "t5/tokenizer.json"));
  CHECK_FALSE(framed_anew["post_processor"].contains("own"));
  CHECK(framed_anew["model"] == whole["model"]);
}

TEST_CASE("the tokenizer of a reader of words has a space before the first one, and that of one that pads an id for it",
          "[data][tokenizer]") {
  TempDir dir;
  const auto level = [](bool space) {
    return json{{"type", "ByteLevel"}, {"add_prefix_space", space}, {"trim_offsets", true}, {"use_regex", true}};
  };
  json vocabulary = json::object();
  for (int b = 0, next = 256; b < 256; ++b) {
    const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    std::string piece;
    append_code_point(piece, printable ? b : next++);
    vocabulary[piece] = b;
  }
  vocabulary["<|endoftext|>"] = 256;
  const json model{{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}};
  const json end{{"id", 256},       {"content", "<|endoftext|>"}, {"single_word", false}, {"lstrip", false},
                 {"rstrip", false}, {"normalized", false},        {"special", true}};
  const json whole{{"version", "1.0"},
                   {"added_tokens", json::array({end})},
                   {"pre_tokenizer", level(false)},
                   {"post_processor", level(false)},
                   {"decoder", level(true)},
                   {"model", model}};
  for (const std::string files : {"vocab", "json"}) {
    INFO(files);
    dir.write(files + "/config.json", R"({"model_type": "gpt2"})");
    if (files == "json") dir.write("json/tokenizer.json", whole.dump());
    if (files == "vocab") dir.write("vocab/vocab.json", vocabulary.dump());
    if (files == "vocab") dir.write("vocab/merges.txt", "#version: 0.2\n");
    const auto tokenizer = Tokenizer::open(dir / files);
    const auto written = [&](const TextReader& reader) {
      std::filesystem::remove_all(dir / "out");
      tokenizer.save(dir / "out", reader);
      const auto config = json::parse(read_file(dir / "out/tokenizer_config.json")),
                 saved = json::parse(read_file(dir / "out/tokenizer.json"));
      CHECK(saved["pre_tokenizer"]["add_prefix_space"] == reader.words);
      if (files == "json") CHECK(saved["post_processor"]["add_prefix_space"] == reader.words);
      CHECK(config.value("add_prefix_space", false) == reader.words);
      // The program cuts words as before: each after a space.
      CHECK(Tokenizer::open(dir / "out").encode("a", /*inside=*/true) == tokenizer.encode("a", /*inside=*/true));
      return config;
    };
    CHECK(written({.kind = "gpt2", .segments = false, .words = true}).count("pad_token") == 0);
    CHECK(written({.kind = "gpt2", .segments = false, .pad = 256})["pad_token"] == "<|endoftext|>");
    CHECK(written({.kind = "gpt2", .segments = false, .pad = 256})["padding_side"] == "right");
  }
  // Steps that cut the text before bytes are read would have a space before each part.
  auto cut = whole;
  cut["pre_tokenizer"] = {{"type", "Sequence"},
                          {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, level(false)}}};
  dir.write("cut/config.json", R"({"model_type": "gpt2"})");
  dir.write("cut/tokenizer.json", cut.dump());
  set_log_file(dir / "log.txt");
  Tokenizer::open(dir / "cut").save(dir / "out", TextReader{.kind = "gpt2", .segments = false, .words = true});
  set_log_file("");
  CHECK_THAT(read_file(dir / "log.txt"), Catch::Contains("tokenizer.json cuts a text before its byte-level step"));
  CHECK(json::parse(read_file(dir / "out/tokenizer.json"))["pre_tokenizer"] == cut["pre_tokenizer"]);
}

TEST_CASE("an exported tokenizer.json has the rules of its SentencePiece model", "[data][tokenizer]") {
  TempDir dir;
  const auto written = [&](const std::string& name) {
    Tokenizer::open(fixtures + name + ".model").save(dir / name);
    return json::parse(read_file(dir / (name + "/tokenizer.json")));
  };
  const auto steps = [](const json& whole) {
    std::string found;
    for (const auto& step : whole["normalizer"]["normalizers"])
      found += step["type"].get<std::string>() +
               (step.contains("pattern") ? step["pattern"].begin().value().get<std::string>() : "") + "; ";
    return found;
  };
  const std::string trim = "Replace\\A +|[ \u2581]+\\z; Replace {2,}; ";
  const auto plain = written("fairseq"), suffix = written("suffix"), bare = written("bare"), bytes = written("bytes");
  CHECK(steps(plain) == trim + "Prepend; Replace ; ");
  CHECK(plain["pre_tokenizer"]["pretokenizers"][0]["behavior"] == "MergedWithNext");
  CHECK(steps(suffix) == trim + "Replace(?m)(?<=.)\\z; Replace ; ");
  CHECK(suffix["pre_tokenizer"].is_null());
  CHECK(plain["decoder"]["decoders"].back() == json{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  CHECK(suffix["decoder"]["decoders"].back()["type"] == "Fuse");
  CHECK(steps(bare) == "Replace ; ");  // neither an inserted space nor collapsed spaces
  CHECK(bare["decoder"]["decoders"].back()["type"] == "Fuse");
  CHECK(bare["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] == "<sym>|NEW");
  CHECK(bytes["model"]["byte_fallback"] == true);
  CHECK(bytes["model"]["ignore_merges"] == true);
  for (const auto& merge : bytes["model"]["merges"])
    CHECK(merge[0].get<std::string>() + merge[1].get<std::string>() != "<sym>");
}

TEST_CASE("an exported tokenizer.json gives the ids of its SentencePiece model", "[data][tokenizer]") {
  TempDir dir;
  const auto lines = json::parse(read_file(fixtures + "expected.json"))["lines"].get<std::vector<std::string>>();
  for (const std::string name : {"fairseq", "suffix", "bare", "bytes"}) {
    const auto tokenizer = Tokenizer::open(fixtures + name + ".model");
    tokenizer.save(dir / name);
    const auto read = Tokenizer::open(dir / (name + "/tokenizer.json"));
    for (const auto& line : lines) {
      INFO(name << ": '" << line << "'");
      CHECK(read.encode(line) == tokenizer.encode(line));
      const auto ids = tokenizer.encode(line);
      const std::vector<int64_t> list(ids.begin(), ids.end());
      if (contains(list, tokenizer.special().unk)) continue;  // left out, with or without its space
      CHECK(read.decode(list) == tokenizer.decode(list));
    }
  }
}

namespace {

/// A tokenizer.json as Cloze writes it for the SentencePiece file of a family.
json json_of_family(const TempDir& dir, const std::string& tokenizer_class) {
  dir.write("family/sentencepiece.bpe.model", model("fairseq"));
  dir.write("family/tokenizer_config.json", json{{"tokenizer_class", tokenizer_class}}.dump());
  Tokenizer::open(dir / "family").save(dir / "family-made");
  return json::parse(read_file(dir / "family-made/tokenizer.json"));
}

json saved_json(const TempDir& dir, const std::string& folder, const std::string& file, const TextReader& reader) {
  for (const auto* made : {"run", "out"}) std::filesystem::remove_all(dir / made);
  Tokenizer::open(dir / folder).save(dir / "run");
  Tokenizer::open(dir / "run").save(dir / "out", reader);
  return json::parse(read_file(dir / ("out/" + file)));
}

std::string single_of(const json& tokenizer) {
  std::string found;
  for (const auto& part : tokenizer["post_processor"]["single"])
    for (const auto& [what, token] : part.items()) found += token["id"].get<std::string>() + " ";
  return found;
}

}  // namespace

TEST_CASE("a tokenizer_config.json that names no class is saved with the one that its model implied",
          "[data][tokenizer]") {
  TempDir dir;
  dir.write("a/tokenizer.json", json_of_family(dir, "XLMRobertaTokenizer").dump());
  dir.write("a/tokenizer_config.json", R"({"model_max_length": 512})");
  dir.write("a/config.json", R"({"model_type": "xlm-roberta"})");
  const auto config = [&](const std::string& folder) {
    return saved_json(dir, folder, "tokenizer_config.json", {.kind = "roberta", .segments = false});
  };
  CHECK(config("a") == json{{"model_max_length", 512}, {"tokenizer_class", "XLMRobertaTokenizer"}});
  dir.write("a/config.json", R"({"model_type": "camembert"})");
  CHECK(config("a")["tokenizer_class"] == "CamembertTokenizer");
  dir.write("a/config.json", R"({"model_type": "roberta", "tokenizer_class": "XLMRobertaTokenizerFast"})");
  CHECK(config("a")["tokenizer_class"] == "XLMRobertaTokenizer");
  // Any class can read it where none is known, if it is told the special tokens.
  dir.write("a/config.json", R"({"model_type": "roberta", "tokenizer_class": "OtherTokenizer"})");
  CHECK(config("a")["tokenizer_class"] == "PreTrainedTokenizerFast");
  CHECK(config("a")["mask_token"] == "<mask>");
  CHECK(config("a")["model_max_length"] == 512);
  CHECK(config("a")["model_input_names"] == json({"input_ids", "attention_mask"}));
  dir.write("a/tokenizer_config.json", R"({"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": "x.Y"}})");
  CHECK(config("a") == json{{"tokenizer_class", "OwnTokenizer"}});
}

TEST_CASE("a tokenizer.json that came alone is saved with the class that its model implied, which frames it anew",
          "[data][tokenizer]") {
  TempDir dir;
  auto whole = json_of_family(dir, "MBartTokenizer");
  dir.write("a/config.json", R"({"model_type": "mbart"})");
  for (auto& part : whole["post_processor"]["single"])  // as of a tokenizer of French, which transformers overrules
    if (part.contains("SpecialToken") && part["SpecialToken"]["id"] == "en_XX") part["SpecialToken"]["id"] = "fr_XX";
  dir.write("a/tokenizer.json", whole.dump());
  const TextReader reader{.kind = "mbart", .segments = false, .max_length = 64};
  const auto config = saved_json(dir, "a", "tokenizer_config.json", reader);
  CHECK(config["tokenizer_class"] == "MBartTokenizer");
  CHECK(config["model_max_length"] == 64);
  CHECK(read_file(dir / "out/tokenizer.json") == read_file(dir / "a/tokenizer.json"));
}

TEST_CASE("the class that config.json names decides the ids, and one that Cloze does not have is refused by name",
          "[data][tokenizer]") {
  TempDir dir;
  dir.write("minilm/sentencepiece.bpe.model", model("fairseq"));
  dir.write("minilm/config.json", R"({"model_type": "bert", "tokenizer_class": "XLMRobertaTokenizer"})");
  const auto tokenizer = Tokenizer::open(dir / "minilm");
  CHECK(tokenizer.piece(0) == "<s>");
  CHECK(tokenizer.special().mask == tokenizer.size() - 1);
  // tokenizer_config.json comes first.
  dir.write("minilm/tokenizer_config.json", R"({"tokenizer_class": "CamembertTokenizer"})");
  CHECK(Tokenizer::open(dir / "minilm").piece(0) == "<s>NOTUSED");
  dir.write("words/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  for (const std::string name : {"BertJapaneseTokenizer", "HerbertTokenizerFast", "PhobertTokenizer"}) {
    dir.write("words/config.json", json{{"model_type", "bert"}, {"tokenizer_class", name}}.dump());
    CHECK_THROWS_WITH(Tokenizer::open(dir / "words"), Catch::Contains(name));
  }
}

TEST_CASE("a tokenizer that came with a model frames its texts as it did there, with another model as that one does",
          "[data][tokenizer]") {
  TempDir dir;
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  dir.write("chinese/vocab.txt", words);
  dir.write("chinese/config.json", R"({"model_type": "gpt2", "tokenizer_class": "BertTokenizer"})");
  CHECK(single_of(saved_json(dir, "chinese", "tokenizer.json", {.kind = "gpt2", .end = 0})) == "[CLS] A [SEP] ");
  CHECK(saved_json(dir, "chinese", "tokenizer_config.json", {.kind = "gpt2", .end = 0}).count("eos_token") == 0);
  CHECK(single_of(saved_json(dir, "chinese", "tokenizer.json", {.kind = "t5", .end = 3})) == "A [SEP] ");
  // A tokenizer.json has its frame itself, also where tokens are appended.
  dir.write("own/tokenizer.json", json_of_family(dir, "XLMRobertaTokenizer").dump());
  dir.write("own/config.json", R"({"model_type": "t5", "tokenizer_class": "RobertaTokenizer"})");
  CHECK(single_of(saved_json(dir, "own", "tokenizer.json", {.kind = "t5", .end = 2})) == "<s> A </s> ");
  CHECK(Tokenizer::open(dir / "own").frame(TextReader{.kind = "t5", .end = 5}).after == std::vector<int64_t>{2});
  Tokenizer::open(dir / "own").followed_by_sentinels(2).save(dir / "more", TextReader{.kind = "t5", .end = 2});
  const auto more = json::parse(read_file(dir / "more/tokenizer.json"));
  CHECK(single_of(more) == "<s> A </s> ");
  CHECK(more["added_tokens"].back()["content"] == "<extra_id_0>");
}

TEST_CASE("special tokens that a user added are found in texts and exported; others that a text spells are text",
          "[data][tokenizer]") {
  TempDir dir;
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nent\n<\n>\n[\n]\nsep\n";
  dir.write("a/vocab.txt", words);
  dir.write("a/config.json", R"({"model_type": "bert"})");
  dir.write("a/added_tokens.json", R"({"<ent>": 12})");
  dir.write("a/special_tokens_map.json", R"({"additional_special_tokens": ["<ent>", "[SEP]"], "sep_token": "[SEP]"})");
  const auto tokenizer = Tokenizer::open(dir / "a");
  const std::vector<int32_t> wanted{5, 12, 5, 9, 11, 10};
  CHECK(tokenizer.encode("a <ent>a [SEP]") == wanted);
  CHECK(tokenizer.is_special(12));
  const auto saved = saved_json(dir, "a", "tokenizer.json", {.kind = "bert"});
  CHECK(Tokenizer::open(dir / "run").encode("a <ent>a [SEP]") == wanted);
  CHECK(Tokenizer::open(dir / "run").fingerprint() == tokenizer.fingerprint());
  const auto last = saved["added_tokens"].back();
  CHECK(last["content"] == "<ent>");
  CHECK(last["special"] == true);
  CHECK(last["normalized"] == false);
  // The same with a tokenizer.json, and a token of the vocabulary itself.
  for (const auto* name : {"vocab.txt", "added_tokens.json"}) std::filesystem::remove(dir / (std::string("a/") + name));
  dir.write("a/tokenizer.json", saved.dump());
  CHECK(Tokenizer::open(dir / "a").encode("a <ent>a [SEP]") == wanted);
  Tokenizer::open(dir / "a").save(dir / "again");
  CHECK(Tokenizer::open(dir / "again").encode("a <ent>a [SEP]") == wanted);
  CHECK(Tokenizer::open(dir / "again").fingerprint() == Tokenizer::open(dir / "a").fingerprint());
  dir.write("b/vocab.txt", words + "<e1>\n");
  dir.write("b/tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "extra_special_tokens": ["<e1>"]})");
  CHECK(Tokenizer::open(dir / "b").encode("a<e1>") == std::vector<int32_t>{5, 12});
}

TEST_CASE("the mask of a byte-level tokenizer is exported with the space before it, and flags of a token are kept",
          "[data][tokenizer]") {
  TempDir dir;
  json vocabulary = json::object();
  for (int b = 0; b < 256; ++b) vocabulary[byte_symbol(static_cast<uint8_t>(b))] = b;
  vocabulary["<mask>"] = 256;
  vocabulary["<pad>"] = 257;
  dir.write("a/vocab.json", vocabulary.dump());
  dir.write("a/merges.txt", "#version: 0.2\n");
  dir.write("a/config.json", R"({"model_type": "roberta"})");
  dir.write("a/tokenizer_config.json",
            R"({"added_tokens_decoder": {"257": {"content": "<pad>", "special": true, "rstrip": true}}})");
  std::map<std::string, std::string> flags;
  const auto written = saved_json(dir, "a", "tokenizer.json", {.kind = "roberta"});
  for (const auto& token : written["added_tokens"])
    flags[token["content"]] = json{token["lstrip"], token["rstrip"], token["special"]}.dump();
  CHECK(flags["<mask>"] == "[true,false,true]");
  CHECK(flags["<pad>"] == "[false,true,true]");
}
