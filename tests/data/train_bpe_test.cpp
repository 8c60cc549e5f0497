#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/contains.h"
#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/random.h"
#include "data/prepare/prepare.h"
#include "data/tokenizer.h"
#include "data/prepare/train_tokenizer.h"
#include "data/tokenizers/utf8.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/logged.h"
#include "tests/support/temp_dir.h"

using namespace cloze;

namespace {

/// Sennrich et al. 2016, algorithm 1, recounting all pairs for every merge.
std::vector<std::pair<int32_t, int32_t>> slow_merges(std::vector<CountedWord> words, int32_t next, size_t merges) {
  std::vector<std::pair<int32_t, int32_t>> learnt;
  while (learnt.size() < merges) {
    std::map<std::pair<int32_t, int32_t>, uint64_t> counts;
    for (const auto& w : words)
      for (size_t i = 0; i + 1 < w.symbols.size(); ++i) counts[{w.symbols[i], w.symbols[i + 1]}] += w.count;
    std::pair<int32_t, int32_t> best;
    uint64_t max = 1;
    for (const auto& [pair, n] : counts)
      if (n > max) max = n, best = pair;
    if (max < 2) break;
    learnt.push_back(best);
    for (auto& w : words) {
      std::vector<int32_t> out;
      for (size_t i = 0; i < w.symbols.size(); ++i) {
        const bool here = i + 1 < w.symbols.size() && w.symbols[i] == best.first && w.symbols[i + 1] == best.second;
        out.push_back(here ? next : w.symbols[i]);
        i += here;
      }
      w.symbols = out;
    }
    ++next;
  }
  return learnt;
}

/// Words of a made-up language with many repetitions, "aaa" among them.
std::vector<std::string> sentences() {
  auto stream = Rng(3).stream("words");
  std::vector<std::string> list;
  for (int s = 0; s < 300; ++s) {
    std::string text;
    for (int w = 0; w < 8; ++w) {
      text += w ? " " : "";
      for (uint64_t k = 0, n = 1 + stream.below(7); k < n; ++k)
        text += static_cast<char>('a' + stream.below(1 + stream.below(5)));
    }
    list.push_back(text + ", 42! Ünïcode");
  }
  return list;
}

}  // namespace

TEST_CASE("a signal ends the training of a byte-level or WordPiece vocabulary before its first merge",
          "[data][tokenizer]") {
  struct Requested {
    Requested() { interrupts().requested = true; }
    ~Requested() { interrupts().requested = false; }
  };
  const Requested requested;
  const auto merged = [](int32_t, int32_t) -> std::optional<int32_t> { return std::nullopt; };
  CHECK_THROWS_AS(train_wordpiece(sentences(), 10, true), Interrupted);  // which is too small, as counting would find
  CHECK_THROWS_AS(train_byte_bpe({"a"}, 300), Interrupted);              // which has no pair
  CHECK_THROWS_AS(learn_merges({{{1}, 1}}, merged), Interrupted);
}

TEST_CASE("merges equal those of the algorithm that recounts all pairs", "[data][tokenizer]") {
  auto stream = Rng(1).stream("test");
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<CountedWord> words;
    for (int w = 0; w < 40; ++w) {
      auto& word = words.emplace_back();
      word.count = 1 + stream.below(9);
      for (uint64_t k = 0, n = 1 + stream.below(9); k < n; ++k)
        word.symbols.push_back(static_cast<int32_t>(stream.below(3)));
    }
    std::vector<std::pair<int32_t, int32_t>> found;
    learn_merges(words, [&](int32_t left, int32_t right) -> std::optional<int32_t> {
      if (found.size() == 30) return std::nullopt;
      found.emplace_back(left, right);
      return static_cast<int32_t>(2 + found.size());
    });
    CHECK(found == slow_merges(words, 3, 30));
  }
}

