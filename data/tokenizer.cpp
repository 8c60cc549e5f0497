#include "data/tokenizer.h"

#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "data/tokenizers/added_tokens.h"
#include "data/tokenizers/families.h"
#include "data/tokenizers/pipeline.h"

namespace cloze {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // linear lookup: for small objects that are written

namespace {

constexpr const char* facts_file = "cloze_tokenizer.json";
constexpr uint64_t max_bytes = 256 << 20;

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

std::string read_file(const std::string& path) {
  try {
    return read_text(path, max_bytes);
  } catch (const DataError&) {
    throw;
  } catch (const Error& e) {
    throw DataError(e.what());
  }
}

Json read_object(const std::string& path) {
  const auto text = read_file(path);
  auto content = parse_json(text);
  if (!content.is_object()) fail<DataError>(path, ": is not a JSON object", json_fault(text), "; it is damaged");
  return content;
}

/// Parses a key of an object in `path` as an id.
int64_t id_of_key(const std::string& key, const std::string& path) {
  int64_t id = -1;
  const auto* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data(), end, id);
  require<DataError>(error == std::errc() && stop == end && id >= 0, path, ": '", key.substr(0, 40),
                     "' is not the id of a token; ids are whole numbers from 0");
  return id;
}

/// The facts of a tokenizer folder besides its vocabulary.
struct FolderFacts {
  std::optional<bool> lowercase;
  int64_t sentinels = 0;
  SentencePieceRules rules;
  const TokenizerFamily* family = nullptr;
  std::string unknown_class;                 ///< the class or model type of an unknown family
  std::string language;                      ///< of texts: `en_XX`
  std::map<std::string, std::string> roles;  ///< `pad` -> `<pad>`; empty for a role without a token
  std::map<int64_t, AddedToken> added;       ///< tokens by id, including those of the vocabulary
  std::map<std::string, int64_t> special;    ///< Cloze's own facts: `pad` -> 0
  std::map<std::string, std::string> kept;   ///< the files of transformers, unchanged: file -> content
  bool saved_by_cloze = false, belongs_to_model = false;
  WordPieceRules words;  ///< except for `lowercase`, which is above
  bool add_prefix_space = false;
  std::vector<std::string> warnings;  ///< about options that are ignored
  std::vector<Normalizer> folding;    ///< normalisation of the text in which added tokens are searched
  bool finds_added_tokens = false;    ///< the model finds the added tokens of its own file
};

constexpr const char* role_names[] = {"pad", "unk", "cls", "sep", "mask", "bos", "eos"};
constexpr const char* files_of_transformers[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                                 "chat_template.jinja"};

std::optional<bool> flag(const Json& facts, const char* key) {
  return facts.contains(key) && facts[key].is_boolean() ? std::optional<bool>(facts[key].get<bool>()) : std::nullopt;
}

std::string text_at(const Json& facts, const char* key) {
  return facts.contains(key) && facts[key].is_string() ? facts[key].get<std::string>() : "";
}

int64_t sentinels_of(const Json& facts, const char* key, int64_t otherwise) {
  if (!facts.contains(key) || !facts[key].is_number_integer()) return otherwise;
  return std::clamp<int64_t>(facts[key].get<int64_t>(), 0, 100000);
}

/// BERT's rules as declared by a folder. With a tokenizer_config.json they are those of transformers, where a word of
/// more than 100 characters is unknown and text is lower-cased by default; with a bare vocabulary those of
/// google-research/bert. Differs: transformers 5 ignores `do_basic_tokenize`, `never_split`, `clean_text` and
/// `max_input_chars_per_word`, and so does this, with a warning.
void read_word_rules(const Json& facts, const std::string& path, bool saved_by_cloze, FolderFacts& found) {
  require<DataError>(facts.value("tokenizer_class", Json()) != "BertJapaneseTokenizer", path,
                     ": BertJapaneseTokenizer splits words with a Japanese dictionary, which Cloze does not have; give "
                     "text with spaces between words");
  auto& rules = found.words;
  rules.as_tokenizers = flag(facts, "as_tokenizers").value_or(!saved_by_cloze);
  rules.max_word_length = saved_by_cloze ? 200 : 100;
  if (!saved_by_cloze) found.lowercase = flag(facts, "do_lower_case").value_or(true);
  rules.strip_accents = flag(facts, "strip_accents").value_or(found.lowercase.value_or(true));
  rules.split_ideographs = flag(facts, "tokenize_chinese_chars").value_or(true);
  const auto longest = facts.find("max_input_chars_per_word");
  if (longest != facts.end() && longest->is_number_unsigned() && saved_by_cloze)
    rules.max_word_length = longest->get<size_t>();
  if (saved_by_cloze) return;
  const auto value = [&](const char* key) { return facts.value(key, Json()); };
  const auto ignore = [&](const char* key) {
    found.warnings.push_back(words(path, ": ", key, " is ", value(key).dump().substr(0, 60),
                                   ", which transformers ignores since version 5; so does Cloze"));
  };
  for (const auto* key : {"do_basic_tokenize", "clean_text"})
    if (value(key) == false) ignore(key);
  if (value("never_split").is_array() && !value("never_split").empty()) ignore("never_split");
  if (value("max_input_chars_per_word") != nullptr && value("max_input_chars_per_word") != 100)
    ignore("max_input_chars_per_word");
}

/// The facts in a folder that Cloze saved.
FolderFacts facts_of_cloze(const fs::path& folder) {
  const auto path = (folder / facts_file).string();
  const auto facts = read_object(path);
  FolderFacts found;
  found.saved_by_cloze = true;
  found.lowercase = flag(facts, "do_lower_case");
  found.add_prefix_space = flag(facts, "add_prefix_space").value_or(false);
  if (fs::exists(folder / "vocab.txt")) read_word_rules(facts, path, true, found);
  found.sentinels = sentinels_of(facts, "sentinels", 0);
  found.rules.split_digit_commas = flag(facts, "split_digit_commas").value_or(false);
  found.rules.strip_accents = !flag(facts, "keep_accents").value_or(true);
  found.rules.join_spaces = flag(facts, "join_spaces").value_or(false);
  found.rules.lowercase = found.rules.split_digit_commas && found.lowercase.value_or(true);
  found.family = family_called(text_at(facts, "family"));
  found.language = text_at(facts, "language");
  found.belongs_to_model = flag(facts, "belongs_to_model").value_or(false);
  const auto special = facts.value("special", Json::object()), added = facts.value("added", Json::object());
  for (const auto& [role, id] : special.items())
    if (id.is_number_integer()) found.special[role] = id.get<int64_t>();
  for (const auto& [id, token] : added.items()) {
    require<DataError>(token.is_string() || token.is_object(), path, ": token ", id,
                       " under 'added' is not a text; the file is damaged");
    found.added[id_of_key(id, path)] = token.is_string()
                                           ? AddedToken{.content = token.get<std::string>(), .special = true}
                                           : read_added_token(Field(token, path + ": added." + id));
  }
  for (const auto& name : facts.value("kept", Json::array()))
    for (const auto* known : files_of_transformers)
      if (name == known && fs::exists(folder / known)) found.kept[known] = read_file((folder / known).string());
  return found;
}

/// The spelling of a token in Hugging Face's files: a string, or an object with `content`.
std::optional<std::string> spelling(const Json& token) {
  if (token.is_string()) return token.get<std::string>();
  if (token.is_object() && token.contains("content") && token["content"].is_string())
    return token["content"].get<std::string>();
  if (token.is_null()) return "";
  return std::nullopt;
}

/// Special tokens without a role.
std::set<std::string> more_special_tokens(const Json& config, const Json& map) {
  std::set<std::string> found;
  for (const auto* part : {&config, &map})
    for (const auto* key : {"additional_special_tokens", "extra_special_tokens"}) {
      const auto list = part->value(key, Json());
      if (!list.is_structured()) continue;
      for (const auto& token : list)
        if (const auto spelled = spelling(token)) found.insert(*spelled);
    }
  return found;
}

/// The facts in the files of transformers. Without any of them, nothing is known of the model.
FolderFacts facts_of_transformers(const fs::path& folder) {
  FolderFacts found;
  const auto read = [&](const char* name) {
    return fs::exists(folder / name) ? read_object((folder / name).string()) : Json::object();
  };
  const auto config = read("tokenizer_config.json"), map = read("special_tokens_map.json"),
             added = read("added_tokens.json");
  const auto decoder = config.value("added_tokens_decoder", Json::object());
  const auto named = text_at(config, "tokenizer_class"), type = text_at(read("config.json"), "model_type");
  const bool generic = named.empty() || named.starts_with("PreTrainedTokenizer") || named == "TokenizersBackend";
  found.family = generic ? family_of_model_type(type) : family_of_class(named);
  if (!found.family) found.unknown_class = generic ? type : named;
  found.belongs_to_model = !named.empty() || !type.empty();
  found.lowercase = flag(config, "do_lower_case");
  found.add_prefix_space = flag(config, "add_prefix_space").value_or(false);
  if (fs::exists(folder / "vocab.txt") && fs::exists(folder / "tokenizer_config.json"))
    read_word_rules(config, (folder / "tokenizer_config.json").string(), false, found);
  // A Hugging Face model without tokenizer_config.json: rules of transformers, except for the case, which the
  // vocabulary shows.
  if (fs::exists(folder / "config.json") && !fs::exists(folder / "tokenizer_config.json")) {
    found.words.as_tokenizers = true;
    found.words.max_word_length = 100;
  }
  for (const auto* part : {&map, &config})
    for (const auto* role : role_names)
      if (const auto key = std::string(role) + "_token"; part->contains(key))
        if (const auto spelled = spelling((*part)[key])) found.roles[role] = *spelled;
  // Tokens with roles are marked later, when the roles of the vocabulary are known.
  const auto more = more_special_tokens(config, map);
  for (const auto& [piece, id] : added.items())
    if (id.is_number_integer())
      found.added[id.get<int64_t>()] = AddedToken{.content = piece, .special = more.contains(piece)};
  const auto config_path = (folder / "tokenizer_config.json").string();
  for (const auto& [id, token] : decoder.items())
    if (token.is_object())
      found.added[id_of_key(id, config_path)] =
          read_added_token(Field(token, config_path + ": added_tokens_decoder." + id));
    else if (const auto spelled = spelling(token))
      found.added[id_of_key(id, config_path)] = AddedToken{.content = *spelled, .special = more.contains(*spelled)};
  if (found.family) {
    const auto& family = *found.family;
    found.sentinels = sentinels_of(config, "extra_ids", family.sentinels);
    found.rules = family.rules;
    if (family.rules.split_digit_commas) {
      found.rules.lowercase = found.lowercase.value_or(family.rules.lowercase);
      found.rules.strip_accents = !flag(config, "keep_accents").value_or(!family.rules.strip_accents);
      found.rules.join_spaces = flag(config, "remove_space").value_or(true);
    }
    if (family.name == "deberta_v2") found.rules.lowercase = found.lowercase.value_or(false);
    found.language = text_at(config, "src_lang").empty() ? family.language : text_at(config, "src_lang");
    require<DataError>(family.name != "pegasus" || config.value("offset", Json(103)) == 103,
                       (folder / "tokenizer_config.json").string(), ": offset is ",
                       config.value("offset", Json()).dump(), "; Cloze supports PEGASUS with the offset 103 only");
  }
  if (found.belongs_to_model && fs::exists(folder / "tokenizer.json"))
    for (const auto* name : files_of_transformers)
      if (fs::exists(folder / name)) found.kept[name] = read_file((folder / name).string());
  return found;
}

FolderFacts read_facts(const std::string& folder) {
  const fs::path where = folder.empty() ? "." : folder;
  return fs::exists(where / facts_file) ? facts_of_cloze(where) : facts_of_transformers(where);
}

bool has_upper_case(const std::string& vocabulary) {
  // Special and unused tokens are written in brackets.
  for (size_t begin = 0; begin < vocabulary.size();) {
    const size_t end = std::min(vocabulary.find('\n', begin), vocabulary.size());
    for (size_t at = begin; vocabulary[begin] != '[' && at < end; ++at)
      if (vocabulary[at] >= 'A' && vocabulary[at] <= 'Z') return true;
    begin = end + 1;
  }
  return false;
}

/// The file of a folder with the tokenizer model.
std::string model_file(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  const fs::path folder = path;
  // In folders of others tokenizer.json is complete, and transformers prefers it; in Cloze's own folders it is only for
  // transformers.
  const bool saved_by_cloze = fs::exists(folder / facts_file);
  if (!saved_by_cloze && fs::exists(folder / "tokenizer.json")) return (folder / "tokenizer.json").string();
  for (const auto* name : {"vocab.txt", "spiece.model", "tokenizer.model", "sentencepiece.bpe.model", "spm.model",
                           "vocab.json", "tokenizer.json"})
    if (fs::exists(folder / name)) return (folder / name).string();
  fail<DataError>(path,
                  ": has no tokenizer (vocab.txt, spiece.model, tokenizer.model, sentencepiece.bpe.model, spm.model, "
                  "vocab.json with merges.txt, tokenizer.json); name the file, or train one with `cloze prepare`");
}

/// The merges file next to a byte-level BPE vocabulary.
std::string merges_file(const fs::path& vocabulary) {
  for (const auto* name : {"merges.txt", "vocab.bpe"})
    if (fs::exists(vocabulary.parent_path() / name)) return (vocabulary.parent_path() / name).string();
  fail<DataError>(vocabulary.string(), ": has no merges.txt next to it; byte-level BPE needs both");
}

/// A vocabulary alone does not determine tokenization and ids: its family does.
void refuse_unknown_family(const std::string& file, const FolderFacts& facts) {
  std::string known;
  for (const auto& family : tokenizer_families())
    if (!family.model_types.empty()) known += (known.empty() ? "" : ", ") + family.model_types[0];
  require<DataError>(facts.unknown_class.empty(), file, ": belongs to '", facts.unknown_class,
                     "', whose ids Cloze does not know; it knows those of ", known,
                     "; have transformers write tokenizer.json next to it (save_pretrained)");
}

/// Opens a tokenizer.json or a byte-level BPE vocabulary, distinguished by content: a vocabulary is an object of tokens
/// and ids.
std::unique_ptr<TokenizerModel> open_json(const std::string& file, FolderFacts& facts) {
  auto content = read_file(file);
  const auto json = parse_json(content);
  const bool named = fs::path(file).filename() == "tokenizer.json";
  if (!json.is_object())
    fail<DataError>(file, ": is not a JSON object", named ? "" : " of tokens and ids", json_fault(content),
                    "; it is damaged");
  facts.finds_added_tokens = json.contains("model") && json["model"].is_object();
  if (facts.finds_added_tokens) return make_pipeline(std::move(content), json, file);
  refuse_unknown_family(file, facts);
  return make_byte_bpe(std::move(content), read_file(merges_file(file)), file, facts.add_prefix_space);
}

/// Opens a SentencePiece file with the ids of its family.
std::unique_ptr<TokenizerModel> open_sentencepiece(std::string content, const std::string& file, FolderFacts& facts) {
  refuse_unknown_family(file, facts);
  auto made = make_sentencepiece(std::move(content), file, facts.rules);
  if (facts.rules.strip_accents) {
    facts.folding.emplace_back(NormalForm{.compatible = true});
    facts.folding.emplace_back(StripAccentsNormalizer{});
  }
  if (made->lowercase) facts.folding.emplace_back(LowercaseNormalizer{});
  return facts.family ? renumbered(std::move(made), *facts.family, file) : std::move(made);
}

/// Opens the tokenizer model of a file; records in `facts` how added tokens are found.
std::unique_ptr<TokenizerModel> open_model(const std::string& file, FolderFacts& facts) {
  const auto extension = fs::path(file).extension();
  if (extension == ".json") return open_json(file, facts);
  auto content = read_file(file);
  require<DataError>(!content.empty(), file, ": is empty; it has no tokenizer");
  if (extension != ".txt") return open_sentencepiece(std::move(content), file, facts);
  refuse_unknown_family(file, facts);
  const bool fold = facts.lowercase ? *facts.lowercase : !has_upper_case(content);
  if (!facts.lowercase)
    log_info("data",
             words(file, fold ? " has no capitals: text is lower-cased" : " has capitals: the case of text is kept"));
  for (const auto& warning : facts.warnings) log_warning("data", warning);
  auto rules = facts.words;
  rules.lowercase = fold;
  if (!facts.lowercase) rules.strip_accents = fold;
  facts.folding.emplace_back(BertNormalizer{
      .split_ideographs = rules.split_ideographs, .strip_accents = rules.strip_accents, .lowercase = rules.lowercase});
  return make_wordpiece(std::move(content), file, rules);
}

/// Default spellings of roles, in order of preference.
const std::map<std::string, std::vector<std::string>>& usual_spellings() {
  static const std::map<std::string, std::vector<std::string>> all{{"pad", {"[PAD]", "<pad>"}},
                                                                   {"unk", {"[UNK]", "<unk>", "<|endoftext|>"}},
                                                                   {"cls", {"[CLS]", "<cls>", "<s>", "<|endoftext|>"}},
                                                                   {"sep", {"[SEP]", "<sep>", "</s>", "<|endoftext|>"}},
                                                                   {"mask", {"[MASK]", "<mask>", "<mask_2>"}},
                                                                   {"bos", {"<s>", "<|endoftext|>"}},
                                                                   {"eos", {"</s>", "<|endoftext|>"}}};
  return all;
}

/// SentencePiece's own name for a role.
std::string role_in_file(const std::string& role) { return role == "cls" ? "bos" : role == "sep" ? "eos" : role; }

/// The parts of a tokenizer besides its model.
struct Extras {
  int64_t sentinels = 0;
  std::map<int64_t, AddedToken> added;       // tokens by id; those in the vocabulary are checked against it
  std::vector<Normalizer> folding;           // normalisation of the text in which added tokens are searched
  std::map<std::string, std::string> roles;  // spellings declared by the folder; empty: none
  std::map<std::string, int64_t> special;    // known ids by role
  std::vector<std::string> appended;         // roles for which Cloze appends a token, in this order
  const TokenizerFamily* family = nullptr;
  std::string language;
  std::map<std::string, std::string> kept;
  bool saved_by_cloze = false, belongs_to_model = false;
  bool finds_added_tokens = false;  // the model finds the added tokens in its vocabulary
};

int64_t& id_of(SpecialIds& special, std::string_view role) {
  if (role == "pad") return special.pad;
  if (role == "unk") return special.unk;
  if (role == "cls") return special.cls;
  if (role == "sep") return special.sep;
  if (role == "mask") return special.mask;
  return role == "bos" ? special.bos : special.eos;
}

/// A token as in tokenizer.json and in Cloze's facts.
Json as_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

}  // namespace

