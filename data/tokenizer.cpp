#include "data/tokenizer.h"

#include <xxhash.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"
#include "core/log.h"
#include "data/tokenizers/pipeline.h"

namespace cloze {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* facts_file = "cloze_tokenizer.json";
constexpr uint64_t most_bytes = 256 << 20;

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string read_file(const std::string& path) {
  try {
    return read_text(path, most_bytes);
  } catch (const DataError&) {
    throw;
  } catch (const Error& e) {
    throw DataError(e.what());
  }
}

Json read_object(const std::string& path) {
  auto content = Json::parse(read_file(path), nullptr, false);
  require<DataError>(content.is_object(), path, ": is not a JSON object; it is damaged");
  return content;
}

/// What a folder says beside its vocabulary.
struct Said {
  std::optional<bool> lowercase;
  int64_t sentinels = 0;
  SentencePieceRules rules;
  WordPieceRules words;            ///< but for `lowercase`, which is above
  bool add_prefix_space = false;
  std::vector<std::string> passed_over;   ///< sentences on what is said and not honoured
};

/// BERT's rules as a folder says them. Beside a tokenizer_config.json they are those of transformers, where a word of
/// more than 100 characters is unknown and text is lower-cased unless said otherwise; beside a bare vocabulary those of
/// google-research/bert.
/// Differs: transformers 5 passes over `do_basic_tokenize`, `never_split` and `clean_text`, and so does this, but says so.
void read_word_rules(const Json& facts, const std::string& path, bool ours, Said& found) {
  const auto flag = [&](const char* key) { return facts.contains(key) && facts[key].is_boolean() ? std::optional<bool>(facts[key].get<bool>()) : std::nullopt; };
  require<DataError>(facts.value("tokenizer_class", Json()) != "BertJapaneseTokenizer", path,
                     ": BertJapaneseTokenizer cuts words by a dictionary of Japanese, which Cloze does not have; give text whose words stand apart");
  auto& rules = found.words;
  rules.as_tokenizers = flag("as_tokenizers").value_or(!ours);
  rules.longest_word = ours ? 200 : 100;
  if (!ours) found.lowercase = flag("do_lower_case").value_or(true);
  rules.strip_accents = flag("strip_accents").value_or(found.lowercase.value_or(true));
  rules.split_ideographs = flag("tokenize_chinese_chars").value_or(true);
  const auto longest = facts.find("max_input_chars_per_word");
  if (longest != facts.end() && longest->is_number_unsigned() && ours) rules.longest_word = longest->get<size_t>();
  for (const auto* key : {"do_basic_tokenize", "clean_text"})
    if (!flag(key).value_or(true)) found.passed_over.push_back(words(path, ": ", key, " is false, which transformers passes over since version 5; so does Cloze"));
}

Said said(const std::string& folder) {
  Said found;
  for (const auto* name : {facts_file, "tokenizer_config.json"}) {
    const auto path = (fs::path(folder) / name).string();
    if (!fs::exists(path)) continue;
    const auto facts = read_object(path);
    const auto flag = [&](const char* key) { return facts.contains(key) && facts[key].is_boolean() ? std::optional<bool>(facts[key].get<bool>()) : std::nullopt; };
    if (!found.lowercase) found.lowercase = flag("do_lower_case");
    for (const auto* key : {"sentinels", "extra_ids"})
      if (facts.contains(key) && facts[key].is_number_integer()) found.sentinels = std::clamp<int64_t>(facts[key].get<int64_t>(), 0, 100000);
    const auto family = facts.value("tokenizer_class", Json());
    if (family == "AlbertTokenizer" || family == "AlbertTokenizerFast" || flag("split_digit_commas").value_or(false)) {
      found.rules.split_digit_commas = true;
      found.rules.lowercase = flag("do_lower_case").value_or(true);
      found.rules.strip_accents = !flag("keep_accents").value_or(false);
    }
    const bool ours = std::string_view(name) == facts_file;
    found.add_prefix_space = flag("add_prefix_space").value_or(false);
    if (fs::exists(fs::path(folder) / "vocab.txt")) read_word_rules(facts, path, ours, found);
    if (ours) break;   // our own facts are complete
  }
  // A model of Hugging Face's without a word on its tokenizer: as its own code cuts words, but for capitals, which the vocabulary shows.
  const bool silent = !fs::exists(fs::path(folder) / facts_file) && !fs::exists(fs::path(folder) / "tokenizer_config.json");
  if (silent && fs::exists(fs::path(folder) / "config.json")) {
    found.words.as_tokenizers = true;
    found.words.longest_word = 100;
  }
  return found;
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
  // What others saved is told whole by tokenizer.json, which transformers reads first; Cloze's own folders hold one for transformers alone.
  const bool ours = fs::exists(fs::path(path) / facts_file);
  if (const auto whole = fs::path(path) / "tokenizer.json"; !ours && fs::exists(whole)) return whole.string();
  for (const auto* name : {"vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "vocab.json", "tokenizer.json"})
    if (fs::exists(fs::path(path) / name)) return (fs::path(path) / name).string();
  fail<DataError>(path, ": holds no tokenizer (vocab.txt, spiece.model, tokenizer.model, vocab.json with merges.txt, tokenizer.json); name the file, or train one with `cloze prepare`");
}

/// The merges beside a vocabulary of byte-level BPE.
std::string merges_file(const fs::path& vocabulary) {
  for (const auto* name : {"merges.txt", "vocab.bpe"})
    if (fs::exists(vocabulary.parent_path() / name)) return (vocabulary.parent_path() / name).string();
  fail<DataError>(vocabulary.string(), ": has no merges.txt beside it; byte-level BPE needs both");
}

/// A tokenizer.json or a vocabulary of byte-level BPE, told by content: a vocabulary is an object of pieces and ids.
std::unique_ptr<Encoder> open_json(const std::string& file, bool add_prefix_space) {
  auto content = read_file(file);
  const auto json = nlohmann::json::parse(content, nullptr, false);
  const bool named = fs::path(file).filename() == "tokenizer.json";
  require<DataError>(json.is_object(), file, ": is not a JSON object", named ? "" : " of pieces and ids", "; it is damaged");
  if (json.contains("model") && json["model"].is_object()) return make_pipeline(std::move(content), json, file);
  return make_byte_bpe(std::move(content), read_file(merges_file(file)), file, add_prefix_space);
}

std::unique_ptr<Encoder> open_encoder(const std::string& file) {
  const auto extension = fs::path(file).extension();
  const auto parent = fs::path(file).parent_path().string();
  const auto facts = said(parent.empty() ? "." : parent);
  if (extension == ".json") return open_json(file, facts.add_prefix_space);
  auto content = read_file(file);
  require<DataError>(!content.empty(), file, ": is empty; it holds no tokenizer");
  if (extension != ".txt") return make_sentencepiece(std::move(content), file, facts.rules);
  const bool fold = facts.lowercase ? *facts.lowercase : !has_upper_case(content);
  if (!facts.lowercase) log_info("data", words(file, fold ? " has no capitals: text is lower-cased" : " has capitals: text keeps its case"));
  for (const auto& sentence : facts.passed_over) log_warning("data", sentence);
  auto rules = facts.words;
  rules.lowercase = fold;
  if (!facts.lowercase) rules.strip_accents = fold;
  return make_wordpiece(std::move(content), file, rules);
}

}  // namespace

struct Tokenizer::Impl {
  std::shared_ptr<const Encoder> encoder;
  std::vector<std::string> pieces;   // those of the encoder, then sentinels, then special tokens that it lacks
  int64_t added_sentinels;
  std::vector<int64_t> sentinels;
  std::unordered_map<std::string_view, int64_t> ids;
  SpecialIds special;
  std::vector<uint8_t> is_special, starts_word;

  Impl(std::shared_ptr<const Encoder> made, int64_t with_sentinels) : encoder(std::move(made)), pieces(encoder->pieces), added_sentinels(with_sentinels) {
    for (size_t id = 0; id < pieces.size(); ++id) {
      is_special.push_back(encoder->is_control(static_cast<int64_t>(id)));
      starts_word.push_back(encoder->starts_word(static_cast<int64_t>(id)));
    }
    for (int64_t k = added_sentinels - 1; k >= 0; --k) {
      pieces.push_back("<extra_id_" + std::to_string(k) + ">");
      is_special.push_back(true);
      starts_word.push_back(true);
    }
    const auto find = [&](std::initializer_list<const char*> names) {
      for (const auto* name : names)
        if (const auto found = std::find(pieces.begin(), pieces.end(), name); found != pieces.end()) return static_cast<int64_t>(found - pieces.begin());
      return int64_t{-1};
    };
    special = {.pad = find({"[PAD]", "<pad>"}), .unk = find({"[UNK]", "<unk>", "<|endoftext|>"}), .cls = find({"[CLS]", "<cls>", "<s>", "<|endoftext|>"}),
               .sep = find({"[SEP]", "<sep>", "</s>", "<|endoftext|>"}), .mask = find({"[MASK]", "<mask>"})};
    const auto settle = [&](int64_t& id, const char* piece, const char* role) {
      if (id < 0) id = encoder->role(role);
      if (id < 0) {
        id = static_cast<int64_t>(pieces.size());
        pieces.emplace_back(piece);
        starts_word.push_back(true);
        is_special.push_back(true);
      }
      is_special[static_cast<size_t>(id)] = starts_word[static_cast<size_t>(id)] = true;
    };
    settle(special.unk, "[UNK]", "unk");
    settle(special.pad, "[PAD]", "pad");
    settle(special.cls, "[CLS]", "bos");
    settle(special.sep, "[SEP]", "eos");
    settle(special.mask, "[MASK]", "");
    for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id], static_cast<int64_t>(id));
    for (int64_t k = 0;; ++k) {
      const auto found = ids.find("<extra_id_" + std::to_string(k) + ">");
      if (found == ids.end()) break;
      sentinels.push_back(found->second);
      is_special[static_cast<size_t>(found->second)] = true;
    }
  }
};

