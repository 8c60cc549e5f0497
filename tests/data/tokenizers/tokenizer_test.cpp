#include "core/contains.h"
#include "data/tokenizer.h"

#include <sentencepiece_processor.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "core/random.h"
#include "data/prepare/train_tokenizer.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/wordpiece.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

TEST_CASE("BERT's basic tokenizer cleans, folds and splits", "[data][tokenizer]") {
  CHECK(basic_tokenize("Hello,  W\u00F6rld!\n", WordPieceRules::bert(true)) == " hello , world !");
  CHECK(basic_tokenize("Hello,  W\u00F6rld!\n", WordPieceRules::bert(false)) == " Hello , W\u00F6rld !");
  CHECK(basic_tokenize("\u4E2D\u6587ab", WordPieceRules::bert(true)) == " \u4E2D \u6587 ab");
  CHECK(basic_tokenize(std::string("a\0b\u200Bc\uFFFDd", 11), WordPieceRules::bert(true)) == " abcd");
  CHECK(basic_tokenize("\u039F\u0394\u039F\u03A3", WordPieceRules::bert(true)) ==
        " \u03BF\u03B4\u03BF\u03C2");  // a sigma at the end of a word
}

TEST_CASE("WordPiece matches the longest token first, and unknown words become [UNK]", "[data][tokenizer]") {
  const auto wordpiece =
      make_wordpiece("[UNK]\nun\n##aff\n##able\nunaff\nable\n,\n", "vocab.txt", WordPieceRules::bert(true));
  const auto encode = [&](const std::string& text) {
    std::vector<int32_t> ids;
    wordpiece->encode(text, ids);
    return ids;
  };
  CHECK(encode("unaffable, able") == std::vector<int32_t>{4, 3, 6, 5});
  CHECK(encode("unable xyz") == std::vector<int32_t>{1, 3, 0});
  CHECK(encode(std::string(201, 'u')) == std::vector<int32_t>{0});
  CHECK(encode("").empty());
}

TEST_CASE("a byte order mark is no part of the first token of a vocabulary", "[data][tokenizer]") {
  TempDir dir;
  const std::string vocabulary = "[UNK]\na\n##b\n";
  const auto plain = Tokenizer::open(dir.write("plain/vocab.txt", vocabulary));
  const auto marked = Tokenizer::open(dir.write("marked/vocab.txt", "\xEF\xBB\xBF" + vocabulary));
  CHECK(marked.piece(0) == "[UNK]");
  CHECK(marked.fingerprint() == plain.fingerprint());
  marked.save(dir / "saved");
  CHECK(Tokenizer::open(dir / "saved").encode("ab") == plain.encode("ab"));
}

TEST_CASE("broken vocabularies and models are refused with a message", "[data][tokenizer]") {
  TempDir dir;
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("a/vocab.txt", "[PAD]\nx\n")),
                    Catch::Contains("the vocabulary has no token [UNK]"));
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("b/vocab.txt", "[UNK]\nx\nx\n")),
                    Catch::Contains("vocab.txt:3: the token 'x' is a duplicate"));
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("c/vocab.txt", "")), Catch::Contains("is empty; it has no tokenizer"));
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("d/x.model", "no proto at all")),
                    Catch::Contains("is not a SentencePiece model, or it is damaged"));
  CHECK_THROWS_WITH(Tokenizer::open(dir / "none"), Catch::Contains("no such tokenizer"));
  CHECK_THROWS_WITH(Tokenizer::open(dir.path.string()), Catch::Contains("has no tokenizer (vocab.txt, spiece.model"));
}

