// Tokenizer files as an attacker, or a program of another mind, would write them.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/log.h"
#include "data/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
using Json = nlohmann::json;

namespace {

const std::string small_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n";

/// Values of every JSON type.
const std::vector<Json>& values_of_every_type() {
  static const std::vector<Json> values{nullptr,
                                        true,
                                        3,
                                        -1,
                                        1e300,
                                        uint64_t{18446744073709551615u},
                                        "",
                                        "x",
                                        Json::array(),
                                        Json::array({1}),
                                        Json::array({"x"}),
                                        Json::object(),
                                        Json{{"type", 3}},
                                        Json{{"content", "x"}}};
  return values;
}

/// The paths of a value and of everything in it; of a long list or object the first two and the last.
void add_paths(const Json& value, const Json::json_pointer& at, std::vector<Json::json_pointer>& paths) {
  if (!at.empty()) paths.push_back(at);
  if (!value.is_structured()) return;
  size_t number = 0;
  for (const auto& [key, inner] : value.items()) {
    const bool is_shown = value.size() < 12 || number < 2 || number + 1 == value.size();
    if (is_shown && value.is_array()) add_paths(inner, at / number, paths);
    if (is_shown && value.is_object()) add_paths(inner, at / key, paths);
    ++number;
  }
}

/// What stands at a path, for the choice of different ones: the path without the numbers of lists, and the kind of the
/// object that it is in.
std::string place_of(const Json& whole, const Json::json_pointer& at) {
  std::string place;
  for (const char c : at.to_string()) place += c >= '0' && c <= '9' ? '#' : c;
  const auto& parent = whole.at(at.parent_pointer());
  return parent.is_object() && parent.contains("type") ? place + " of " + parent["type"].dump() : place;
}

/// Opens a tokenizer, asks it everything, saves it for Cloze and for a model, and opens it again. Only Errors come out.
void use(const std::string& path, const TempDir& dir) {
  const std::string text = "the cat [MASK] \u4E2D\u6587 caf\u00E9 1,2 \xFF";
  try {
    const auto tokenizer = Tokenizer::open(path);
    const auto ids = tokenizer.encode(text);
    tokenizer.encode_with_offsets(text);
    tokenizer.encode_after(text);
    tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end()));
    tokenizer.with_special_tokens().followed_by_sentinels(2).save(dir / "saved");
    tokenizer.save(dir / "exported", TextReader{.kind = "bert"});
    for (const auto* folder : {"saved", "exported"}) Tokenizer::open(dir / folder).encode(text);
  } catch (const Error& e) {
    CHECK_THAT(e.what(), !Catch::Contains("terminate"));
    CHECK(std::string(e.what()).size() > 20);
  }
}

/// Uses a file with every other value at each path of its content that `is_new`.
void mutate(const std::string& name, const Json& content, const std::string& opened, const TempDir& dir,
            const std::function<bool(const std::string& place)>& is_new) {
  std::vector<Json::json_pointer> paths;
  add_paths(content, Json::json_pointer(), paths);
  for (const auto& at : paths) {
    if (!is_new(place_of(content, at))) continue;
    for (const auto& value : values_of_every_type()) {
      if (content.at(at) == value) continue;
      auto broken = content;
      broken[at] = value;
      INFO(name << " " << at << " = " << value);
      dir.write(name, broken.dump());
      CHECK_NOTHROW(use(opened, dir));
    }
  }
}

/// Warnings about the broken files are not of interest.
struct Quiet {
  Quiet() { set_log_level(LogLevel::quiet); }
  ~Quiet() { set_log_level(LogLevel::normal); }
};

}  // namespace

TEST_CASE("a tokenizer.json with another JSON type anywhere is opened or refused", "[data][tokenizer]") {
  const Quiet quiet;
  TempDir dir;
  std::set<std::string> seen;
  const auto is_new = [&](const std::string& place) { return seen.insert(place).second; };
  const auto reference = Json::parse(read_file(SOURCE_DIR "/tests/data/tokenizers/tokenizers.json"));
  for (const auto& one : reference["cases"])
    mutate("json/tokenizer.json", one["tokenizer"], dir / "json/tokenizer.json", dir, is_new);
  CHECK(seen.size() > 150);
}

