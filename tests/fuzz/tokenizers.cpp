// Tokenizers from elsewhere: each file is opened, and cuts a text that has a bit of everything.
#include "data/tokenizer.h"

#include <filesystem>

#include "tests/fuzz/targets.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view sample =
    "The cat's mat, 1,234 caf\xC3\xA9 e\xCC\x81 \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80 <mask> [MASK]\n\ta_b  "
    "\xEF\xBF\xBD\xFF x\xE2\x96\x81y";

/// Opens a tokenizer and uses it as a run does.
void use(const std::string& path) {
  const auto tokenizer = Tokenizer::open(path).with_special_tokens();
  std::vector<int64_t> ids;
  for (const bool inside : {false, true})
    for (const auto id : tokenizer.encode(sample, inside)) ids.push_back(id);
  for (const auto id : tokenizer.encode_after("mat")) ids.push_back(id);
  for (const auto& span : tokenizer.encode_with_offsets(sample))
    if (span.begin > span.end || span.end > sample.size()) throw std::logic_error("a token outside of its text");
  for (const auto id : ids)
    if (id < 0 || id >= tokenizer.size()) throw std::logic_error("an id outside of the vocabulary");
  tokenizer.decode(ids);
  tokenizer.fingerprint();
}

/// A folder with one file, opened as a whole.
bool opens(const std::string& file, std::string_view bytes) {
  const auto folder = scratch() / ("tokenizer-" + file);
  const auto path = scratch().write("tokenizer-" + file + "/" + file, std::string(bytes));
  return accepts([&] { use(folder); });
}

constexpr const char* small_vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\n'\nmat\n";

}  // namespace

bool fuzz_tokenizer_json(std::string_view bytes) { return opens("tokenizer.json", bytes); }

bool fuzz_vocab_txt(std::string_view bytes) { return opens("vocab.txt", bytes); }

bool fuzz_sentencepiece(std::string_view bytes) { return opens("spiece.model", bytes); }

/// The bytes as each of the files that stand next to a vocabulary.
bool fuzz_tokenizer_facts(std::string_view bytes) {
  const auto folder = scratch() / "facts";
  scratch().write("facts/vocab.txt", small_vocabulary);
  bool all = true;
  for (const std::string name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json",
                                 "cloze_tokenizer.json"}) {
    const auto path = scratch().write("facts/" + name, std::string(bytes));
    all = accepts([&] { use(folder); }) && all;
    fs::remove(path);
  }
  return all;
}

/// vocab.json, an empty line, merges.txt.
bool fuzz_byte_bpe(std::string_view bytes) {
  const auto cut = std::min(bytes.find("\n\n"), bytes.size());
  scratch().write("byte_bpe/vocab.json", std::string(bytes.substr(0, cut)));
  scratch().write("byte_bpe/merges.txt", std::string(bytes.substr(std::min(cut + 2, bytes.size()))));
  return accepts([] { use(scratch() / "byte_bpe"); });
}

}  // namespace cloze