TEST_CASE("special tokens that a vocabulary lacks are appended, and a saved tokenizer opens as it was",
          "[data][tokenizer]") {
  TempDir dir;
  const auto bare = Tokenizer::open(dir.write("vocab.txt", "[UNK]\na\n##b\nc\n"));
  CHECK(bare.size() == 4);
  CHECK(bare.special().mask == -1);
  const auto tokenizer = bare.with_special_tokens();
  CHECK(tokenizer.size() == 8);
  CHECK(tokenizer.piece(tokenizer.special().mask) == "[MASK]");
  CHECK(tokenizer.is_special(tokenizer.special().pad));
  CHECK_FALSE(tokenizer.starts_word(2));
  CHECK(tokenizer.decode(std::vector<int64_t>{1, 2, 3, tokenizer.special().sep}) == "ab c");
  tokenizer.save(dir / "saved");
  const auto again = Tokenizer::open(dir / "saved");
  CHECK(again.fingerprint() == tokenizer.fingerprint());
  CHECK(again.encode("AB c") == tokenizer.encode("AB c"));
  CHECK(again.size() == 8);
  CHECK(again.special().mask == 7);
  CHECK(again.with_sentinels(2).piece(9) == "[MASK]");
}

TEST_CASE("sentinels behind all tokens move no id, and a saved tokenizer opens with them", "[data][tokenizer]") {
  TempDir dir;
  const auto bare = Tokenizer::open(dir.write("vocab.txt", "[UNK]\na\n##b\nc\n")).with_special_tokens();
  const auto tokenizer = bare.followed_by_sentinels(3);
  CHECK(tokenizer.fingerprint() == bare.fingerprint());
  CHECK(tokenizer.encode("ab c") == bare.encode("ab c"));
  for (int64_t id = 0; id < bare.size(); ++id) CHECK(tokenizer.piece(id) == bare.piece(id));
  CHECK(tokenizer.special().mask == bare.special().mask);
  CHECK(tokenizer.sentinels() == std::vector<int64_t>{10, 9, 8});
  CHECK(tokenizer.is_special(9));
  CHECK(tokenizer.followed_by_sentinels(5).size() == tokenizer.size());
  tokenizer.save(dir / "saved");
  tokenizer.save(dir / "exported", TextReader{.kind = "t5"});
  for (const auto* folder : {"saved", "exported"}) {
    const auto again = Tokenizer::open(dir / folder);
    CHECK(again.fingerprint() == tokenizer.fingerprint());
    CHECK(again.sentinels() == tokenizer.sentinels());
    CHECK(again.special().mask == bare.special().mask);
    CHECK(again.size() == tokenizer.size());
  }
  // Sentinels of `prepare` follow the vocabulary, and where other tokens do so, these.
  CHECK(bare.with_sentinels(2).piece(4) == "<extra_id_1>");
  CHECK(tokenizer.with_sentinels(3).sentinels() == tokenizer.sentinels());
  dir.write("more/vocab.txt", "[UNK]\na\n##b\nc\n");
  dir.write("more/added_tokens.json", R"({"new": 4})");
  const auto more = Tokenizer::open(dir / "more").with_sentinels(2);
  CHECK(more.id("new") == 4);
  CHECK(more.sentinels() == std::vector<int64_t>{6, 5});
}

