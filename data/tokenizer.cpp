#include "data/tokenizer.h"

#include <sentencepiece_processor.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "data/piece_trie.h"
#include "data/word_cache.h"
#include "data/wordpiece.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr const char* facts_file = "cloze_tokenizer.json";
constexpr std::string_view space_mark = "\u2581";
/// SentencePiece adds scores in fp32 from the start of the text: in `longest_by_words` bytes they reach some -1e4, where
/// the sums of a word are off by less than this.
constexpr size_t longest_by_words = 2 << 10;
constexpr double rounding_of_scores = 0.01;

/// What a SentencePiece file says that the library does not tell (sentencepiece_model.proto: ModelProto).
struct ModelFacts {
  std::string normalizer;      ///< name of its rules
  bool user_defined = false;   ///< has pieces that are taken wherever they occur
};

/// Calls `f(field, number, bytes)` for each field of a protocol buffer message; stops where it is damaged.
template <class F>
void each_field(std::string_view message, const F& f) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0; at < message.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(message[at++]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    return value;
  };
  while (at < message.size()) {
    const uint64_t tag = varint(), wire = tag & 7;
    const uint64_t number = wire == 0 || wire == 2 ? varint() : 0;
    const uint64_t size = wire == 2 ? number : wire == 5 ? 4 : wire == 1 ? 8 : 0;
    if (size > message.size() - at || wire == 3 || wire == 4 || wire > 5) return;
    f(tag >> 3, number, message.substr(at, size));
    at += size;
  }
}

ModelFacts model_facts(std::string_view model) {
  ModelFacts facts;
  each_field(model, [&](uint64_t field, uint64_t, std::string_view content) {
    each_field(field == 1 || field == 3 ? content : std::string_view(), [&](uint64_t inner, uint64_t number, std::string_view text) {
      if (field == 1 && inner == 3 && number == 4) facts.user_defined = true;
      if (field == 3 && inner == 1) facts.normalizer = text;
    });
  });
  return facts;
}

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

struct Tokenizer::Impl {
  std::string kind, bytes;   // the model or vocabulary file, as it was read
  std::unique_ptr<sentencepiece::SentencePieceProcessor> sentencepiece;
  std::unique_ptr<WordPiece> wordpiece;
  bool lowercase = false;
  std::vector<std::string> pieces;
  PieceTrie trie;               // of SentencePiece's pieces that text can have
  std::vector<double> scores;
  std::unordered_map<std::string_view, int64_t> ids;
  SpecialIds special;
  std::vector<uint8_t> is_special, starts_word;
  bool plain_ascii = false;   // a unigram model that leaves ASCII as it is, but for capitals
  bool by_words = false;   // a text's ids are those of its words, one after the other
  uint64_t serial = 0;     // of this tokenizer among all that were opened

  void encode_piece(std::string_view text, std::vector<int32_t>& out) const {
    if (wordpiece) return wordpiece->encode(text, out);
    thread_local std::vector<int> found;
    found.clear();
    sentencepiece->Encode(absl::string_view(text.data(), text.size()), &found).IgnoreError();
    out.insert(out.end(), found.begin(), found.end());
  }

  std::vector<int32_t> encode_whole(std::string_view text) const {
    std::vector<int32_t> out;
    encode_piece(text, out);
    return out;
  }