TEST_CASE("a trained byte-level vocabulary encodes any text, also from its tokenizer.json alone", "[data][tokenizer]") {
  TempDir dir;
  const auto files = train_byte_bpe(sentences(), 400);
  dir.write("bpe/merges.txt", files.merges);
  const auto tokenizer =
      Tokenizer::open(std::filesystem::path(dir.write("bpe/vocab.json", files.vocabulary)).parent_path().string());
  CHECK(tokenizer.kind() == "byte_bpe");
  CHECK(tokenizer.size() == 400);
  CHECK(tokenizer.special().cls == 0);
  CHECK(tokenizer.special().pad == 1);
  CHECK(tokenizer.special().mask == 399);
  const std::string text = "aaab cc, Ünïcode \xE4\xB8\xAD \t 7!";
  const auto ids = tokenizer.encode(text);
  CHECK(tokenizer.decode(std::vector<int64_t>(ids.begin(), ids.end())) == text);
  CHECK(tokenizer.encode("Ünïcode").size() < 9);  // it occurs in every sentence, so its bytes were merged
  tokenizer.save(dir / "saved");
  for (const auto* file : {"vocab.json", "merges.txt", "cloze_tokenizer.json"})
    std::filesystem::remove(dir / ("saved/" + std::string(file)));
  CHECK(Tokenizer::open(dir / "saved/tokenizer.json").encode(text) == ids);
  CHECK_THROWS_WITH(
      train_byte_bpe(sentences(), 260),
      "--vocab-size 260 is too small for byte-level BPE, which has 261 tokens before the first merge; raise it");
}

TEST_CASE("a trained WordPiece vocabulary covers its text, also from its tokenizer.json alone", "[data][tokenizer]") {
  TempDir dir;
  const auto file = train_wordpiece(sentences(), 120, true);
  const auto tokenizer = Tokenizer::open(dir.write("wp/vocab.txt", file));
  CHECK(tokenizer.size() == 120);
  CHECK(tokenizer.piece(4) == "[MASK]");
  CHECK(tokenizer.id("unicode") > 0);  // lower case, without accents
  CHECK(tokenizer.id("##a") > 0);
  CHECK(tokenizer.id("##!") == -1);  // never inside a word
  for (const auto& sentence : sentences())
    for (const auto id : tokenizer.encode(sentence)) CHECK(id != tokenizer.special().unk);
  tokenizer.save(dir / "saved");
  for (const auto* other : {"vocab.txt", "cloze_tokenizer.json"})
    std::filesystem::remove(dir / ("saved/" + std::string(other)));
  const auto again = Tokenizer::open(dir / "saved/tokenizer.json");
  CHECK(again.encode("aab Ünïcode!") == tokenizer.encode("aab Ünïcode!"));
  CHECK_THROWS_WITH(
      train_wordpiece(sentences(), 10, true),
      Catch::Contains(
          "--vocab-size 10 is too small for WordPiece on this text, whose special tokens and characters are"));
}

namespace {

/// Sentences with so many different Chinese characters, frequent ones and rare ones.
std::vector<std::string> chinese_sentences(uint64_t characters) {
  auto stream = Rng(5).stream("characters");
  std::vector<std::string> list;
  for (uint64_t s = 0; s < 2000; ++s) {
    std::string text;
    append_code_point(text, static_cast<int32_t>(0x4E00 + s % characters));  // each occurs
    for (int i = 0; i < 40; ++i)
      append_code_point(text, static_cast<int32_t>(0x4E00 + stream.below(1 + stream.below(characters))));
    list.push_back(text);
  }
  return list;
}

/// The characters that cover a share of sentences without spaces: the fewest that do.
size_t covering(const std::vector<std::string>& sentences, double fraction) {
  std::map<int32_t, size_t> counts;
  size_t all = 0;
  for (const auto& sentence : sentences)
    for (size_t at = 0; at < sentence.size(); ++all) ++counts[next_code_point(sentence, at)];
  std::multiset<size_t, std::greater<>> sorted;
  for (const auto& [code, n] : counts) sorted.insert(n);
  size_t covered = 0, kept = 0;
  for (const auto n : sorted) {
    if (static_cast<double>(covered) >= fraction * static_cast<double>(all)) break;
    covered += n;
    ++kept;
  }
  return kept;
}

}  // namespace