Tokenizer Tokenizer::open(const std::string& path) {
  require<DataError>(fs::exists(path), path, ": no such tokenizer; name a folder, a SentencePiece .model, a vocab.txt, or a vocab.json");
  Tokenizer tokenizer;
  const auto file = model_file(path);
  const auto parent = fs::path(file).parent_path().string();
  tokenizer.impl_ = std::make_shared<Impl>(open_encoder(file), fs::path(file).filename() == "tokenizer.json" ? 0 : said(parent.empty() ? "." : parent).sentinels);
  return tokenizer;
}

Tokenizer Tokenizer::with_sentinels(int64_t count) const {
  require<ConfigError>(impl_->sentinels.empty() || static_cast<int64_t>(impl_->sentinels.size()) == count, "the tokenizer has ", impl_->sentinels.size(), " sentinels already; leave --sentinels out, or give that number");
  if (!impl_->sentinels.empty()) return *this;
  Tokenizer tokenizer;
  tokenizer.impl_ = std::make_shared<Impl>(impl_->encoder, count);
  return tokenizer;
}
const std::vector<int64_t>& Tokenizer::sentinels() const { return impl_->sentinels; }

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool inside) const {
  std::vector<int32_t> ids;
  if (inside && impl_->encoder->keeps_spaces()) impl_->encoder->encode(" " + std::string(text), ids);
  else impl_->encoder->encode(text, ids);
  return ids;
}