struct Tokenizer::Impl {
  std::shared_ptr<const TokenizerModel> model;
  Extras extras;
  std::vector<std::string>
      pieces;  // those of the model, then sentinels, then added tokens, then appended special tokens
  std::vector<int64_t> sentinels;
  std::unordered_map<std::string_view, int64_t> ids;
  SpecialIds special;
  int64_t language = -1;
  std::vector<uint8_t> is_special, starts_word;
  std::map<int64_t, AddedToken> in_text;  // those that are found here, not by the model
  AddedTokens finder;                     // of these

  Impl(std::shared_ptr<const TokenizerModel> tokenizer_model, Extras given, const std::string& path)
      : model(std::move(tokenizer_model)), extras(std::move(given)), pieces(model->pieces) {
    for (size_t id = 0; id < pieces.size(); ++id) {
      is_special.push_back(model->is_control(static_cast<int64_t>(id)));
      starts_word.push_back(model->starts_word(static_cast<int64_t>(id)));
    }
    if (std::find(pieces.begin(), pieces.end(), "<extra_id_0>") != pieces.end()) extras.sentinels = 0;
    for (int64_t k = extras.sentinels - 1; k >= 0; --k) append("<extra_id_" + std::to_string(k) + ">");
    for (auto& [id, token] : extras.added) {
      const bool fresh = id == size();
      if (fresh) append(token.content);
      require<DataError>(id >= 0 && id < size(), path, ": the added token '", token.content, "' has id ", id,
                         ", the vocabulary ends at ", size() - 1, "; the files do not belong together");
      require<DataError>(pieces[static_cast<size_t>(id)] == token.content, path, ": id ", id, " is '",
                         pieces[static_cast<size_t>(id)], "' in the vocabulary and '", token.content,
                         "' among the added tokens; the files do not belong together");
      token.id = static_cast<int32_t>(id);
      if (fresh || token.special) is_special[static_cast<size_t>(id)] = token.special;
    }
    find_roles();
    for (const auto& role : extras.appended) {
      auto& id = id_of(special, role);
      if (id >= 0) continue;
      id = size();
      append(role == "pad"   ? "[PAD]"
             : role == "unk" ? "[UNK]"
             : role == "cls" ? "[CLS]"
             : role == "sep" ? "[SEP]"
                             : "[MASK]");
    }
    special.sentence_mask =
        find({"<mask_1>"}) >= 0 && find({"<mask_2>"}) == special.mask ? find({"<mask_1>"}) : special.mask;
    language = find({extras.language});
    for (const auto id : {special.pad, special.unk, special.cls, special.sep, special.mask, special.sentence_mask,
                          special.bos, special.eos})
      if (id >= 0) is_special[static_cast<size_t>(id)] = starts_word[static_cast<size_t>(id)] = true;
    for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id], static_cast<int64_t>(id));
    for (int64_t k = 0;; ++k) {
      const auto found = ids.find("<extra_id_" + std::to_string(k) + ">");
      if (found == ids.end()) break;
      sentinels.push_back(found->second);
      is_special[static_cast<size_t>(found->second)] = true;
    }
    const auto first_taken = extras.finds_added_tokens ? static_cast<int64_t>(model->pieces.size()) : 0;
    for (const auto& [id, token] : extras.added)
      if (id >= first_taken && !is_special[static_cast<size_t>(id)]) in_text.emplace(id, token);
    for (const auto& [id, token] : in_text) finder.add(token, extras.folding);
  }

  /// Calls `f(begin, end, id)` for each added token in a text, and with the id -1 for the text between them.
  template <class F>
  void each_part(std::string_view text, const F& f) const {
    if (finder.empty()) return f(size_t{0}, text.size(), -1);
    auto whole = read_text(text, /*tracked=*/true);
    finder.split(whole, extras.folding, false);
    size_t last = 0;
    for (const auto& part : whole.parts) {
      if (part.id < 0) continue;
      // A space that normalisation inserts next to an ideograph has the offsets of the ideograph, which is not part of
      // the token.
      const auto spelled = whole.view(part);
      const auto is_inserted = [&](size_t at) {
        size_t source = whole.origin(part, at, at + 1).begin;
        return spelled[at] == ' ' && !is_white_space(next_code_point(text, source));
      };
      size_t first = 0, after = spelled.size();
      while (first < after && is_inserted(first)) ++first;
      while (first < after && is_inserted(after - 1)) --after;
      const auto origin = whole.origin(part, first, after);
      if (last < origin.begin) f(last, size_t{origin.begin}, -1);
      f(size_t{origin.begin}, size_t{origin.end}, part.id);
      last = origin.end;
    }
    if (last < text.size()) f(last, text.size(), -1);
  }

  int64_t size() const { return static_cast<int64_t>(pieces.size()); }
  /// True if `reader` reads texts like the models of this tokenizer.
  bool fits(const TextReader& reader) const {
    if (!extras.family) return extras.belongs_to_model;
    const auto& kinds = extras.family->kinds;
    return std::find(kinds.begin(), kinds.end(), reader.kind) != kinds.end();
  }
  uint64_t hash_of_files() const {
    uint64_t hash = (model->lowercase ? 1 : 0) + 2 * static_cast<uint64_t>(extras.sentinels);
    for (const auto& [name, content] : model->files())
      hash = XXH3_64bits_withSeed(content.data(), content.size(), hash);
    for (const auto& [id, token] : in_text) {
      const auto told = as_json(token).dump();
      hash = XXH3_64bits_withSeed(told.data(), told.size(), hash);
    }
    return hash;
  }

 private:
  void append(std::string piece) {
    pieces.push_back(std::move(piece));
    is_special.push_back(true);
    starts_word.push_back(true);
  }

  int64_t find(const std::vector<std::string>& names) const {
    for (const auto& name : names)
      if (const auto found = std::find(pieces.begin(), pieces.end(), name); !name.empty() && found != pieces.end())
        return found - pieces.begin();
    return -1;
  }

  /// Finds the ids of the special tokens by Cloze's facts, by the declarations of the folder, or by default spellings.
  void find_roles() {
    std::map<int64_t, std::string> beyond;
    for (const auto* role : role_names) {
      auto& id = id_of(special, role);
      const auto recorded = extras.special.find(role);
      const auto declared = extras.roles.find(role);
      if (recorded != extras.special.end() && recorded->second < size())
        id = recorded->second;
      else if (recorded != extras.special.end())
        beyond[recorded->second] = role;
      else if (declared != extras.roles.end() && (declared->second.empty() || find({declared->second}) >= 0))
        id = find({declared->second});
      else if (!extras.saved_by_cloze || role == std::string_view("bos") || role == std::string_view("eos")) {
        id = find(usual_spellings().at(role));
        if (id < 0) id = model->role(role_in_file(role));
      }
    }
    for (const auto* role : role_names) {  // so that a copy with more tokens finds them by their spelling
      const auto id = id_of(special, role);
      extras.roles[role] = id < 0 ? "" : pieces[static_cast<size_t>(id)];
    }
    for (const auto& [id, role] : beyond) extras.appended.push_back(role);
    extras.special.clear();
  }
};