  /// Appends the ids of a word; false when its best two ways to be cut are so close that the rounding of the scores
  /// before it decides between them.
  bool encode_word(std::string_view word, std::vector<int32_t>& out) const {
    thread_local std::string normal;
    if (plain_ascii && std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 0x7F; })) {
      normal.assign(space_mark);
      for (const char c : word) normal += lowercase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      const size_t before = out.size();
      const double gap = cut(normal, out);
      if (gap >= 0) return gap > rounding_of_scores;
      out.resize(before);
    }
    const size_t before = out.size();
    encode_piece(word, out);
    if (kind != "unigram" || out.size() - before < 2) return true;
    normal.clear();
    for (size_t i = before; i < out.size(); ++i) {
      if (is_special[static_cast<size_t>(out[i])]) return false;   // an unknown character hides its spelling
      normal += pieces[static_cast<size_t>(out[i])];
    }
    std::vector<int32_t> same;
    return cut(normal, same) > rounding_of_scores;
  }

  /// Appends the likeliest pieces of a normalised word; returns by how much the second best way is worse, or -1 when no
  /// way is known. Source: Kudo 2018, section 3.2 (arXiv 1804.10959).
  double cut(std::string_view word, std::vector<int32_t>& out) const {
    constexpr double unreached = -1e30;
    struct Place {
      double best = unreached, second = unreached;
      int32_t id = -1;
      uint32_t from = 0;
    };
    thread_local std::vector<Place> places;
    places.assign(word.size() + 1, Place{});
    places[0].best = 0;
    for (uint32_t begin = 0; begin < word.size(); ++begin) {
      const double best = places[begin].best, second = places[begin].second;
      if (best == unreached) continue;
      trie.each_prefix(word.substr(begin), [&](size_t count, int32_t id) {
        const double score = scores[static_cast<size_t>(id)];
        auto& place = places[begin + count];
        if (best + score > place.best) {
          place.second = std::max(place.best, second + score);
          place.best = best + score, place.id = id, place.from = begin;
        } else {
          place.second = std::max(place.second, best + score);
        }
      });
    }
    if (places.back().best == unreached) return -1;
    const auto before = static_cast<std::ptrdiff_t>(out.size());
    for (size_t at = word.size(); at > 0; at = places[at].from) out.push_back(places[at].id);
    std::reverse(out.begin() + before, out.end());
    return places.back().best - places.back().second;
  }

  /// True when no piece reaches over a space and spaces are a mark before a word, so that words do not see each other.
  bool words_are_apart() const {
    for (size_t id = 0; id < pieces.size(); ++id)
      if (pieces[id].find(space_mark, 1) != std::string::npos || pieces[id].find(' ') != std::string::npos) return false;
    const auto mark = ids.find(space_mark);
    const auto one = encode_whole("x"), two = encode_whole("x  x");
    if (mark == ids.end() || is_special[static_cast<size_t>(mark->second)] || one.empty() || !starts_word[static_cast<size_t>(one[0])]) return false;
    auto twice = one;
    twice.insert(twice.end(), one.begin(), one.end());
    return twice == two && encode_whole(" x ") == one && encode_whole(" ").empty();
  }

  void load_sentencepiece(const std::string& path) {
    sentencepiece = std::make_unique<sentencepiece::SentencePieceProcessor>();
    const auto status = sentencepiece->LoadFromSerializedProto(bytes);
    require<DataError>(status.ok() && sentencepiece->GetPieceSize() > 0, path, ": is not a SentencePiece model, or it is damaged; get or train it again");
    for (int id = 0; id < sentencepiece->GetPieceSize(); ++id) {
      pieces.push_back(sentencepiece->IdToPiece(id));
      scores.push_back(static_cast<double>(sentencepiece->GetScore(id)));
      if (!sentencepiece->IsControl(id) && !sentencepiece->IsUnknown(id) && !sentencepiece->IsByte(id) && !sentencepiece->IsUnused(id)) trie.add(pieces.back(), id);
      const bool marked = pieces.back().compare(0, space_mark.size(), space_mark) == 0;
      const bool other = sentencepiece->IsControl(id) || sentencepiece->IsUnknown(id);
      is_special.push_back(other);
      starts_word.push_back(marked || other);
    }
    kind = is_bpe() ? "bpe" : "unigram";
    const auto facts = model_facts(bytes);
    const bool folds = facts.normalizer == "nmt_nfkc_cf" || facts.normalizer == "nfkc_cf";
    plain_ascii = kind == "unigram" && !facts.user_defined && (folds || facts.normalizer == "nmt_nfkc" || facts.normalizer == "nfkc" || facts.normalizer == "identity");
    lowercase = folds;
    const auto find = [&](std::initializer_list<const char*> names) -> int64_t {
      for (const auto* name : names)
        for (size_t id = 0; id < pieces.size(); ++id)
          if (pieces[id] == name) return static_cast<int64_t>(id);
      return -1;
    };
    special.unk = sentencepiece->unk_id();
    special.pad = sentencepiece->pad_id() >= 0 ? sentencepiece->pad_id() : find({"[PAD]", "<pad>"});
    special.cls = find({"[CLS]", "<cls>"}) >= 0 ? find({"[CLS]", "<cls>"}) : sentencepiece->bos_id() >= 0 ? sentencepiece->bos_id() : find({"<s>"});
    special.sep = find({"[SEP]", "<sep>"}) >= 0 ? find({"[SEP]", "<sep>"}) : sentencepiece->eos_id() >= 0 ? sentencepiece->eos_id() : find({"</s>"});
    special.mask = find({"[MASK]", "<mask>"});
  }

  bool is_bpe() const {
    // Scores of BPE pieces fall by exactly one from piece to piece.
    int steps = 0, ones = 0;
    for (int id = 1; id < sentencepiece->GetPieceSize() && steps < 100; ++id) {
      if (is_special[static_cast<size_t>(id)] || is_special[static_cast<size_t>(id - 1)] || sentencepiece->IsByte(id) || sentencepiece->IsByte(id - 1)) continue;
      ++steps;
      ones += sentencepiece->GetScore(id - 1) - sentencepiece->GetScore(id) == 1.0F;
    }
    return steps > 0 && ones == steps;
  }

  void load_wordpiece(const std::string& path, bool fold) {
    kind = "wordpiece";
    lowercase = fold;
    wordpiece = std::make_unique<WordPiece>(bytes, path, fold);
    pieces = wordpiece->pieces();
    const auto find = [&](const char* name) {
      const auto found = std::find(pieces.begin(), pieces.end(), name);
      return found == pieces.end() ? int64_t{-1} : static_cast<int64_t>(found - pieces.begin());
    };
    special = {find("[PAD]"), find("[UNK]"), find("[CLS]"), find("[SEP]"), find("[MASK]")};
    for (const auto& piece : pieces) {
      starts_word.push_back(piece.size() <= 2 || piece.compare(0, 2, "##") != 0);
      is_special.push_back(false);
    }
  }

  /// Appends the special tokens that the model lacks, and makes the tables.
  void finish() {
    const auto settle = [&](int64_t& id, const char* piece) {
      if (id < 0) {
        id = static_cast<int64_t>(pieces.size());
        pieces.emplace_back(piece);
        starts_word.push_back(true);
        is_special.push_back(true);
      }
      is_special[static_cast<size_t>(id)] = starts_word[static_cast<size_t>(id)] = true;
    };
    settle(special.unk, "[UNK]");
    settle(special.pad, "[PAD]");
    settle(special.cls, "[CLS]");
    settle(special.sep, "[SEP]");
    settle(special.mask, "[MASK]");
    for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id], static_cast<int64_t>(id));
    static std::atomic<uint64_t> opened{0};
    serial = ++opened;
    by_words = wordpiece || words_are_apart();
  }
};