TEST_CASE("a SentencePiece model is trained in the process, with BERT's special tokens in front", "[data][tokenizer]") {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "the cat number " + std::to_string(i * 37 % 91) + " sat on mat " + std::to_string(i % 13) + ".\n";
  for (const std::string kind : {"unigram", "bpe"}) {
    PrepareOptions options;
    options.inputs = {dir.write("text.txt", text)};
    options.train_kind = choice_of<TokenizerKind>(kind);
    options.vocab_size = 60;
    options.threads = 1;
    train_tokenizer(options, {.documents = {Assignment::train}}, dir / kind);
    options.threads = 3;
    train_tokenizer(options, {.documents = {Assignment::train}}, dir / (kind + "-again"));
    CHECK(read_file(dir / (kind + "/spiece.model")) == read_file(dir / (kind + "-again/spiece.model")));
    const auto tokenizer = Tokenizer::open(dir / kind);
    CHECK(tokenizer.kind() == kind);
    CHECK(tokenizer.piece(0) == "[PAD]");
    CHECK(tokenizer.special().unk == 1);
    CHECK(tokenizer.special().cls == 2);
    CHECK(tokenizer.special().sep == 3);
    CHECK(tokenizer.special().mask == 4);
    // The text after a mask continues like a text after a word.
    const auto whole = tokenizer.encode("mat."), head = tokenizer.encode("mat"), dot = tokenizer.encode_after(".");
    CHECK(std::vector<int32_t>(whole.begin() + static_cast<std::ptrdiff_t>(head.size()), whole.end()) == dot);
    CHECK(tokenizer.encode(".") != dot);
    CHECK(tokenizer.encode_after(" sat") == tokenizer.encode("sat"));
    CHECK(tokenizer.encode_after("").empty());
    const auto ids = tokenizer.encode("the cat [MASK] sat");
    CHECK(!contains(ids, 4));  // text that spells a special token is ordinary text
    // Its words are separated by spaces; an unknown character is part of one.
    CHECK(tokenizer.encode_with_offsets("the mat. cat\u00E9 sat").back().word == 3);
    const auto cat = tokenizer.encode("the cat sat");
    CHECK(tokenizer.decode(std::vector<int64_t>(cat.begin(), cat.end())) == "the cat sat");
  }
}

TEST_CASE("ids equal those of the reference implementations on published vocabularies", "[data][tokenizer]") {
  const std::string folder = SOURCE_DIR "/../shared/data/tokenizers/";
  if (!std::filesystem::exists(folder + "expected-ids.jsonl")) {
    WARN("the published vocabularies are not next to this checkout; only the hand-worked cases above were tested");
    return;
  }
  TempDir dir;
  for (const auto* name : {"uncased", "cased"}) {
    std::filesystem::create_directories(dir / name);
    std::filesystem::copy_file(folder + "bert-base-" + name + "-vocab.txt", dir / (std::string(name) + "/vocab.txt"));
  }
  std::filesystem::create_directories(dir / "gpt2");
  std::filesystem::copy_file(folder + "gpt2-encoder.json", dir / "gpt2/vocab.json");
  std::filesystem::copy_file(folder + "gpt2-vocab.bpe", dir / "gpt2/merges.txt");
  const std::vector<std::pair<std::string, std::string>> models{
      {"bert_uncased", dir / "uncased"},
      {"bert_cased", dir / "cased"},
      {"gpt2", dir / "gpt2"},
      {"t5", folder + "t5-32000.model"},
      {"albert", folder + "albert-base-v2-30k.model"},
      {"pegasus", folder + "pegasus-96103.model"},
      {"bigbird", folder + "bigbird-roberta-gpt2.model"},
      {"hf_test_unigram", folder + "hf-test_sentencepiece.model"},
      {"hf_test_bpe", folder + "hf-test_sentencepiece_bpe.model"},
      {"spm_test", folder + "spm-test_model.model"},
      {"spm_test_ja", folder + "spm-test_ja_model.model"}};
  for (const auto& [key, path] : models) {
    const auto tokenizer = Tokenizer::open(path);
    std::ifstream in(folder + "expected-ids.jsonl");
    int compared = 0;
    for (std::string line; std::getline(in, line);) {
      const auto row = nlohmann::json::parse(line);
      if (!row.contains(key)) continue;
      INFO(key << ": " << row["text"].get<std::string>());
      CHECK(tokenizer.encode(row["text"].get<std::string>()) == row[key].get<std::vector<int32_t>>());
      ++compared;
    }
    CHECK(compared > 50);
  }
}

