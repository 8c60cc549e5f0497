// What tokenizer_config.json says over a tokenizer.json. Ids are those of AutoTokenizer of transformers 5.23.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/log.h"
#include "data/tokenizer.h"
#include "data/tokenizers/byte_bpe.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using nlohmann::json;

namespace {

json wordpiece_json() {
  const auto words = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "The", "cafe", "caf\u00E9", "\u4E2D\u6587"};
  json vocabulary = json::object();
  for (const auto* word : words) vocabulary[word] = vocabulary.size();
  return {{"normalizer", {{"type", "BertNormalizer"}, {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocabulary}}}};
}

json unigram_json(const json& normalizer) {
  const json metaspace{{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", true}};
  json vocabulary = json::array();
  for (const auto* piece : {"<pad>", "<unk>", "\u2581the", "the", "\u2581The",
                            "\u2581"
                            "cafe",
                            "\u2581"
                            "caf\u00E9"})
    vocabulary.push_back(json::array({piece, -1}));
  return {{"normalizer", normalizer},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace}}}},
          {"decoder", metaspace},
          {"model", {{"type", "Unigram"}, {"unk_id", 1}, {"vocab", vocabulary}}}};
}

json bytes_json(bool space) {
  json vocabulary = json::object();
  for (int b = 0; b < 256; ++b) vocabulary[byte_symbol(static_cast<uint8_t>(b))] = b;
  return {{"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", space}, {"trim_offsets", true}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", json::array()}}}};
}

json replace(const std::string& text) {
  return {{"type", "Replace"}, {"pattern", {{"String", text}}}, {"content", "\""}};
}

/// The steps of ALBERT's class by default.
json albert_steps() {
  json steps{replace("``"), replace("''")};
  for (const auto* kind : {"NFKD", "StripAccents", "Lowercase"}) steps.push_back({{"type", kind}});
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

/// Ids of a text by a folder of these files; the same by the folder that its tokenizer is saved to.
std::vector<int32_t> ids_by(const TempDir& dir, const json& tokenizer, const json& config, const std::string& model,
                            const std::string& text) {
  for (const auto* folder : {"a", "saved", "exported"}) std::filesystem::remove_all(dir / folder);
  dir.write("a/tokenizer.json", tokenizer.dump());
  dir.write("a/config.json", model);
  if (!config.is_null()) dir.write("a/tokenizer_config.json", config.dump());
  const auto opened = Tokenizer::open(dir / "a");
  opened.save(dir / "saved");
  const auto again = Tokenizer::open(dir / "saved");
  CHECK(again.fingerprint() == opened.fingerprint());
  CHECK(again.encode(text) == opened.encode(text));
  again.save(dir / "exported", TextReader{.kind = "bert"});
  CHECK(Tokenizer::open(dir / "exported").encode(text) == opened.encode(text));
  std::filesystem::remove(dir / "exported/cloze_tokenizer.json");  // by the files of transformers alone
  dir.write("exported/config.json", model);
  CHECK(Tokenizer::open(dir / "exported").encode(text) == opened.encode(text));
  return opened.encode(text);
}

using Ids = std::vector<int32_t>;

}  // namespace

TEST_CASE("tokenizer_config.json decides on case, accents and ideographs of a BERT's tokenizer.json",
          "[data][tokenizer]") {
  TempDir dir;
  const std::string bert = R"({"model_type": "bert"})", text = "The caf\u00E9 \u4E2D\u6587";
  const auto ids = [&](const json& config, const std::string& model) {
    return ids_by(dir, wordpiece_json(), config, model, text);
  };
  CHECK(ids({{"do_lower_case", true}}, bert) == Ids{5, 7, 1, 1});
  CHECK(ids({{"do_lower_case", false}}, bert) == Ids{6, 8, 1, 1});
  CHECK(ids({{"strip_accents", false}}, bert) == Ids{5, 8, 1, 1});
  CHECK(ids({{"do_lower_case", false}, {"strip_accents", true}}, bert) == Ids{6, 7, 1, 1});
  CHECK(ids({{"tokenize_chinese_chars", false}}, bert) == Ids{5, 7, 9});
  // The class is that of the file, else of the model; a generic one takes tokenizer.json as it is.
  CHECK(ids({{"do_lower_case", false}, {"tokenizer_class", "DistilBertTokenizerFast"}}, bert) == Ids{6, 8, 1, 1});
  CHECK(ids({{"do_lower_case", false}, {"tokenizer_class", "PreTrainedTokenizerFast"}}, bert) == Ids{5, 7, 1, 1});
  CHECK(ids({{"do_lower_case", false}}, R"({"model_type": "modernbert"})") == Ids{5, 7, 1, 1});
  CHECK(ids({{"do_lower_case", false}}, R"({"model_type": "gpt2", "tokenizer_class": "BertTokenizer"})") ==
        Ids{6, 8, 1, 1});
}

TEST_CASE(
    "the defaults of its class come before a tokenizer.json where tokenizer_config.json says nothing, and are said",
    "[data][tokenizer]") {
  TempDir dir;
  auto cased = wordpiece_json();
  cased["normalizer"]["lowercase"] = false;
  set_log_file(dir / "log.txt");
  CHECK(ids_by(dir, cased, nullptr, R"({"model_type": "bert"})", "The") == Ids{5});
  CHECK(ids_by(dir, bytes_json(true), {{"tokenizer_class", "RobertaTokenizer"}}, "{}", "a") == Ids{'a'});
  auto steps = wordpiece_json();
  steps["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFKC"}}, steps["normalizer"]}}};
  CHECK(ids_by(dir, steps, {{"do_lower_case", false}}, R"({"model_type": "bert"})", "\uFF34he") == Ids{6});
  set_log_file("");
  const auto log = read_file(dir / "log.txt");
  CHECK_THAT(log, Catch::Contains("a/tokenizer.json: BertTokenizer comes before it, as in transformers, with its "
                                  "defaults: lowercase is true (here false), strip_accents is true (here false)"));
  CHECK_THAT(log,
             Catch::Contains("RobertaTokenizer comes before it, as in transformers, with tokenizer_config.json and "
                             "its defaults: add_prefix_space is false (here true)"));
  CHECK_THAT(log, Catch::Contains("a/tokenizer.json: has the steps NFKC, BertNormalizer, BertPreTokenizer, which "
                                  "BertTokenizer of transformers 5 replaces by its own (BertNormalizer, "
                                  "BertPreTokenizer); Cloze takes those of the file"));
}