Tokenizer Tokenizer::open(const std::string& path) {
  require<DataError>(fs::exists(path), path,
                     ": no such tokenizer; name a folder, a SentencePiece .model, a vocab.txt, or a vocab.json");
  const auto file = model_file(path);
  auto facts = read_facts(fs::path(file).parent_path().string());
  auto model = open_model(file, facts);
  if (!facts.saved_by_cloze && fs::path(file).filename() == "tokenizer.json")
    facts.sentinels = 0;  // they are in its vocabulary, or missing
  Tokenizer tokenizer;
  tokenizer.impl_ = std::make_shared<Impl>(std::move(model),
                                           Extras{.sentinels = facts.sentinels,
                                                  .added = std::move(facts.added),
                                                  .folding = std::move(facts.folding),
                                                  .roles = std::move(facts.roles),
                                                  .special = std::move(facts.special),
                                                  .appended = {},
                                                  .family = facts.family,
                                                  .language = facts.language,
                                                  .kept = std::move(facts.kept),
                                                  .saved_by_cloze = facts.saved_by_cloze,
                                                  .belongs_to_model = facts.belongs_to_model,
                                                  .finds_added_tokens = facts.finds_added_tokens},
                                           file);
  return tokenizer;
}

Tokenizer Tokenizer::with_sentinels(int64_t count) const {
  require<ConfigError>(impl_->sentinels.empty() || static_cast<int64_t>(impl_->sentinels.size()) == count,
                       "the tokenizer has ", impl_->sentinels.size(),
                       " sentinels already; leave --sentinels out, or give that number");
  if (!impl_->sentinels.empty()) return *this;
  auto extras = impl_->extras;
  extras.sentinels = count;
  extras.kept.clear();
  Tokenizer tokenizer;
  tokenizer.impl_ = std::make_shared<Impl>(impl_->model, std::move(extras), "the tokenizer");
  return tokenizer;
}

