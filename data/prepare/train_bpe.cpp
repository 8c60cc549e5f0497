#include "data/prepare/train_tokenizer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <queue>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/utf8.h"
#include "data/tokenizers/wordpiece.h"

namespace cloze {

namespace {

void stop_if_interrupted() {
  if (interrupted) throw Interrupted("stopped while a tokenizer was trained; nothing was written");
}

/// How far a training has come, shown twice a second once it has taken half a second.
class TrainingProgress {
 public:
  TrainingProgress() = default;
  TrainingProgress(const TrainingProgress&) = delete;
  TrainingProgress& operator=(const TrainingProgress&) = delete;
  ~TrainingProgress() { end_progress(); }
  /// units  that are counted, such as `sentences`
  void show(size_t done, size_t total, const char* units) {
    const double passed = seconds_since(start_);
    if (passed - shown_ < 0.5) return;
    shown_ = passed;
    const auto counted = concat(thousands(done), " of ", thousands(total), " ", units);
    const double fraction = static_cast<double>(done) / static_cast<double>(std::max<size_t>(total, 1));
    log_progress(Progress{{"[data]    tokenizer", counted, duration(shown_)}, fraction}, false);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_ = 0;
};

uint64_t pair_of(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

/// The frequency of a pair, and the words in which it may occur.
struct PairFacts {
  int64_t count = 0;
  std::vector<uint32_t> words;
};

struct Candidate {
  int64_t count;
  uint64_t pair;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

/// Vocabulary entries by id, each spelling once.
struct Entries {
  std::vector<std::string> list;
  std::unordered_map<std::string, int32_t> ids;
  int32_t add(const std::string& piece) {
    const auto [at, fresh] = ids.emplace(piece, static_cast<int32_t>(list.size()));
    if (fresh) list.push_back(piece);
    return at->second;
  }
};

/// Merges a pair within a word; adds to `changes` what that changes in the counts of pairs. False if the word does not
/// have the pair.
bool merge_in(CountedWord& word, int32_t left, int32_t right, int32_t joined, std::map<uint64_t, int64_t>& changes) {
  auto& list = word.symbols;
  const auto times = static_cast<int64_t>(word.count);
  size_t out = 0;
  bool touched = false;
  for (size_t i = 0; i < list.size();) {
    if (i + 1 == list.size() || list[i] != left || list[i + 1] != right) {
      list[out++] = list[i++];
      continue;
    }
    // Pairs with the neighbours are replaced by those of the new symbol.
    if (out > 0) {
      changes[pair_of(list[out - 1], left)] -= times;
      changes[pair_of(list[out - 1], joined)] += times;
    }
    if (i + 2 < list.size()) {
      changes[pair_of(right, list[i + 2])] -= times;
      changes[pair_of(joined, list[i + 2])] += times;
    }
    changes[pair_of(left, right)] -= times;
    list[out++] = joined;
    i += 2;
    touched = true;
  }
  list.resize(out);
  return touched;
}

/// The pairs of neighbouring symbols, counted.
std::unordered_map<uint64_t, PairFacts> pairs_of(const std::vector<CountedWord>& words) {
  std::unordered_map<uint64_t, PairFacts> pairs;
  for (uint32_t w = 0; w < words.size(); ++w) {
    stop_if_interrupted();
    for (size_t i = 0; i + 1 < words[w].symbols.size(); ++i) {
      auto& facts = pairs[pair_of(words[w].symbols[i], words[w].symbols[i + 1])];
      facts.count += static_cast<int64_t>(words[w].count);
      if (facts.words.empty() || facts.words.back() != w) facts.words.push_back(w);
    }
  }
  return pairs;
}

/// Notes the pairs with the symbol `whole` of a word.
void note_pairs(const std::vector<int32_t>& symbols, int32_t joined, uint32_t word,
                std::unordered_map<uint64_t, PairFacts>& pairs) {
  for (size_t i = 0; i + 1 < symbols.size(); ++i) {
    if (symbols[i] != joined && symbols[i + 1] != joined) continue;
    auto& known = pairs[pair_of(symbols[i], symbols[i + 1])].words;
    if (known.empty() || known.back() != word) known.push_back(word);
  }
}

}  // namespace

void learn_merges(std::vector<CountedWord> words, const std::function<std::optional<int32_t>(int32_t, int32_t)>& merged,
                  uint64_t min_count) {
  auto pairs = pairs_of(words);
  // Counts may be stale: a pair is pushed again whenever its count grows, and checked when popped.
  std::priority_queue<Candidate> queue;
  for (const auto& [pair, facts] : pairs) queue.push({facts.count, pair});
  std::map<uint64_t, int64_t> changes;
  while (!queue.empty()) {
    stop_if_interrupted();
    const auto [count, pair] = queue.top();
    queue.pop();
    auto& facts = pairs[pair];
    if (facts.count != count) {
      if (facts.count > 0) queue.push({facts.count, pair});
      continue;
    }
    if (count < static_cast<int64_t>(std::max<uint64_t>(min_count, 1))) break;
    const auto left = static_cast<int32_t>(pair >> 32), right = static_cast<int32_t>(pair & 0xFFFFFFFF);
    const auto joined = merged(left, right);
    if (!joined) break;
    changes.clear();
    const auto occurrences = std::move(facts.words);
    facts.words.clear();
    for (const auto w : occurrences)
      if (merge_in(words[w], left, right, *joined, changes)) note_pairs(words[w].symbols, *joined, w, pairs);
    for (const auto& [changed, by] : changes) {
      auto& now = pairs[changed];
      now.count += by;
      if (by > 0) queue.push({now.count, changed});
    }
  }
}

namespace {

/// The pretokens of sentences as words of byte symbols, counted.
std::vector<CountedWord> byte_words(const std::vector<std::string>& sentences, const std::vector<int32_t>& bytes,
                                    TrainingProgress& progress) {
  std::map<std::string, uint64_t, std::less<>> counts;
  for (size_t s = 0; s < sentences.size(); ++s) {
    stop_if_interrupted();
    each_pretoken(sentences[s], [&](std::string_view token) {
      if (const auto found = counts.find(token); found != counts.end())
        ++found->second;
      else
        counts.emplace(token, 1);
    });
    progress.show(s + 1, sentences.size(), "sentences");
  }
  std::vector<CountedWord> words;
  for (const auto& [token, count] : counts) {
    auto& word = words.emplace_back();
    word.count = count;
    for (const char c : token) word.symbols.push_back(bytes[static_cast<uint8_t>(c)]);
  }
  return words;
}

}  // namespace

ByteBpeFiles train_byte_bpe(const std::vector<std::string>& sentences, int64_t size) {
  Entries entries;
  for (const auto* special : {"<s>", "<pad>", "</s>", "<unk>"}) entries.add(special);
  std::vector<std::pair<std::string, size_t>> alphabet;
  for (size_t b = 0; b < 256; ++b) alphabet.emplace_back(byte_symbol(static_cast<uint8_t>(b)), b);
  std::sort(alphabet.begin(), alphabet.end());  // UTF-8 sorts as code points do
  std::vector<int32_t> bytes(256);
  for (const auto& [symbol, b] : alphabet) bytes[b] = entries.add(symbol);
  const auto max_size = static_cast<size_t>(std::max<int64_t>(size, 0));
  require<ConfigError>(max_size > entries.list.size(), "--vocab-size ", size,
                       " is too small for byte-level BPE, which has ", entries.list.size() + 1,
                       " tokens before the first merge; raise it");
  TrainingProgress progress;
  ByteBpeFiles files;
  files.merges = "#version: 0.2\n";
  learn_merges(byte_words(sentences, bytes, progress), [&](int32_t left, int32_t right) -> std::optional<int32_t> {
    if (entries.list.size() + 1 >= max_size) return std::nullopt;  // the last one is <mask>
    progress.show(entries.list.size(), max_size, "pieces");
    const auto a = entries.list[static_cast<size_t>(left)], b = entries.list[static_cast<size_t>(right)];
    files.merges += a + " " + b + "\n";
    return entries.add(a + b);
  });
  entries.add("<mask>");
  for (size_t id = 0; id < entries.list.size(); ++id)  // in the order of ids, which a JSON object would lose
    files.vocabulary += (id == 0 ? "{" : ",") + json_text(nlohmann::json(entries.list[id])) + ":" + std::to_string(id);
  files.vocabulary += "}\n";
  return files;
}

namespace {

/// Calls `f(character)` for each code point of a word.
template <class F>
void each_character(const std::string& word, const F& f) {
  for (size_t at = 0, from = 0; at < word.size(); from = at) {
    next_code_point(word, at);
    f(word.substr(from, at - from));
  }
}

using WordCounts = std::map<std::string, uint64_t, std::less<>>;

/// The words of BERT's basic tokenizer.
WordCounts count_words(const std::vector<std::string>& sentences, bool lowercase, TrainingProgress& progress) {
  WordCounts counts;
  for (size_t s = 0; s < sentences.size(); ++s) {
    stop_if_interrupted();
    const auto spaced = basic_tokenize(sentences[s], WordPieceRules::bert(lowercase));
    for (size_t begin = 1; begin < spaced.size();) {
      const size_t end = std::min(spaced.find(' ', begin), spaced.size());
      if (end > begin) ++counts[spaced.substr(begin, end - begin)];
      begin = end + 1;
    }
    progress.show(s + 1, sentences.size(), "sentences");
  }
  return counts;
}

using Frequencies = std::vector<std::pair<uint64_t, std::string>>;

/// The characters of words with their frequencies, the most frequent first and equally frequent ones by code point.
/// `inside`: receives those that continue a word.
Frequencies count_characters(const WordCounts& counts, std::set<std::string>& inside) {
  std::map<std::string, uint64_t> frequency;
  for (const auto& [word, count] : counts) {
    stop_if_interrupted();
    bool first = true;
    each_character(word, [&, times = count](const std::string& c) {
      frequency[c] += times;
      if (!std::exchange(first, false)) inside.insert(c);
    });
  }
  Frequencies characters;
  for (const auto& [c, n] : frequency) characters.emplace_back(n, c);
  std::stable_sort(characters.begin(), characters.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  return characters;
}

/// How many of the characters an alphabet has.
size_t kept_characters(const Frequencies& characters, const Alphabet& alphabet) {
  double all = 0;
  for (const auto& [n, c] : characters) all += static_cast<double>(n);
  double covered = 0;
  size_t kept = 0;
  while (kept < characters.size() && (covered < alphabet.coverage * all || kept < alphabet.least))
    covered += static_cast<double>(characters[kept++].first);
  return kept;
}

void say_what_is_left_out(const Frequencies& characters, size_t kept, const Alphabet& alphabet) {
  if (kept == characters.size()) return;
  log_info("data", concat("the vocabulary has the ", thousands(kept), " most frequent of ",
                          thousands(characters.size()), " characters, which cover a share of ", alphabet.coverage,
                          " of the text or more (--character-coverage); words with rarer ones are unknown"));
}

/// The entries before any merge: special tokens, the characters of the alphabet, and those of them that continue a
/// word.
Entries wordpiece_characters(const WordCounts& counts, const Alphabet& alphabet) {
  std::set<std::string> inside;
  auto characters = count_characters(counts, inside);
  const auto kept = kept_characters(characters, alphabet);
  say_what_is_left_out(characters, kept, alphabet);
  characters.resize(kept);
  std::sort(characters.begin(), characters.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  Entries entries;
  for (const auto* special : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) entries.add(special);
  for (const auto& [n, c] : characters) entries.add(c);
  for (const auto& [n, c] : characters)
    if (inside.count(c)) entries.add("##" + c);
  return entries;
}

/// Words as characters; those with a rare one are left out.
std::vector<CountedWord> words_of(const WordCounts& counts, const Entries& entries) {
  std::vector<CountedWord> words;
  for (const auto& [word, count] : counts) {
    stop_if_interrupted();
    CountedWord counted;
    counted.count = count;
    bool known = true;
    each_character(word, [&](const std::string& c) {
      const auto found = entries.ids.find(counted.symbols.empty() ? c : "##" + c);
      known = known && found != entries.ids.end();
      if (known) counted.symbols.push_back(found->second);
    });
    if (known) words.push_back(std::move(counted));
  }
  return words;
}

}  // namespace

std::string train_wordpiece(const std::vector<std::string>& sentences, int64_t size, bool lowercase,
                            const Alphabet& alphabet) {
  TrainingProgress progress;
  const auto counts = count_words(sentences, lowercase, progress);
  auto entries = wordpiece_characters(counts, alphabet);
  const auto max_size = static_cast<size_t>(std::max<int64_t>(size, 0));
  require<ConfigError>(max_size >= entries.list.size(), "--vocab-size ", size,
                       " is too small for WordPiece on this text, whose special tokens and characters are ",
                       entries.list.size(),
                       " tokens; raise it to that or more, or leave rare characters out with a --character-coverage "
                       "below ",
                       alphabet.coverage);
  learn_merges(words_of(counts, entries), [&](int32_t left, int32_t right) -> std::optional<int32_t> {
    if (entries.list.size() >= max_size) return std::nullopt;
    progress.show(entries.list.size(), max_size, "pieces");
    return entries.add(entries.list[static_cast<size_t>(left)] +
                       entries.list[static_cast<size_t>(right)].substr(2));  // a continuation starts with ##
  });
  std::string file;
  for (const auto& piece : entries.list) file += piece + "\n";
  return file;
}

}  // namespace cloze
