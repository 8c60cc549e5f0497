#include "data/tokenizer_impl.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/lfs_pointer.h"
#include "core/log.h"

namespace cloze {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr const char* files_of_transformers[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                                 "chat_template.jinja"};

/// Whether a file is a link that leads out of its folder, other than into the blobs of the hub's cache. What it leads
/// to would be published with the files of a tokenizer, which are kept as they are.
bool leads_elsewhere(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return false;
  const auto folder = fs::canonical(path, error).parent_path();
  const bool is_out = folder != fs::canonical(path.parent_path(), error) && folder.filename() != "blobs";
  if (is_out) log_warning("data", concat(path.string(), ": is a link to another folder; it is read, and not kept"));
  return is_out;
}

Json read_object(const std::string& path) {
  const auto text = read_tokenizer_file(path);
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
void read_word_rules(const Json& facts, const std::string& path, bool saved_by_cloze, FolderFacts& folder_facts) {
  auto& rules = folder_facts.words;
  rules.as_tokenizers = flag(facts, "as_tokenizers").value_or(!saved_by_cloze);
  rules.max_word_length = saved_by_cloze ? 200 : 100;
  if (!saved_by_cloze) folder_facts.lowercase = flag(facts, "do_lower_case").value_or(true);
  rules.strip_accents = flag(facts, "strip_accents").value_or(folder_facts.lowercase.value_or(true));
  rules.split_ideographs = flag(facts, "tokenize_chinese_chars").value_or(true);
  const auto longest = facts.find("max_input_chars_per_word");
  if (longest != facts.end() && longest->is_number_unsigned() && saved_by_cloze)
    rules.max_word_length = longest->get<size_t>();
  if (saved_by_cloze) return;
  const auto value = [&](const char* key) { return facts.value(key, Json()); };
  const auto ignore = [&](const char* key) {
    folder_facts.warnings.push_back(concat(path, ": ", key, " is ", json_text(value(key)).substr(0, 60),
                                           ", which transformers ignores since version 5; so does Cloze"));
  };
  for (const auto* key : {"do_basic_tokenize", "clean_text"})
    if (value(key) == false) ignore(key);
  if (value("never_split").is_array() && !value("never_split").empty()) ignore("never_split");
  if (value("max_input_chars_per_word") != nullptr && value("max_input_chars_per_word") != 100)
    ignore("max_input_chars_per_word");
}

AddedToken special_token(std::string spelled, bool special = true) {
  return {.content = std::move(spelled), .special = special, .normalized = !special};
}

/// Tokens by id in Cloze's facts: spellings, or objects with the rules of their search.
std::map<int64_t, AddedToken> added_of_cloze(const Json& added, const std::string& path) {
  std::map<int64_t, AddedToken> tokens;
  for (const auto& [id, token] : added.items()) {
    require<DataError>(token.is_string() || token.is_object(), path, ": token ", id,
                       " under 'added' is not a text; the file is damaged");
    tokens[id_of_key(id, path)] = token.is_string() ? special_token(token.get<std::string>())
                                                    : read_added_token(Field(token, path + ": added." + id));
  }
  return tokens;
}

/// Throws DataError for facts that do not have their checksum; those of versions before `version_of_facts` may lack it.
void check_facts(Json facts, const std::string& path) {
  const auto version = facts.find("version");
  const bool is_earlier = version == facts.end() || (version->is_number_integer() && *version < version_of_facts);
  if (is_earlier && !facts.contains(checksum_of_facts)) return;
  const auto recorded = facts.value(checksum_of_facts, Json());
  facts.erase(checksum_of_facts);
  require<DataError>(
      recorded == hash_hex(json_text(facts)), path,
      ": does not match its checksum; restore it, or remove it to take the files next to it as they are");
}

/// The facts in a folder that Cloze saved.
FolderFacts facts_of_cloze(const fs::path& folder) {
  const auto path = (folder / facts_file).string();
  const auto facts = read_object(path);
  check_facts(facts, path);
  FolderFacts folder_facts;
  auto& extras = folder_facts.extras;
  extras.saved_by_cloze = true;
  folder_facts.fingerprint = text_at(facts, "fingerprint");
  folder_facts.lowercase = flag(facts, "do_lower_case");
  folder_facts.add_prefix_space = flag(facts, "add_prefix_space").value_or(false);
  if (fs::exists(folder / "vocab.txt")) read_word_rules(facts, path, true, folder_facts);
  extras.sentinels = sentinels_of(facts, "sentinels", 0);
  folder_facts.rules.split_digit_commas = flag(facts, "split_digit_commas").value_or(false);
  folder_facts.rules.strip_accents = !flag(facts, "keep_accents").value_or(true);
  folder_facts.rules.join_spaces = flag(facts, "join_spaces").value_or(false);
  folder_facts.rules.lowercase = folder_facts.rules.split_digit_commas && folder_facts.lowercase.value_or(true);
  extras.family = family_called(text_at(facts, "family"));
  if (extras.family && extras.family->name == "deberta_v2")
    folder_facts.rules.lowercase = folder_facts.lowercase.value_or(false);
  extras.language = text_at(facts, "language");
  extras.model_type = text_at(facts, "model_type");
  extras.belongs_to_model = flag(facts, "belongs_to_model").value_or(false);
  const auto special = facts.value("special", Json::object());
  for (const auto& [role, id] : special.items())
    if (id.is_number_integer()) extras.special[role] = id.get<int64_t>();
  extras.added = added_of_cloze(facts.value("added", Json::object()), path);
  for (const auto& spelled : facts.value("written", Json::array()))
    if (spelled.is_string()) extras.written.insert(spelled.get<std::string>());
  for (const auto& name : facts.value("kept", Json::array()))
    for (const auto* known : files_of_transformers)
      if (name == known && fs::exists(folder / known))
        extras.kept[known] = read_tokenizer_file((folder / known).string());
  return folder_facts;
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
  std::set<std::string> tokens;
  for (const auto* part : {&config, &map})
    for (const auto* key : {"additional_special_tokens", "extra_special_tokens"}) {
      const auto list = part->value(key, Json());
      if (!list.is_structured()) continue;
      for (const auto& token : list)
        if (const auto spelled = spelling(token)) tokens.insert(*spelled);
    }
  return tokens;
}

/// True for the name of a class that any tokenizer may have.
bool is_generic(const std::string& tokenizer_class) {
  return tokenizer_class.empty() || tokenizer_class.starts_with("PreTrainedTokenizer") ||
         tokenizer_class == "TokenizersBackend";
}

/// The files of transformers in a folder; empty objects for those that it lacks.
struct TransformersFiles {
  fs::path folder;
  Json config, map, added, model;  ///< tokenizer_config.json, special_tokens_map.json, added_tokens.json, config.json
  std::string model_type;          ///< of config.json

  explicit TransformersFiles(const fs::path& where)
      : folder(where),
        config(read("tokenizer_config.json")),
        map(read("special_tokens_map.json")),
        added(read("added_tokens.json")),
        model(read("config.json")),
        model_type(text_at(model, "model_type")) {}
  /// The class of the tokenizer, of tokenizer_config.json before config.json; empty where neither names one of its own.
  std::string tokenizer_class() const {
    const auto named = text_at(config, "tokenizer_class"), of_model = text_at(model, "tokenizer_class");
    return !is_generic(named) ? named : !is_generic(of_model) ? of_model : "";
  }
  bool has(const char* name) const { return fs::exists(folder / name); }
  std::string path(const char* name) const { return (folder / name).string(); }

 private:
  Json read(const char* name) const { return has(name) ? read_object(path(name)) : Json::object(); }
};

/// Spellings of special tokens by role; tokenizer_config.json comes before special_tokens_map.json.
std::map<std::string, std::string> roles_of_transformers(const TransformersFiles& files) {
  std::map<std::string, std::string> roles;
  for (const auto* part : {&files.map, &files.config})
    for (const auto* role : role_names)
      if (const auto key = std::string(role) + "_token"; part->contains(key))
        if (const auto spelled = spelling((*part)[key])) roles[role] = *spelled;
  return roles;
}

/// Tokens by id. Those with roles are marked later, when the roles of the vocabulary are known.
std::map<int64_t, AddedToken> added_of_transformers(const TransformersFiles& files) {
  std::map<int64_t, AddedToken> tokens;
  const auto more = more_special_tokens(files.config, files.map);
  for (const auto& [piece, number] : files.added.items()) {
    if (!number.is_number_integer()) continue;
    const auto id = number.get<int64_t>();
    const auto [at, is_new] = tokens.emplace(id, special_token(piece, more.contains(piece)));
    require<DataError>(is_new, files.path("added_tokens.json"), ": '", at->second.content, "' and '", piece,
                       "' have the same id, ", id, "; give each token its own");
  }
  const auto path = files.path("tokenizer_config.json");
  const auto decoder = files.config.value("added_tokens_decoder", Json::object());
  for (const auto& [id, token] : decoder.items())
    if (token.is_object())
      tokens[id_of_key(id, path)] = read_added_token(Field(token, path + ": added_tokens_decoder." + id));
    else if (const auto spelled = spelling(token))
      tokens[id_of_key(id, path)] = special_token(*spelled, more.contains(*spelled));
  return tokens;
}

/// Special tokens that a user added: without a role, and not among those that a class adds by itself.
std::set<std::string> written_tokens(const TransformersFiles& files, const Extras& extras) {
  auto tokens = more_special_tokens(files.config, files.map);
  for (const auto& [role, spelled] : extras.roles) tokens.erase(spelled);
  if (extras.family)
    for (const auto* own : {&extras.family->pieces.front, &extras.family->pieces.back})
      for (const auto& spelled : *own) tokens.erase(spelled);
  std::erase_if(tokens, [](const auto& spelled) {
    return spelled.empty() || spelled.starts_with("<extra_id_") || spelled.starts_with("<unk_") ||
           spelled.starts_with("<mask_") || spelled.starts_with("[unused") || spelled == "<eop>" || spelled == "<eod>";
  });
  return tokens;
}

/// The family whose class transformers gives a tokenizer.json to: that of the class named first, whatever it is; else
/// that of the model type. Source: transformers 5.23, models/auto/tokenization_auto.py.
const TokenizerFamily* family_of_json(const TransformersFiles& files) {
  const auto named = text_at(files.config, "tokenizer_class"), of_model = text_at(files.model, "tokenizer_class");
  const bool is_taken_as_it_is = files.model_type == "modernbert" || files.model_type == "xlm-roberta-xl";
  if (is_taken_as_it_is) return nullptr;
  if (!named.empty() || !of_model.empty()) return family_of_class(named.empty() ? of_model : named);
  return family_of_model_type(files.model_type);
}

/// The rules of a known family, with what tokenizer_config.json changes of them.
void read_family_rules(const TransformersFiles& files, const TokenizerFamily& family, FolderFacts& folder_facts) {
  const auto& config = files.config;
  folder_facts.extras.sentinels = sentinels_of(config, "extra_ids", family.sentinels);
  folder_facts.rules = family.rules;
  if (family.rules.split_digit_commas) {
    folder_facts.rules.lowercase = folder_facts.lowercase.value_or(family.rules.lowercase);
    folder_facts.rules.strip_accents = !flag(config, "keep_accents").value_or(!family.rules.strip_accents);
    folder_facts.rules.join_spaces = flag(config, "remove_space").value_or(true);
  }
  if (family.name == "deberta_v2") folder_facts.rules.lowercase = folder_facts.lowercase.value_or(false);
  const auto language = text_at(config, "src_lang");
  folder_facts.extras.language = language.empty() ? family.language : language;
  require<DataError>(family.name != "pegasus" || config.value("offset", Json(103)) == 103,
                     files.path("tokenizer_config.json"), ": offset is ", json_text(config.value("offset", Json())),
                     "; Cloze supports PEGASUS with the offset 103 only");
}

/// The facts in the files of transformers. Without any of them, nothing is known of the model.
FolderFacts facts_of_transformers(const fs::path& folder) {
  const TransformersFiles files(folder);
  const auto& config = files.config;
  FolderFacts folder_facts;
  auto& extras = folder_facts.extras;
  const auto named = files.tokenizer_class();
  require<DataError>(named != "BertJapaneseTokenizer", folder.string(),
                     ": BertJapaneseTokenizer splits words with a Japanese dictionary, which Cloze does not have; give "
                     "text with spaces between words, and the vocabulary without the files that name this class");
  extras.family = named.empty() ? family_of_model_type(files.model_type) : family_of_class(named);
  if (!extras.family) folder_facts.unknown_class = named.empty() ? files.model_type : named;
  extras.model_type = files.model_type;
  extras.belongs_to_model = !text_at(config, "tokenizer_class").empty() || !named.empty() || !files.model_type.empty();
  folder_facts.lowercase = flag(config, "do_lower_case");
  folder_facts.add_prefix_space = flag(config, "add_prefix_space").value_or(false);
  if (files.has("vocab.txt") && files.has("tokenizer_config.json"))
    read_word_rules(config, files.path("tokenizer_config.json"), false, folder_facts);
  // A Hugging Face model without tokenizer_config.json: rules of transformers, except for the case, which the
  // vocabulary shows.
  if (files.has("config.json") && !files.has("tokenizer_config.json")) {
    folder_facts.words.as_tokenizers = true;
    folder_facts.words.max_word_length = 100;
  }
  extras.roles = roles_of_transformers(files);
  if (extras.family) extras.roles.insert(extras.family->roles.begin(), extras.family->roles.end());
  if (files.has("tokenizer.json")) folder_facts.rules_of_class = family_of_json(files);
  extras.added = added_of_transformers(files);
  extras.written = written_tokens(files, extras);
  if (extras.family) read_family_rules(files, *extras.family, folder_facts);
  if (extras.belongs_to_model && files.has("tokenizer.json"))
    for (const auto* name : files_of_transformers)
      if (files.has(name) && !leads_elsewhere(files.path(name)))
        extras.kept[name] = read_tokenizer_file(files.path(name));
  return folder_facts;
}

}  // namespace

FolderFacts read_tokenizer_facts(const std::string& folder) {
  const fs::path where = folder.empty() ? "." : folder;
  return fs::exists(where / facts_file) ? facts_of_cloze(where) : facts_of_transformers(where);
}

std::string read_tokenizer_file(const std::string& path) {
  constexpr uint64_t max_bytes = 256 << 20;
  require_no_pointer(path);
  try {
    return read_text(path, max_bytes);
  } catch (const DataError&) {
    throw;
  } catch (const Error& e) {
    throw DataError(e.what());
  }
}

}  // namespace cloze