TEST_CASE("tokenizer_config.json decides on the space before a text, whatever tokenizer.json has",
          "[data][tokenizer]") {
  TempDir dir;
  const std::string gpt2 = R"({"model_type": "gpt2"})", roberta = R"({"model_type": "xlm-roberta"})";
  CHECK(ids_by(dir, bytes_json(false), {{"add_prefix_space", true}}, gpt2, "a") == Ids{' ', 'a'});
  CHECK(ids_by(dir, bytes_json(true), {{"add_prefix_space", false}}, gpt2, "a") == Ids{'a'});
  CHECK(ids_by(dir, unigram_json(nullptr), {{"add_prefix_space", false}}, roberta, "the the") == Ids{3, 3});
  CHECK(ids_by(dir, unigram_json(nullptr), {{"add_prefix_space", true}}, roberta, "the the") == Ids{2, 2});
}

TEST_CASE("tokenizer_config.json decides on case and accents of an ALBERT's tokenizer.json", "[data][tokenizer]") {
  TempDir dir;
  const auto ids = [&](const json& config, const json& steps) {
    return ids_by(dir, unigram_json(steps), config, R"({"model_type": "albert"})", "The caf\u00E9");
  };
  CHECK(ids(json::object(), albert_steps()) == Ids{2, 5});
  CHECK(ids({{"do_lower_case", false}}, albert_steps()) == Ids{4, 5});
  CHECK(ids({{"keep_accents", true}}, albert_steps()) == Ids{2, 6});
  const json bare{{"type", "Sequence"}, {"normalizers", {replace("``"), replace("''")}}};
  CHECK(ids(json::object(), bare) == Ids{2, 5});
  // Accents are stripped first: what they are decomposed to is lower-cased.
  auto lower = bare;
  lower["normalizers"].push_back({{"type", "Lowercase"}});
  CHECK(ids_by(dir, unigram_json(lower), json::object(), R"({"model_type": "albert"})", "\U0001D413he") == Ids{2});
}

TEST_CASE("a SentencePiece file alone is read as in training, which is said with what transformers does",
          "[data][tokenizer]") {
  TempDir dir;
  dir.write("a/spiece.model", read_file(SOURCE_DIR "/tests/data/tokenizers/families/albert.model"));
  dir.write("a/config.json", R"({"model_type": "albert"})");
  set_log_file(dir / "log.txt");
  Tokenizer::open(dir / "a").save(dir / "run");
  set_log_file("");
  CHECK_THAT(read_file(dir / "log.txt"),
             Catch::Contains("a/spiece.model: SentencePiece cuts texts, as in the training of the published models; "
                             "AlbertTokenizer of transformers 5 departs from it"));
  set_log_file(dir / "quiet.txt");
  Tokenizer::open(dir / "run");
  set_log_file("");
  CHECK(read_file(dir / "quiet.txt").find("SentencePiece") == std::string::npos);
}

TEST_CASE(
    "ids of the beginning and the end are those of the class, and T5's, mBART's and XLM-R's frames are made of them",
    "[data][tokenizer]") {
  TempDir dir;
  const std::string fixtures = SOURCE_DIR "/tests/data/tokenizers/families/";
  const auto opened = [&](const std::string& model, const json& config) {
    std::filesystem::remove_all(dir / "a");
    dir.write("a/spiece.model", read_file(fixtures + model + ".model"));
    dir.write("a/tokenizer_config.json", config.dump());
    return Tokenizer::open(dir / "a");
  };
  const auto albert = opened("albert", {{"tokenizer_class", "AlbertTokenizer"}});
  CHECK(albert.piece(albert.special().bos) == "[CLS]");
  CHECK(albert.piece(albert.special().eos) == "[SEP]");
  albert.save(dir / "out", TextReader{.kind = "albert"});
  CHECK(json::parse(read_file(dir / "out/tokenizer_config.json"))["eos_token"] == "[SEP]");
  const json other{{"sep_token", "\u2581the"}, {"cls_token", "\u2581the"}};
  for (const auto& [name, model, frame] :
       {std::tuple("T5Tokenizer", "t5", "</s>"), std::tuple("PegasusTokenizer", "t5", "</s>"),
        std::tuple("MBartTokenizer", "fairseq", "</s>en_XX"), std::tuple("XLMRobertaTokenizer", "fairseq", "<s></s>"),
        std::tuple("CamembertTokenizer", "fairseq", "<s></s>")}) {
    INFO(name);
    auto config = other;
    config["tokenizer_class"] = name;
    const auto tokenizer = opened(model, config);
    std::string spelled;
    const auto around = tokenizer.frame();
    for (const auto* ids : {&around.before, &around.after})
      for (const auto id : *ids) spelled += tokenizer.piece(id);
    CHECK(spelled == frame);
  }
}