std::vector<int32_t> Tokenizer::encode_behind(std::string_view text) const {
  std::vector<int32_t> ids;
  impl_->encoder->encode_behind(text, ids);
  return ids;
}

std::vector<TextPiece> Tokenizer::encode_with_places(std::string_view text) const { return impl_->encoder->encode_with_places(text); }

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::vector<int64_t> pieces;
  for (const auto id : ids)
    if (!is_special(id)) pieces.push_back(id);
  return impl_->encoder->decode(pieces);
}

int64_t Tokenizer::size() const { return static_cast<int64_t>(impl_->pieces.size()); }
const SpecialIds& Tokenizer::special() const { return impl_->special; }
std::string Tokenizer::piece(int64_t id) const { return id >= 0 && id < size() ? impl_->pieces[static_cast<size_t>(id)] : "?"; }
int64_t Tokenizer::id(std::string_view piece) const {
  const auto found = impl_->ids.find(piece);
  return found == impl_->ids.end() ? -1 : found->second;
}
bool Tokenizer::is_special(int64_t id) const { return id < 0 || id >= size() || impl_->is_special[static_cast<size_t>(id)]; }
bool Tokenizer::keeps_spaces() const { return impl_->encoder->keeps_spaces(); }
bool Tokenizer::starts_word(int64_t id) const { return id < 0 || id >= size() || impl_->starts_word[static_cast<size_t>(id)]; }
std::string Tokenizer::kind() const { return impl_->encoder->kind(); }