TEST_CASE("files next to a vocabulary with another JSON type anywhere are read or refused", "[data][tokenizer]") {
  const Quiet quiet;
  TempDir dir;
  const auto always = [](const std::string&) { return true; };
  const Json config{{"tokenizer_class", "BertTokenizer"},
                    {"do_lower_case", true},
                    {"strip_accents", nullptr},
                    {"tokenize_chinese_chars", true},
                    {"max_input_chars_per_word", 100},
                    {"never_split", Json::array({"x"})},
                    {"cls_token", {{"content", "[CLS]"}, {"lstrip", false}}},
                    {"mask_token", "[MASK]"},
                    {"additional_special_tokens", Json::array({"[X]"})},
                    {"added_tokens_decoder", {{"4", {{"content", "[MASK]"}, {"special", true}}}}}};
  dir.write("bert/vocab.txt", small_vocabulary);
  dir.write("bert/config.json", R"({"model_type": "bert"})");
  mutate("bert/tokenizer_config.json", config, dir / "bert", dir, always);
  dir.write("bert/tokenizer_config.json", config.dump());
  mutate("bert/special_tokens_map.json", {{"sep_token", "[SEP]"}, {"pad_token", {{"content", "[PAD]"}}}}, dir / "bert",
         dir, always);
  mutate("bert/added_tokens.json", {{"new", 8}}, dir / "bert", dir, always);
  mutate("bert/config.json", {{"model_type", "bert"}}, dir / "bert", dir, always);

  Tokenizer::open(dir.write("vocab.txt", small_vocabulary)).followed_by_sentinels(2).save(dir / "own");
  auto facts = Json::parse(read_file(dir / "own/cloze_tokenizer.json"));
  mutate("own/cloze_tokenizer.json", facts, dir / "own", dir, always);
  facts.erase("xxh3");
  facts["version"] = 2;  // nothing guards it
  mutate("own/cloze_tokenizer.json", facts, dir / "own", dir, always);

  dir.write("bpe/merges.txt", "#version: 0.2\na b\n");
  mutate("bpe/vocab.json", {{"a", 0}, {"b", 1}, {"ab", 2}}, dir / "bpe", dir, always);
}