TEST_CASE("a WordPiece alphabet grows with the text, so that no more characters are unknown than its coverage leaves",
          "[data][tokenizer]") {
  TempDir dir;
  const auto text = chinese_sentences(2000);
  for (const double coverage : {1.0, 0.9995, 0.95}) {
    INFO(coverage);
    std::string file;
    const auto log = logged(dir, [&] { file = train_wordpiece(text, 5000, false, {.coverage = coverage}); });
    const auto tokenizer = Tokenizer::open(dir.write("zh/vocab.txt", file));
    const auto kept = covering(text, coverage);
    CHECK(tokenizer.size() == static_cast<int64_t>(5 + kept));
    CHECK((log.find("the " + thousands(kept) + " most frequent of 2,000 characters") != std::string::npos) ==
          (coverage < 1));
    size_t unknown = 0, all = 0;
    for (const auto& sentence : text)
      for (const auto id : tokenizer.encode(sentence)) {
        ++all;
        unknown += id == tokenizer.special().unk;
      }
    CHECK(static_cast<double>(all - unknown) >= coverage * static_cast<double>(all));
  }
}

TEST_CASE("a WordPiece alphabet has its least number of characters, and the most frequent ones", "[data][tokenizer]") {
  TempDir dir;
  const auto text = chinese_sentences(2000);
  const auto size = [&](double coverage, size_t least) {
    const auto file = train_wordpiece(text, 5000, false, {.coverage = coverage, .least = least});
    return Tokenizer::open(dir.write("zh/vocab.txt", file)).size() - 5;
  };
  CHECK(size(0.95, 1999) == 1999);
  CHECK(size(0.95, 3000) == 2000);
  CHECK(size(0.95, 10) == static_cast<int64_t>(covering(text, 0.95)));
  CHECK(train_wordpiece({"aab aab ac"}, 12, true, {.coverage = 0.8}) ==
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n##a\n##b\naa\naab\n");
}

TEST_CASE("a vocabulary without room for the characters of a text is told their number and both options that help",
          "[data][tokenizer]") {
  CHECK_THROWS_WITH(train_wordpiece(chinese_sentences(2000), 1500, false),
                    "--vocab-size 1500 is too small for WordPiece on this text, whose special tokens and characters "
                    "are 2005 tokens; raise it to that or more, or leave rare characters out with a "
                    "--character-coverage below 1");
}

TEST_CASE("prepared WordPiece tokens keep all letters by default, as many as a coverage asks for, and enough Chinese",
          "[data][prepare]") {
  TempDir dir;
  std::string rare, chinese;
  for (int i = 0; i < 20000; ++i) rare += "the cat sat on the mat.\n\n";
  rare += "caf\u00E9 \u0416\n";
  for (const auto& sentence : chinese_sentences(2000)) chinese += sentence + "\n";
  auto options = small_text_options(dir);
  options.train_kind = TokenizerKind::wordpiece;
  options.vocab_size = 5000;
  options.inputs = {dir.write("rare.txt", rare)};
  options.out = dir / "rare";
  CHECK(prepare(options).unknown_tokens == 0);
  options.out = dir / "covered";
  options.character_coverage = 0.999;
  CHECK(prepare(options).unknown_tokens == 2);
  options.out = dir / "by-name";  // a coverage that is given holds, also where it is the default
  options.character_coverage = default_coverage;
  CHECK(prepare(options).unknown_tokens == 2);
  options.character_coverage.reset();
  options.inputs = {dir.write("zh.txt", chinese)};
  options.out = dir / "zh";
  const auto report = prepare(options);
  CHECK(static_cast<double>(report.tokens - report.unknown_tokens) >= 0.9995 * static_cast<double>(report.tokens));
}

TEST_CASE("prepare trains each kind of tokenizer, and a text too small for the size gets fewer tokens",
          "[data][prepare]") {
  TempDir dir;
  std::string text;
  for (const auto& sentence : sentences()) text += sentence + "\n";
  for (const std::string kind : {"wordpiece", "byte_bpe"}) {
    auto options = small_text_options(dir);
    options.inputs = {dir.write("text.txt", text + "\n" + text)};
    options.out = dir / kind;
    options.format = TextFormat::lines;
    options.train_kind = choice_of<TokenizerKind>(kind);
    options.vocab_size = 300;
    const auto report = prepare(options);
    CHECK(report.unknown_tokens == 0);
    CHECK(Tokenizer::open(dir / (kind + "/tokenizer")).kind() == kind);
    CHECK(Tokenizer::open(dir / (kind + "/tokenizer")).size() == 300);
  }
}

TEST_CASE("a tokenizer with fewer pieces than asked for says what the text lacks", "[data][prepare]") {
  TempDir dir;
  std::string text;
  for (const auto& sentence : sentences()) text += sentence + "\n";
  auto options = small_text_options(dir);
  options.inputs = {dir.write("text.txt", text + "\n" + text)};
  options.format = TextFormat::lines;
  const std::map<std::string, std::string> lacks{
      {"unigram", "parts that occur twice\n"},
      {"bpe", "pairs of pieces within a word\n"},
      {"wordpiece", "pairs of pieces that occur twice within words, where a Chinese character is a word\n"},
      {"byte_bpe", "pairs of pieces that occur twice within words\n"}};
  for (const auto& [kind, what] : lacks) {
    INFO(kind);
    options.train_kind = choice_of<TokenizerKind>(kind);
    for (const int64_t asked : {300, 50000}) {
      options.vocab_size = asked;
      options.out = dir / (kind + std::to_string(asked));
      const auto log = logged(dir, [&] { prepare(options); });
      CHECK((log.find(" pieces, fewer than the 50,000 asked for: the text has no more " + what) != std::string::npos) ==
            (asked == 50000));
    }
  }
}

TEST_CASE("a tokenizer learns the words of lines of any length, and says which words are too long",
          "[data][tokenizer]") {
  TempDir dir;
  std::string line;  // without a full stop, at which it would be split
  for (int i = 0; i < 3000; ++i) line += i % 3 == 0 ? "zebra " : "yak  ";
  const auto text = dir.write("text.txt", std::string(5000, 'q') + " " + line + std::string(4001, 'j'));
  for (const std::string kind : {"unigram", "wordpiece", "byte_bpe"}) {
    INFO(kind);
    PrepareOptions options;
    options.inputs = {text};
    options.train_kind = choice_of<TokenizerKind>(kind);
    options.vocab_size = kind == "byte_bpe" ? 280 : kind == "wordpiece" ? 30 : 20;
    const auto log = logged(dir, [&] { train_tokenizer(options, {.documents = {Assignment::train}}, dir / kind); });
    CHECK_THAT(log, Catch::Contains("2 words of more than 4,000 bytes between spaces are left out"));
    const auto tokenizer = Tokenizer::open(dir / kind);
    const auto ids = tokenizer.encode("yak zebra"), unknown = tokenizer.encode("q");
    const auto has_unknown = [&](const std::vector<int32_t>& of) { return contains(of, tokenizer.special().unk); };
    CHECK_FALSE(has_unknown(ids));
    if (kind != "unigram") CHECK(ids.size() == 2);  // a unigram vocabulary prefers parts of such words
    if (kind != "byte_bpe") CHECK(has_unknown(unknown));
  }
}

TEST_CASE("long words are merged as in openai/gpt-2's encoder.py, in nearly linear time", "[data][tokenizer]") {
  TempDir dir;
  const auto made = train_byte_bpe(sentences(), 400);
  dir.write("vocab.json", made.vocabulary);
  dir.write("merges.txt", made.merges);
  const auto tokenizer = Tokenizer::open(dir.path.string());
  std::map<std::pair<std::string, std::string>, int> ranks;
  std::istringstream lines(made.merges);
  std::string left, right;
  std::getline(lines, left);
  while (lines >> left >> right) ranks.emplace(std::pair(left, right), static_cast<int>(ranks.size()));
  // The function `bpe`: the pair of the lowest rank is merged everywhere, until none has a rank.
  const auto bpe = [&](const std::string& letters) {
    std::vector<std::string> word;
    for (const char c : letters) word.emplace_back(1, c);
    for (;;) {
      auto best = ranks.end();
      for (size_t i = 0; i + 1 < word.size(); ++i)
        if (const auto found = ranks.find({word[i], word[i + 1]});
            found != ranks.end() && (best == ranks.end() || found->second < best->second))
          best = found;
      if (best == ranks.end()) return word;
      std::vector<std::string> joined;
      for (size_t i = 0; i < word.size(); ++i) {
        const bool both = i + 1 < word.size() && word[i] == best->first.first && word[i + 1] == best->first.second;
        joined.push_back(both ? word[i] + word[i + 1] : word[i]);
        if (both) ++i;
      }
      word = joined;
    }
  };
  const std::string letters = "thecatsonmadrw";
  auto stream = Rng(8).stream("words");
  const auto word_of = [&](size_t length) {
    std::string word;
    while (word.size() < length) word += letters[stream.below(letters.size())];
    return word;
  };
  for (int i = 0; i < 200; ++i) {
    const auto word = word_of(1 + stream.below(300));
    std::vector<std::string> found;
    for (const auto id : tokenizer.encode(word)) found.push_back(tokenizer.piece(id));
    CHECK(found == bpe(word));
  }
  // A loop over all pairs for each merge takes minutes.
  const auto word = word_of(2 << 20);
  std::string spelled;
  for (const auto id : tokenizer.encode(word)) spelled += tokenizer.piece(id);
  CHECK(spelled == word);
}

TEST_CASE("damaged byte-level vocabularies are refused with a message", "[data][tokenizer]") {
  TempDir dir;
  const auto good = train_byte_bpe(sentences(), 300);
  int n = 0;
  const auto refused = [&](const std::string& vocabulary, const std::string& merges, const std::string& reason) {
    const auto folder = "d" + std::to_string(++n);
    dir.write(folder + "/merges.txt", merges);
    dir.write(folder + "/vocab.json", vocabulary);
    CHECK_THROWS_WITH(Tokenizer::open(dir / folder), Catch::Contains(reason));
  };
  refused("[1, 2]", good.merges, "is not a JSON object of tokens and ids; it is damaged");
  refused("{\"a\": 0, \"b\": 0}", good.merges,
          "token 'b' has id 0, which is taken or beyond the 2 tokens; ids must be 0, 1, 2, ...");
  refused("{\"a\": 0, \"b\": 7}", good.merges, "token 'b' has id 7");
  refused("{\"a\": 0, \"b\": 1}", good.merges, "has no token for byte 0; a byte-level vocabulary needs all 256");
  refused(good.vocabulary, "#version: 0.2\nab\n", "merges:2: 'ab' is not two tokens with a space between them");
  refused(good.vocabulary, "#version: 0.2\nt h</w>\n",
          "merges:2: 't h</w>' ends a word with </w>, which byte-level BPE of GPT-2's kind does not");
  refused(good.vocabulary, "#version: 0.2\nqq zz\n", "merges:2: 'qq zz' names a token that the vocabulary lacks");
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("t/tokenizer.json", "{\"model\": {\"type\": \"Unigram\"}}")),
                    Catch::Contains("tokenizer.json"));
  CHECK_THROWS_WITH(Tokenizer::open(dir.write("u/tokenizer.json", "no json")), Catch::Contains("tokenizer.json"));
}