std::string Tokenizer::fingerprint() const {
  uint64_t hash = (impl_->encoder->lowercase ? 1 : 0) + 2 * static_cast<uint64_t>(impl_->added_sentinels);
  for (const auto& [name, content] : impl_->encoder->files()) hash = XXH3_64bits_withSeed(content.data(), content.size(), hash);
  return hex(hash);
}

void Tokenizer::save(const std::string& folder, const std::optional<Frame>& frame) const {
  fs::create_directories(folder);
  const auto in = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  const auto& s = impl_->special;
  for (const auto& [name, content] : impl_->encoder->files()) write_atomic(in(name), content);
  Json facts{{"format", "cloze-tokenizer"}, {"version", 1}, {"kind", kind()}, {"size", size()}, {"fingerprint", fingerprint()}, {"do_lower_case", impl_->encoder->lowercase},
             {"special", {{"pad", s.pad}, {"unk", s.unk}, {"cls", s.cls}, {"sep", s.sep}, {"mask", s.mask}}}};
  if (impl_->added_sentinels > 0) facts["sentinels"] = impl_->added_sentinels;
  facts.update(Json::parse(impl_->encoder->facts()));
  write_atomic(in(facts_file), facts.dump(2) + "\n");

  // What transformers loads: every special token by name, and what stands around one text or two.
  Json added = Json::array(), around = Json::array(), pair = Json::array(), used = Json::object();
  for (int64_t id = 0; id < size(); ++id)
    if (is_special(id)) added.push_back({{"id", id}, {"content", piece(id)}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}, {"special", true}});
  const auto token = [&](int64_t id, int type) {
    used[piece(id)] = {{"id", piece(id)}, {"ids", {id}}, {"tokens", {piece(id)}}};
    return Json{{"SpecialToken", {{"id", piece(id)}, {"type_id", type}}}};
  };
  const Frame given = frame.value_or(Frame{.before = {s.cls}, .after = {s.sep}});
  const auto sequence = [](const char* name, int type) { return Json{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  for (const auto id : given.before) around.push_back(token(id, 0));
  around.push_back(sequence("A", 0));
  pair = around;
  if (!given.after.empty()) pair.push_back(token(given.after[0], 0));
  pair.push_back(sequence("B", 1));
  for (size_t i = 0; i < given.after.size(); ++i) {
    const bool last = given.pads_left && i + 1 == given.after.size();
    around.push_back(token(given.after[i], last ? 2 : 0));
    pair.push_back(token(given.after[i], last ? 2 : 1));
  }
  const Json post_processor{{"type", "TemplateProcessing"}, {"single", around}, {"pair", pair}, {"special_tokens", used}};
  if (impl_->encoder->files().contains("tokenizer.json")) {
    // What came as a tokenizer.json goes out as that, with the special tokens that Cloze has put after its pieces.
    auto whole = nlohmann::json::parse(impl_->encoder->huggingface_json());
    for (const auto& entry : added)
      if (entry["id"].get<size_t>() >= impl_->encoder->pieces.size()) whole["added_tokens"].push_back(nlohmann::json(entry));
    if (whole["post_processor"].is_null()) whole["post_processor"] = nlohmann::json(post_processor);
    write_atomic(in("tokenizer.json"), whole.dump() + "\n");
  } else {
    Json whole{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", added}};
    whole.update(Json::parse(impl_->encoder->huggingface_json()));
    whole["post_processor"] = post_processor;
    write_atomic(in("tokenizer.json"), whole.dump() + "\n");
  }
  Json config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", impl_->encoder->lowercase}, {"pad_token", piece(s.pad)}, {"unk_token", piece(s.unk)},
                    {"cls_token", piece(s.cls)}, {"sep_token", piece(s.sep)}, {"mask_token", piece(s.mask)}};
  if (given.pads_left) config["padding_side"] = "left";
  write_atomic(in("tokenizer_config.json"), config.dump(2) + "\n");
}

}  // namespace cloze