namespace {

/// What a folder says of upper case; nullopt when it says nothing.
std::optional<bool> said_lowercase(const std::string& folder) {
  for (const auto* name : {facts_file, "tokenizer_config.json"}) {
    const auto path = fs::path(folder) / name;
    if (!fs::exists(path)) continue;
    const auto facts = json::parse(read_text(path.string(), 64 << 20), nullptr, false);
    require<DataError>(facts.is_object(), path.string(), ": is not a JSON object; it is damaged");
    if (facts.contains("do_lower_case") && facts["do_lower_case"].is_boolean()) return facts["do_lower_case"].get<bool>();
  }
  return std::nullopt;
}

bool has_upper_case(const std::string& vocabulary) {
  // Special tokens and unused places are written in brackets.
  for (size_t begin = 0; begin < vocabulary.size();) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    for (size_t at = begin; vocabulary[begin] != '[' && at < end; ++at)
      if (vocabulary[at] >= 'A' && vocabulary[at] <= 'Z') return true;
    begin = end + 1;
  }
  return false;
}

std::string model_file(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  for (const auto* name : {"vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model"})
    if (fs::exists(fs::path(path) / name)) return (fs::path(path) / name).string();
  fail<DataError>(path, ": holds no tokenizer (vocab.txt, spiece.model, tokenizer.model); name the file, or train one with `cloze prepare`");
}

}  // namespace