TEST_CASE("ALBERT's conventions over SentencePiece give the ids of transformers", "[data][tokenizer]") {
  const std::string folder = SOURCE_DIR "/../shared/data/tokenizers/";
  if (!std::filesystem::exists(folder + "hf-expected-encodings.json")) {
    WARN("the published vocabularies are not next to this checkout");
    return;
  }
  TempDir dir;
  dir.write("albert/tokenizer_config.json",
            "{\"tokenizer_class\": \"AlbertTokenizer\", \"do_lower_case\": true, \"keep_accents\": false}");
  std::filesystem::copy_file(folder + "albert-base-v2-30k.model", dir / "albert/spiece.model");
  const auto tokenizer = Tokenizer::open(dir / "albert");
  const auto expected = nlohmann::json::parse(read_file(folder + "hf-expected-encodings.json"));
  for (size_t i = 0; i < expected["texts"].size(); ++i) {
    auto wanted = expected["expected"]["albert-base-v2"]["input_ids"][i].get<std::vector<int32_t>>();
    wanted.erase(std::find(wanted.begin(), wanted.end(), 3), wanted.end());  // [SEP] and padding
    wanted.erase(wanted.begin());                                            // [CLS]
    CHECK(tokenizer.encode(expected["texts"][i].get<std::string>()) == wanted);
  }
  // A comma after a digit is a token of its own, accents are stripped, capitals are lower-cased.
  const auto ids = tokenizer.encode("It cost 9, 1");
  REQUIRE(ids.size() == 5);
  CHECK(tokenizer.piece(ids[2]) == "\u25819");
  CHECK(tokenizer.piece(ids[3]) == ",");
  CHECK(tokenizer.encode("CAFÉ") == tokenizer.encode("cafe"));
}