Tokenizer Tokenizer::with_special_tokens() const {
  auto extras = impl_->extras;
  extras.appended = {"unk", "pad", "cls", "sep", "mask"};
  const auto made = std::make_shared<Impl>(impl_->model, std::move(extras), "the tokenizer");
  if (made->size() == size()) return *this;
  made->extras.kept.clear();
  Tokenizer tokenizer;
  tokenizer.impl_ = made;
  return tokenizer;
}

bool Tokenizer::belongs_to_model() const { return impl_->extras.belongs_to_model; }
const std::vector<int64_t>& Tokenizer::sentinels() const { return impl_->sentinels; }

std::vector<int32_t> Tokenizer::encode(std::string_view text, bool inside) const {
  if (inside && impl_->model->keeps_spaces()) return encode(" " + std::string(text));
  std::vector<int32_t> ids;
  impl_->each_part(text, [&](size_t begin, size_t end, int32_t id) {
    if (id >= 0)
      ids.push_back(id);
    else
      impl_->model->encode(text.substr(begin, end - begin), ids);
  });
  return ids;
}

std::vector<int32_t> Tokenizer::encode_after(std::string_view text) const {
  std::vector<int32_t> ids;
  impl_->each_part(text, [&](size_t begin, size_t end, int32_t id) {
    const auto part = text.substr(begin, end - begin);
    if (id >= 0)
      ids.push_back(id);
    else if (begin == 0)
      impl_->model->encode_after(part, ids);
    else
      impl_->model->encode(part, ids);
  });
  return ids;
}