TEST_CASE("rules that double a text one after the other are refused before they fill the memory", "[data][tokenizer]") {
  TempDir dir;
  const Json model{{"type", "WordLevel"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"b", 1}}}};
  const auto opened = [&](const Json& normalizer, const Json& decoder) {
    const Json tokenizer{{"model", model}, {"normalizer", normalizer}, {"decoder", decoder}};
    return Tokenizer::open(dir.write("json/tokenizer.json", tokenizer.dump()));
  };
  const auto chain = [](const char* of, const std::vector<Json>& steps) {
    return Json{{"type", "Sequence"}, {of, steps}};
  };
  const std::clock_t begin = std::clock();
  const std::vector<Json> doubling(32, {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", "aa"}});
  const auto grows = opened(chain("normalizers", doubling), nullptr);
  CHECK(grows.encode("b") == std::vector<int32_t>{1});
  CHECK_THROWS_WITH(
      grows.encode("a"),
      Catch::Contains("the rules of the tokenizer write more than 131200 bytes for a text of 1, one after "
                      "the other; correct its normalizer"));
  CHECK_THROWS_AS(grows.encode_with_offsets("a"), DataError);
  const std::vector<Json> wide{
      {{"type", "Replace"}, {"pattern", {{"String", "a"}}}, {"content", std::string(1000, 'a')}},
      {{"type", "Replace"}, {"pattern", {{"Regex", ""}}}, {"content", std::string(1000, 'b')}}};
  CHECK_THROWS_AS(opened(chain("normalizers", wide), nullptr).encode("a"), DataError);
  const std::vector<Json> in_bytes(32, {{"type", "ByteLevel"}});
  CHECK_THROWS_AS(opened(chain("normalizers", in_bytes), nullptr).encode("caf\u00E9"), DataError);
  const std::vector<Json> prefixes(30, {{"type", "Prepend"}, {"prepend", std::string(3000, 'x')}});
  CHECK_THROWS_AS(opened(chain("normalizers", prefixes), nullptr).encode("a"), DataError);
  // None of these makes more than the others, but all of them together write too much.
  const std::vector<Json> long_forms(16, {{"type", "NFKC"}}), again(16, {{"type", "NFKD"}});
  std::vector<Json> both = long_forms;
  both.insert(both.end(), again.begin(), again.end());
  std::string ligatures;
  for (int i = 0; i < 20'000; ++i) ligatures += "\uFDFA";
  CHECK_THROWS_WITH(opened(chain("normalizers", both), nullptr).encode(ligatures),
                    Catch::Contains("the rules of the tokenizer write more than 7811072 bytes for a text of 60000, one "
                                    "after the other; correct its normalizer"));
  const std::vector<Json> forms(33, {{"type", "NFC"}});
  CHECK_THROWS_WITH(opened(chain("normalizers", forms), nullptr),
                    Catch::Contains("is one of more than 32 steps; merge some of them"));
  const std::vector<Json> fuses(33, {{"type", "Fuse"}});
  CHECK_THROWS_WITH(opened(nullptr, chain("decoders", fuses)), Catch::Contains("is one of more than 32 steps"));
  const std::vector<Json> spelled(32, {{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", "bb"}});
  CHECK_THROWS_WITH(opened(nullptr, chain("decoders", spelled)).decode(std::vector<int64_t>{1}),
                    Catch::Contains("bytes of tokens of 1; correct its decoder"));
  CHECK(std::clock() - begin < 20 * CLOCKS_PER_SEC);
  // Rules of real tokenizers make at most 33 bytes of one.
  const auto compatible = opened({{"type", "NFKC"}}, nullptr);
  CHECK(compatible.encode(std::string("\uFDFA")).size() == 1);
}

namespace {

/// A tokenizer.json of two words whose pre-tokenizer cuts texts at an expression.
std::string cut_at(const TempDir& dir, const std::string& expression) {
  const Json model{{"type", "WordLevel"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"b", 1}}}};
  const Json cut{{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
  return dir.write("cut/tokenizer.json", Json{{"model", model}, {"pre_tokenizer", cut}}.dump());
}

}  // namespace

TEST_CASE("an expression with back-references, calls of groups or conditions is refused with that part",
          "[data][tokenizer]") {
  TempDir dir;
  for (const auto& [expression, part] :
       std::vector<std::pair<std::string, std::string>>{{R"((a+)(a+)\1\2b)", R"(\1)"},
                                                        {R"((?<x>a\g<x>?b?)+c)", R"(\g)"},
                                                        {R"((?<x>a)\k<x>)", R"(\k)"},
                                                        {R"((a)(?(1)b|c))", "(?("},
                                                        {R"((?~abc))", "(?~"},
                                                        {R"((*SKIP)a)", "(*"},
                                                        {R"((?#[)(a+)\1b)", R"(\1)"},
                                                        {R"((?x)#[
(a+)\1b)",
                                                         R"(\1)"},
                                                        {R"(\c[(a+)\1b)", R"(\1)"}}) {
    INFO(expression);
    CHECK_THROWS_WITH(Tokenizer::open(cut_at(dir, expression)), Catch::Contains("which has '" + part + "': back-ref"));
  }
  // Escaped, in a class, or a number that is none: ordinary characters.
  for (const std::string expression : {R"(\\1)", R"([(*\]]+)", R"(\p{L}{1,3})", R"(\(\?\()"})
    CHECK_NOTHROW(Tokenizer::open(cut_at(dir, expression)).encode("a \\1 (*"));
  CHECK_THROWS_WITH(Tokenizer::open(cut_at(dir, std::string(10001, 'a'))),
                    Catch::Contains("has 10001 bytes, more than 10000; write a shorter pattern"));
  const auto nested = [](int depth) { return std::string(depth, '(') + "a" + std::string(depth, ')'); };
  const auto repeated = [](int times) {
    std::string expression = "a";
    for (int i = 0; i < times; ++i) expression += "{1,2}";
    return expression;
  };
  CHECK_NOTHROW(Tokenizer::open(cut_at(dir, nested(90))));
  CHECK_THROWS_WITH(Tokenizer::open(cut_at(dir, nested(300))), Catch::Contains("parse depth limit over"));
  CHECK_THROWS_WITH(Tokenizer::open(cut_at(dir, repeated(300))), Catch::Contains("parse depth limit over"));
}

TEST_CASE("an expression whose searches take far more time than usual is given up with its pattern",
          "[data][tokenizer]") {
  TempDir dir;
  const std::string letters(300'000, 'a');
  for (const std::string expression : {"(?=.*)a", "(?!.*)a", "a*?b", "(a|aa)+b", "(?:a{0,100}){0,100}b"}) {
    INFO(expression);
    const auto tokenizer = Tokenizer::open(cut_at(dir, expression));
    const std::clock_t begin = std::clock();
    CHECK_THROWS_WITH(tokenizer.encode(letters), Catch::Contains("the tokenizer's expression '" + expression + "'") &&
                                                     Catch::Contains("; correct the pattern of tokenizer.json"));
    CHECK(std::clock() - begin < 120 * CLOCKS_PER_SEC);
  }
  // Those of published tokenizers have time for any text.
  const auto usual = Tokenizer::open(cut_at(dir, R"('s|'t| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"));
  CHECK(usual.encode(letters + std::string(300'000, ' ') + "b").size() == 3);
}

TEST_CASE("all expressions of a tokenizer share the time that a text has", "[data][tokenizer]") {
  TempDir dir;
  const Json model{{"type", "WordLevel"}, {"unk_token", "[UNK]"}, {"vocab", {{"[UNK]", 0}, {"b", 1}}}};
  std::vector<Json> cuts, changes;
  for (int i = 0; i < 32; ++i) {
    const Json pattern{{"Regex", "(?:a|aa){0,9}[xyz]|q" + std::to_string(i)}};  // 3 to 6 s for the text below
    cuts.push_back({{"type", "Split"}, {"pattern", pattern}, {"behavior", "Isolated"}, {"invert", false}});
    changes.push_back({{"type", "Replace"}, {"pattern", pattern}, {"content", "a"}});
  }
  const Json all{{"model", model},
                 {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", cuts}}},
                 {"normalizer", {{"type", "Sequence"}, {"normalizers", changes}}}};
  const auto tokenizer = Tokenizer::open(dir.write("all/tokenizer.json", all.dump()));
  CHECK_THROWS_WITH(tokenizer.encode(std::string(500'000, 'a')),
                    Catch::Contains("takes more than the 7 s that all expressions have for 5000"));

  const std::string longest(10'001, 'a');
  const Json literal{{"type", "Split"}, {"pattern", {{"String", longest}}}, {"behavior", "Isolated"}};
  CHECK_THROWS_WITH(
      Tokenizer::open(dir.write("literal/tokenizer.json", Json{{"model", model}, {"pre_tokenizer", literal}}.dump())),
      Catch::Contains("pattern.String has 10001 bytes, more than 10000; write a shorter pattern"));
}

TEST_CASE("a single search that goes on beyond the time of a text ends the process with its expression",
          "[data][tokenizer]") {
  TempDir dir;
  // At each letter it reads the rest of the text twenty times, without a step back.
  std::string expression;
  for (int i = 0; i < 20; ++i) expression += "a(?=[^q]*+)[rs]|";
  std::string letters;
  for (int i = 0; i < 30'000; ++i) letters += "ab";
  const auto file = cut_at(dir, expression + "b(?=[^q]*+)[rs]"), errors = dir / "errors";
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(errors.c_str(), O_WRONLY | O_CREAT, 0600), STDERR_FILENO);
    std::thread([&] { Tokenizer::open(file).encode(letters); }).join();
    _exit(0);
  }
  CHECK(wait_for(child) == 1);
  CHECK_THAT(read_file(errors), Catch::StartsWith("cloze: error: the tokenizer's expression 'a(?=[^q]*+)[rs]|a(?=") &&
                                    Catch::EndsWith("' takes more time for a text than any text needs; correct the "
                                                    "pattern of tokenizer.json\n"));
}

TEST_CASE("pieces that are searched for from each character cost a bounded time, however long words may be",
          "[data][tokenizer]") {
  TempDir dir;
  const auto opened = [&](const Json& model) {
    return Tokenizer::open(dir.write("json/tokenizer.json", Json{{"model", model}}.dump()));
  };
  const auto words = [](const std::string& piece) {
    return Json{{"type", "WordPiece"},
                {"max_input_chars_per_word", 1'000'000'000},
                {"vocab", {{"[UNK]", 0}, {"a", 1}, {"##a", 2}, {"##b", 3}, {piece, 4}}}};
  };
  const auto unigram = [](const std::string& piece) {
    const auto scored = [](const std::string& text, int score) { return Json::array({text, score}); };
    return Json{{"type", "Unigram"},
                {"unk_id", 0},
                {"vocab", Json::array({scored("<unk>", 0), scored("a", -1), scored(piece, -2)})}};
  };
  const std::string longest(1024, 'a'), letters(100'000, 'a');
  const std::clock_t begin = std::clock();
  // All but the last byte of the long piece is there, from each letter on.
  CHECK(opened(words("##" + longest.substr(3) + "b")).encode(letters).size() == letters.size());
  CHECK(opened(unigram(longest.substr(1) + "b")).encode(letters).size() == letters.size());
  CHECK(std::clock() - begin < 60 * CLOCKS_PER_SEC);
  const std::string most = "to a piece of 1025 bytes, more than the 1024 that a piece can have; train the tokenizer";
  CHECK_THROWS_WITH(opened(words(longest + "a")), Catch::Contains("model.vocab gives the id 4 " + most));
  CHECK_THROWS_WITH(opened(unigram(longest + "a")), Catch::Contains("model.vocab gives the id 2 " + most));

  // The longest piece wins; one that is special, or begins a word, does not continue it.
  const Json model{{"type", "WordPiece"},
                   {"vocab", {{"[UNK]", 0}, {"a", 1}, {"##a", 2}, {"##aa", 3}, {"aab", 4}, {"##b", 5}}}};
  CHECK(opened(model).encode("aaaab") == std::vector<int32_t>{1, 3, 2, 5});
  CHECK(opened(model).encode("aab") == std::vector<int32_t>{4});
  CHECK(opened(model).encode("aabx") == std::vector<int32_t>{0});
}

TEST_CASE("a vocabulary of millions of pieces is refused with their number", "[data][tokenizer]") {
  TempDir dir;
  std::string words = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", list = R"(["[UNK]", 0])", object = R"("[UNK]": 0)";
  for (int i = 5; i < 2'100'000; ++i) {
    const auto number = std::to_string(i);
    words += "t" + number + "\n";
    list += ",[\"" + number + "\",-1]";
    object += ",\"" + number + "\":" + std::to_string(i - 4);
  }
  const std::string most = ", more than the 2097152 that a vocabulary can have";
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("txt/vocab.txt", words)), Catch::Contains("has 2100000 pieces" + most));
  CHECK_THROWS_WITH(
      Tokenizer::open(dir.write("uni/tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [)" + list + "]}}")),
      Catch::Contains("model.vocab has 2099996 entries" + most));
  CHECK_THROWS_WITH(
      Tokenizer::open(
          dir.write("bpe/tokenizer.json", R"({"model": {"type": "BPE", "merges": [], "vocab": {)" + object + "}}}")),
      Catch::Contains("model.vocab has 2099996 entries" + most));
}