TEST_CASE("words are encoded as SentencePiece encodes the whole text", "[data][tokenizer]") {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 400; ++i)
    text +=
        "the cat" + std::to_string(i % 7) + " sat on caf\u00E9 mat " + std::to_string(i % 13) + " \u00A8x \uFF21.\n";
  std::vector<std::string> models;
  for (const std::string kind : {"unigram", "bpe"}) {
    PrepareOptions options;
    options.inputs = {dir.write("text.txt", text)};
    options.train_kind = choice_of<TokenizerKind>(kind);
    options.vocab_size = 70;
    options.lowercase = kind == "bpe";
    train_tokenizer(options, {.documents = {Assignment::train}}, dir / kind);
    models.push_back(dir / (kind + "/spiece.model"));
  }
  const std::string folder = SOURCE_DIR "/../shared/data/tokenizers/";
  for (const auto* name : {"albert-base-v2-30k.model", "t5-32000.model", "pegasus-96103.model",
                           "bigbird-roberta-gpt2.model", "hf-test_sentencepiece_bpe.model", "spm-test_ja_model.model"})
    if (std::filesystem::exists(folder + name)) models.push_back(folder + name);
  // Fragments that normalisation changes: single accents, wide spaces, marks of the tokenizer itself, invalid bytes.
  const std::vector<std::string> parts{" ",      "  ",     "a",      "the",     "cat",    "caf\u00E9",  "\u0301",
                                       "\u00A8", "\u00A0", "\u3000", "\u2581",  "\t",     "\u200B",     "\uFF21",
                                       "7",      ".",      ",",      "<s>",     "[MASK]", "\U0001F600", "\u304C",
                                       "\xFF",   "\u0085", "-",      "\u2019s", "\u1FEF", "\uFB01",     "\u0344"};
  for (const auto& model : models) {
    sentencepiece::SentencePieceProcessor reference;
    REQUIRE(reference.Load(model).ok());
    const auto tokenizer = Tokenizer::open(model);
    auto stream = Rng(5).stream("fuzz");
    for (int i = 0; i < 3000; ++i) {
      std::string line;
      for (uint64_t n = stream.below(i % 100 == 0 ? 600 : 12); n > 0; --n) {  // some are of many words
        line += parts[stream.below(parts.size())];
        if (stream.below(2)) line += ' ';
      }
      std::vector<int> wanted;
      REQUIRE(reference.Encode(line, &wanted).ok());
      INFO(model << ": '" << line << "'");
      REQUIRE(tokenizer.encode(line) == std::vector<int32_t>(wanted.begin(), wanted.end()));
    }
  }
}

TEST_CASE("what transformers passes over next to a vocab.txt is named in a warning", "[data][tokenizer]") {
  TempDir dir;
  dir.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\naaaaaa\n");
  const auto warned = [&](const std::string& options) {
    const auto path = dir.write("tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", )" + options + "}");
    set_log_file(dir / "log");
    CHECK(Tokenizer::open(dir.path.string()).encode("aaaaaa") == std::vector<int32_t>{5});
    set_log_file("");
    auto log = read_file(dir / "log");
    std::filesystem::remove(dir / "log");
    const auto at = log.find(path);
    return at == std::string::npos ? log : log.substr(at + path.size());
  };
  const std::string end = ", which transformers ignores since version 5; so does Cloze\n";
  CHECK(warned(R"("max_input_chars_per_word": 5)") == ": max_input_chars_per_word is 5" + end);
  CHECK(warned(R"("clean_text": false)") == ": clean_text is false" + end);
  CHECK(warned(R"("never_split": ["x"])") == R"(: never_split is ["x"])" + end);
  CHECK(warned(R"("max_input_chars_per_word": 100, "never_split": null, "do_basic_tokenize": true)").empty());
}