Tokenizer Tokenizer::open(const std::string& path) {
  require<DataError>(fs::exists(path), path, ": no such tokenizer; name a folder, a SentencePiece .model or a vocab.txt");
  const auto file = model_file(path);
  auto impl = std::make_shared<Impl>();
  try {
    impl->bytes = read_text(file, 256 << 20);
  } catch (const DataError&) {
    throw;
  } catch (const Error& e) {
    throw DataError(e.what());
  }
  require<DataError>(!impl->bytes.empty(), file, ": is empty; it holds no tokenizer");
  if (fs::path(file).extension() == ".txt") {
    const auto folder = fs::path(file).parent_path().string();
    const auto said = said_lowercase(folder.empty() ? "." : folder);
    const bool fold = said ? *said : !has_upper_case(impl->bytes);
    if (!said) log_info("data", words(file, fold ? " has no capitals: text is lower-cased" : " has capitals: text keeps its case"));
    impl->load_wordpiece(file, fold);
  } else {
    impl->load_sentencepiece(file);
  }
  impl->finish();
  Tokenizer tokenizer;
  tokenizer.impl_ = std::move(impl);
  return tokenizer;
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  if (!impl_->by_words || text.size() > longest_by_words || text.find(space_mark) != std::string_view::npos) return impl_->encode_whole(text);
  thread_local WordCache cache;
  std::vector<int32_t> ids;
  const auto encode_word = [&](std::string_view word, std::vector<int32_t>& out) { return impl_->encode_word(word, out); };
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (end > begin && !cache.append(impl_->serial, text.substr(begin, end - begin), ids, encode_word)) return impl_->encode_whole(text);
    begin = end + 1;
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  if (impl_->sentencepiece) {
    std::vector<int> pieces;
    for (const auto id : ids)
      if (!is_special(id)) pieces.push_back(static_cast<int>(id));
    impl_->sentencepiece->Decode(pieces, &text).IgnoreError();
    return text;
  }
  for (const auto id : ids) {
    if (is_special(id)) continue;
    const auto spelled = piece(id);
    if (starts_word(id)) text += (text.empty() ? "" : " ") + spelled;
    else text += spelled.substr(2);
  }
  return text;
}

int64_t Tokenizer::size() const { return static_cast<int64_t>(impl_->pieces.size()); }
const SpecialIds& Tokenizer::special() const { return impl_->special; }
std::string Tokenizer::piece(int64_t id) const { return id >= 0 && id < size() ? impl_->pieces[static_cast<size_t>(id)] : "?"; }
int64_t Tokenizer::id(std::string_view piece) const {
  const auto found = impl_->ids.find(piece);
  return found == impl_->ids.end() ? -1 : found->second;
}
bool Tokenizer::is_special(int64_t id) const { return id < 0 || id >= size() || impl_->is_special[static_cast<size_t>(id)]; }
bool Tokenizer::starts_word(int64_t id) const { return id < 0 || id >= size() || impl_->starts_word[static_cast<size_t>(id)]; }
std::string Tokenizer::kind() const { return impl_->kind; }

std::string Tokenizer::fingerprint() const {
  const auto hash = XXH3_64bits_withSeed(impl_->bytes.data(), impl_->bytes.size(), impl_->lowercase ? 1 : 0);
  return hex(hash);
}

void Tokenizer::save(const std::string& folder) const {
  fs::create_directories(folder);
  const bool wordpiece = impl_->wordpiece != nullptr;
  const auto& s = impl_->special;
  write_atomic((fs::path(folder) / (wordpiece ? "vocab.txt" : "spiece.model")).string(), impl_->bytes);
  json facts{{"format", "cloze-tokenizer"}, {"version", 1}, {"kind", kind()}, {"size", size()}, {"fingerprint", fingerprint()},
             {"do_lower_case", impl_->lowercase},
             {"special", {{"pad", s.pad}, {"unk", s.unk}, {"cls", s.cls}, {"sep", s.sep}, {"mask", s.mask}}}};
  write_atomic((fs::path(folder) / facts_file).string(), facts.dump(2) + "\n");
  if (!wordpiece) return;
  const json config{{"tokenizer_class", "BertTokenizer"}, {"do_lower_case", impl_->lowercase}, {"pad_token", "[PAD]"}, {"unk_token", "[UNK]"},
                    {"cls_token", "[CLS]"}, {"sep_token", "[SEP]"}, {"mask_token", "[MASK]"}};
  write_atomic((fs::path(folder) / "tokenizer_config.json").string(), config.dump(2) + "\n");
}

}  // namespace cloze