std::vector<TokenSpan> Tokenizer::encode_with_offsets(std::string_view text) const {
  std::vector<TokenSpan> tokens;
  impl_->each_part(text, [&](size_t begin, size_t end, int32_t id) {
    if (id >= 0) return tokens.push_back({id, begin, end});
    for (const auto& token : impl_->model->encode_with_offsets(text.substr(begin, end - begin)))
      tokens.push_back({token.id, begin + token.begin, begin + token.end});
  });
  return tokens;
}

std::string Tokenizer::decode(std::span<const int64_t> ids) const {
  std::string text;
  std::vector<int64_t> pieces;
  // Byte-level tokens include their spaces; otherwise an added token has one on both sides.
  const bool spaced = kind() != "byte_bpe";
  const auto add = [&](const std::string& part) {
    if (spaced && !text.empty() && !part.empty()) text += ' ';
    text += part;
  };
  for (const auto id : ids) {
    if (is_special(id)) continue;
    if (!impl_->in_text.contains(id)) {
      pieces.push_back(id);
      continue;
    }
    if (!pieces.empty()) add(impl_->model->decode(pieces));
    pieces.clear();
    add(piece(id));
  }
  if (!pieces.empty()) add(impl_->model->decode(pieces));
  return text;
}

int64_t Tokenizer::size() const { return static_cast<int64_t>(impl_->pieces.size()); }
const SpecialIds& Tokenizer::special() const { return impl_->special; }
std::string Tokenizer::piece(int64_t id) const {
  return id >= 0 && id < size() ? impl_->pieces[static_cast<size_t>(id)] : "?";
}
int64_t Tokenizer::id(std::string_view piece) const {
  const auto found = impl_->ids.find(piece);
  return found == impl_->ids.end() ? -1 : found->second;
}
bool Tokenizer::is_special(int64_t id) const {
  return id < 0 || id >= size() || impl_->is_special[static_cast<size_t>(id)];
}
bool Tokenizer::keeps_spaces() const { return impl_->model->keeps_spaces(); }
bool Tokenizer::starts_word(int64_t id) const {
  return id < 0 || id >= size() || impl_->starts_word[static_cast<size_t>(id)];
}
std::string Tokenizer::kind() const { return impl_->model->kind(); }