TEST_CASE("a vocabulary of a class or model that Cloze does not know is refused by its name", "[data][tokenizer]") {
  TempDir dir;
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  dir.write("mpnet/vocab.txt", words);
  dir.write("mpnet/tokenizer_config.json", R"({"tokenizer_class": "MPNetTokenizer"})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "mpnet"),
                    Catch::Contains("vocab.txt: belongs to 'MPNetTokenizer', whose ids Cloze does not know"));
  dir.write("type/vocab.txt", words);
  dir.write("type/config.json", R"({"model_type": "funnel"})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "type"), Catch::Contains("belongs to 'funnel'"));
  dir.write("clip/vocab.json", R"({"a": 0})");
  dir.write("clip/merges.txt", "#version: 0.2\n");
  dir.write("clip/tokenizer_config.json", R"({"tokenizer_class": "CLIPTokenizer"})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "clip"),
                    Catch::Contains("vocab.json: belongs to 'CLIPTokenizer'") &&
                        Catch::Contains("have transformers write tokenizer.json next to it (save_pretrained)"));
  dir.write("dpr/vocab.txt", words);
  dir.write("dpr/tokenizer_config.json", R"({"tokenizer_class": "DPRReaderTokenizerFast"})");
  CHECK(Tokenizer::open(dir / "dpr").encode("a") == std::vector<int32_t>{5});
}

TEST_CASE("JSON that is nested thousands deep is refused with file, line and column", "[data][tokenizer]") {
  TempDir dir;
  const std::string deep = "{\"x\":\n" + std::string(200000, '[') + std::string(200000, ']') + "}";
  const std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n";
  const auto refused = [&](const std::string& file, const std::string& other, const std::string& content) {
    INFO(file);
    const auto folder = "of-" + file;
    dir.write(folder + "/" + other, content);
    dir.write(folder + "/" + file, deep);
    CHECK_THROWS_WITH(
        Tokenizer::open(dir / folder),
        Catch::Contains(file + ": is not a JSON object") &&
            Catch::Contains("(line 2, column 64: nested deeper than 64 lists and objects); it is damaged"));
  };
  refused("tokenizer.json", "config.json", "{}");
  refused("vocab.json", "merges.txt", "");
  for (const auto* file :
       {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json", "cloze_tokenizer.json"})
    refused(file, "vocab.txt", words);
}

TEST_CASE("a tokenizer of 60,000 pieces of each kind is saved and opened", "[data][tokenizer]") {
  // With linear lookup of keys this takes minutes.
  TempDir dir;
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  nlohmann::json vocabulary = nlohmann::json::object(), added = nlohmann::json::object();
  for (int b = 0; b < 256; ++b) vocabulary[byte_symbol(static_cast<uint8_t>(b))] = b;
  for (int i = 0; i < 60000; ++i) {
    words += "w" + std::to_string(i) + "\n";
    vocabulary["w" + std::to_string(i)] = 256 + i;
    added["added" + std::to_string(i)] = 60256 + i;
  }
  dir.write("wordpiece/vocab.txt", words);
  dir.write("byte_bpe/vocab.json", vocabulary.dump());
  dir.write("byte_bpe/merges.txt", "#version: 0.2\n");
  dir.write("byte_bpe/added_tokens.json", added.dump());
  for (const std::string kind : {"wordpiece", "byte_bpe"}) {
    const auto tokenizer = Tokenizer::open(dir / kind);
    tokenizer.save(dir / (kind + "-saved"));
    const auto again = Tokenizer::open(dir / (kind + "-saved"));
    CHECK(again.size() == tokenizer.size());
    CHECK(again.encode("w59999 w7 added59999") == tokenizer.encode("w59999 w7 added59999"));
  }
}

TEST_CASE("a key that is no id of a token is answered with the file and the key", "[data][tokenizer]") {
  TempDir dir;
  dir.write("bert/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  for (const std::string key : {"x", "5x", "-1", "", "99999999999999999999"}) {
    INFO(key);
    dir.write("bert/tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer", "added_tokens_decoder": {")" + key +
                                                R"(": {"content": "<x>"}}})");
    CHECK_THROWS_WITH(Tokenizer::open(dir / "bert"), dir / "bert/tokenizer_config.json" + ": '" + key +
                                                         "' is not the id of a token; ids are whole numbers from 0");
  }
  dir.write("ours/vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n");
  dir.write("ours/cloze_tokenizer.json", R"({"format": "cloze-tokenizer", "version": 2, "added": {"6": 7}})");
  CHECK_THROWS_WITH(Tokenizer::open(dir / "ours"),
                    dir / "ours/cloze_tokenizer.json" + ": token 6 under 'added' is not a text; the file is damaged");
}