bool Tokenizer::has_fingerprint(const std::string& recorded) const {
  return recorded == fingerprint() || recorded == hex(impl_->hash_of_files());
}

std::string Tokenizer::fingerprint() const {
  uint64_t hash = impl_->hash_of_files();
  if (const auto facts = impl_->model->facts(); facts != "{}")
    hash = XXH3_64bits_withSeed(facts.data(), facts.size(), hash);
  return hex(hash);
}

Tokenizer::Frame Tokenizer::frame(const std::optional<TextReader>& reader) const {
  const auto* rule = reader && !impl_->fits(*reader) ? family_of_kind(reader->kind) : impl_->extras.family;
  if (!rule) rule = family_called("bert");
  const auto ids = [&](const std::vector<Role>& roles) {
    std::vector<int64_t> found;
    for (const auto role : roles) {
      const auto end = reader && reader->end >= 0 ? reader->end : special().sep;
      const auto id = role == Role::cls ? special().cls : role == Role::sep ? end : impl_->language;
      if (id >= 0) found.push_back(id);
    }
    return found;
  };
  const auto& parts = rule->frame;
  return {.before = ids(parts.before),
          .between = ids(parts.between),
          .after = ids(parts.after),
          .segments = parts.segments && (!reader || reader->segments),
          .pads_left = parts.pads_left};
}

namespace {

/// The post-processor of tokenizer.json that adds the special tokens of `frame` to one text or two.
Json template_of(const Tokenizer& tokenizer, const Tokenizer::Frame& frame) {
  Json used = Json::object();
  const auto put = [&](Json& list, const std::vector<int64_t>& ids, int type) {
    for (const auto id : ids) {
      const auto piece = tokenizer.piece(id);
      used[piece] = {{"id", piece}, {"ids", {id}}, {"tokens", {piece}}};
      list.push_back({{"SpecialToken", {{"id", piece}, {"type_id", type}}}});
    }
  };
  const auto text = [](Json& list, const char* name, int type) {
    list.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
  };
  const auto after = [&](Json& list, int type) {
    put(list, frame.after, type);
    if (frame.pads_left && !frame.after.empty()) list.back()["SpecialToken"]["type_id"] = 2;
  };
  Json single = Json::array();
  put(single, frame.before, 0);
  text(single, "A", 0);
  Json pair = single;
  after(single, 0);
  put(pair, frame.between, 0);
  text(pair, "B", frame.segments ? 1 : 0);
  after(pair, frame.segments ? 1 : 0);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", used}};
}

}  // namespace

void Tokenizer::save(const std::string& folder, const std::optional<TextReader>& reader) const {
  fs::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& content) {
    write_atomic((fs::path(folder) / name).string(), content);
  };
  const auto& extras = impl_->extras;
  const auto& s = impl_->special;
  const auto files = impl_->model->files();
  const bool has_json = extras.kept.contains("tokenizer.json") || files.contains("tokenizer.json");
  const bool unchanged = has_json && (!reader || (impl_->fits(*reader) && extras.appended.empty()));
  OrderedJson facts{{"format", "cloze-tokenizer"},
                    {"version", 2},
                    {"kind", kind()},
                    {"size", size()},
                    {"fingerprint", fingerprint()},
                    {"do_lower_case", impl_->model->lowercase}};
  for (const auto* role : role_names)
    if (auto roles = s; id_of(roles, role) >= 0) facts["special"][role] = id_of(roles, role);
  if (extras.sentinels > 0) facts["sentinels"] = extras.sentinels;
  Json added = Json::object();
  for (const auto& [id, token] : extras.added)
    added[std::to_string(id)] = token.special ? Json(token.content) : as_json(token);
  if (!added.empty()) facts["added"] = added;
  if (extras.family) facts["family"] = extras.family->name;
  if (!extras.language.empty()) facts["language"] = extras.language;
  if (extras.belongs_to_model) facts["belongs_to_model"] = true;
  for (const auto& [name, content] : extras.kept)
    if (unchanged) facts["kept"].push_back(name);
  facts.update(OrderedJson::parse(impl_->model->facts()));
  write(facts_file, facts.dump(2) + "\n");
  // The original tokenizer.json has more than what determines ids: special tokens after the vocabulary, the
  // post-processor.
  for (const auto& [name, content] : files)
    write(name, name == "tokenizer.json" ? impl_->model->huggingface_json() : content);
  for (const auto& [name, content] : extras.kept)
    if (unchanged) write(name, content);
  if (unchanged && extras.kept.contains("tokenizer_config.json")) return;

  // For transformers: every special token by name, and the special tokens around one text or two.
  const auto given = frame(reader);
  if (!unchanged) {
    // An original tokenizer.json is kept, with the tokens that Cloze appended and the frame of its reader.
    auto whole = Json::parse(impl_->model->huggingface_json());
    if (!files.contains("tokenizer.json"))
      whole.update({{"version", "1.0"},
                    {"truncation", nullptr},
                    {"padding", nullptr},
                    {"added_tokens", nlohmann::json::array()}});
    const auto first = files.contains("tokenizer.json") ? static_cast<int64_t>(impl_->model->pieces.size()) : 0;
    for (int64_t id = first; id < size(); ++id)
      if (is_special(id) || impl_->in_text.contains(id)) {
        const auto found = impl_->in_text.find(id);
        AddedToken token{.content = piece(id), .id = static_cast<int32_t>(id), .special = true, .normalized = false};
        if (found != impl_->in_text.end()) token = found->second;
        // Differs: SentencePiece's normalisation marks word starts, so that the token is searched before it.
        if (files.contains("spiece.model") && std::exchange(token.normalized, false))
          log_warning("data",
                      words(folder, ": the added token '", token.content,
                            "' is searched in normalised text; the exported tokenizer.json finds only its exact "
                            "spelling"));
        whole["added_tokens"].push_back(as_json(token));
      }
    whole["post_processor"] = template_of(*this, given);
    write("tokenizer.json", whole.dump() + "\n");
  }

  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", impl_->model->lowercase}};
  for (const auto* role : role_names)
    if (auto roles = s; id_of(roles, role) >= 0) config[std::string(role) + "_token"] = piece(id_of(roles, role));
  if (reader && reader->end >= 0) config["eos_token"] = piece(reader->end);
  config["model_input_names"] = OrderedJson::array({"input_ids"});
  if (given.segments) config["model_input_names"].push_back("token_type_ids");
  config["model_input_names"].push_back("attention_mask");
  if (reader && reader->max_length > 0) config["model_max_length"] = reader->max_length;
  if (given.pads_left) config["padding_side"] = "left";
  write("tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace cloze
