// Saving a tokenizer: Cloze's facts, the files of its model, and tokenizer.json with its config for transformers.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/log.h"
#include "data/tokenizer_impl.h"

namespace cloze {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;  // linear lookup: for small objects that are written

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

/// Ids of the roles that have a token, in the order of role_names.
std::vector<std::pair<const char*, int64_t>> ids_of_roles(SpecialIds special) {
  std::vector<std::pair<const char*, int64_t>> ids;
  for (const auto* role : role_names)
    if (const auto id = id_of(special, role); id >= 0) ids.emplace_back(role, id);
  return ids;
}

/// True for a special token of which only the spelling is kept.
bool is_plain_special(const AddedToken& token) {
  return token.special && !token.single_word && !token.lstrip && !token.rstrip && !token.normalized;
}

/// The reader has a space before a text, and the tokenizer none.
bool lacks_space(const Tokenizer& tokenizer, const std::optional<TextReader>& reader) {
  return reader && reader->words && tokenizer.kind() == "byte_bpe" && tokenizer.keeps_spaces();
}

/// The reader needs an id of padding, and the tokenizer has none.
bool lacks_padding(const Tokenizer& tokenizer, const std::optional<TextReader>& reader) {
  return reader && reader->pad >= 0 && tokenizer.special().pad < 0;
}

/// Cloze's own facts. `unchanged`: the files of transformers are kept as they were read.
OrderedJson tokenizer_facts(const Tokenizer& tokenizer, const Tokenizer::Impl& parts,
                            const std::optional<TextReader>& reader, bool unchanged) {
  const auto& extras = parts.extras;
  OrderedJson facts{{"format", "cloze-tokenizer"},
                    {"version", version_of_facts},
                    {"kind", tokenizer.kind()},
                    {"size", tokenizer.size()}};
  // A tokenizer.json that takes over tokens found outside of it, or a space, has another fingerprint when it is opened.
  const auto is_taken = [](const auto& entry) { return !entry.second.special; };
  const bool takes_over =
      !unchanged && parts.model->files().contains("tokenizer.json") &&
      (lacks_space(tokenizer, reader) || std::any_of(parts.in_text.begin(), parts.in_text.end(), is_taken));
  if (!takes_over) facts["fingerprint"] = tokenizer.fingerprint();
  facts["do_lower_case"] = parts.model->lowercase;
  for (const auto& [role, id] : ids_of_roles(parts.special)) facts["special"][role] = id;
  if (extras.sentinels > 0) facts["sentinels"] = extras.sentinels;
  Json added = Json::object();
  for (const auto& [id, token] : extras.added)
    added[std::to_string(id)] = is_plain_special(token) ? Json(token.content) : as_json(token);
  if (!added.empty()) facts["added"] = added;
  if (!extras.written.empty()) facts["written"] = extras.written;
  if (extras.family) facts["family"] = extras.family->name;
  if (!extras.language.empty()) facts["language"] = extras.language;
  if (!extras.model_type.empty()) facts["model_type"] = extras.model_type;
  if (extras.belongs_to_model) facts["belongs_to_model"] = true;
  for (const auto& [name, content] : extras.kept)
    if (unchanged) facts["kept"].push_back(name);
  facts.update(parse_ordered_json(parts.model->facts()));
  facts[checksum_of_facts] = hash_hex(json_text(Json(facts)));
  return facts;
}

/// The token of an id, as tokenizer.json has it.
AddedToken added_token(const Tokenizer& tokenizer, const Tokenizer::Impl& parts, int64_t id) {
  const auto found = parts.in_text.find(id);
  if (found != parts.in_text.end()) return found->second;
  AddedToken token{.content = tokenizer.piece(id), .special = true, .normalized = false};
  if (const auto declared = parts.extras.added.find(id); declared != parts.extras.added.end()) token = declared->second;
  token.id = static_cast<int32_t>(id);
  token.special = true;
  // Byte-level tokens include the space before a word, so the token that fills a blank brings its own.
  token.lstrip = token.lstrip || (id == tokenizer.special().mask && tokenizer.kind() == "byte_bpe");
  return token;
}

/// Has byte-level steps of a tokenizer.json insert a space before a text, and count it in their offsets.
void set_prefix_space(Json& step) {
  if (!step.is_object()) return;
  if (step.contains("add_prefix_space")) step["add_prefix_space"] = true;
  if (step.contains("processors"))
    for (auto& inner : step["processors"]) set_prefix_space(inner);
}

/// Has a tokenizer.json insert a space before a text. `folder`: named in a warning where others of its steps cut the
/// text first, so that a space would be before each of their parts.
void put_space_before_text(Json& document, const std::string& folder) {
  auto* first = &document["pre_tokenizer"];
  if (first->is_object() && first->contains("pretokenizers") && !(*first)["pretokenizers"].empty())
    first = &(*first)["pretokenizers"][0];
  if (!first->is_object() || first->value("type", "") != "ByteLevel")
    return log_warning("data", concat(folder,
                                      ": tokenizer.json cuts a text before its byte-level step and inserts no "
                                      "space; give transformers texts that begin with one"));
  set_prefix_space(*first);
  set_prefix_space(document["post_processor"]);
}

/// tokenizer.json with every special token, and with those of `frame` around texts; null: with those that the original
/// file has. An original one is kept, with the tokens that Cloze appended. `folder`: named in a warning about what the
/// file cannot say.
Json tokenizer_json(const Tokenizer& tokenizer, const Tokenizer::Impl& parts, const Tokenizer::Frame* frame,
                    const std::string& folder) {
  auto document = parse_json(parts.model->huggingface_json());
  const auto files = parts.model->files();
  const bool original = files.contains("tokenizer.json"), sentencepiece = files.contains("spiece.model");
  if (!original)
    document.update(
        {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", Json::array()}});
  const auto first = original ? static_cast<int64_t>(parts.model->pieces.size()) : 0;
  for (int64_t id = first; id < tokenizer.size(); ++id) {
    if (!tokenizer.is_special(id) && !parts.in_text.contains(id)) continue;
    auto token = added_token(tokenizer, parts, id);
    // Differs: SentencePiece's normalisation marks word starts, so that the token is searched before it.
    if (sentencepiece && std::exchange(token.normalized, false))
      log_warning("data", concat(folder, ": the added token '", token.content,
                                 "' is searched in normalised text; the exported tokenizer.json finds only its exact "
                                 "spelling"));
    document["added_tokens"].push_back(as_json(token));
  }
  if (frame) document["post_processor"] = template_of(tokenizer, *frame);
  return document;
}

/// tokenizer_config.json: every special token by name, and what the reader takes.
OrderedJson config_of(const Tokenizer& tokenizer, const Tokenizer::Impl& parts, const Tokenizer::Frame& frame,
                      const std::optional<TextReader>& reader) {
  OrderedJson config{{"tokenizer_class", "PreTrainedTokenizerFast"}, {"do_lower_case", parts.model->lowercase}};
  for (const auto& [role, id] : ids_of_roles(parts.special)) config[std::string(role) + "_token"] = tokenizer.piece(id);
  if (reader && reader->end >= 0 && !parts.came_with(*reader)) config["eos_token"] = tokenizer.piece(reader->end);
  config["model_input_names"] = OrderedJson::array({"input_ids"});
  if (frame.segments) config["model_input_names"].push_back("token_type_ids");
  config["model_input_names"].push_back("attention_mask");
  if (reader && reader->max_length > 0) config["model_max_length"] = reader->max_length;
  config["padding_side"] = frame.pads_left ? "left" : "right";
  if (lacks_padding(tokenizer, reader)) config["pad_token"] = tokenizer.piece(reader->pad);
  if (lacks_space(tokenizer, reader)) config["add_prefix_space"] = true;
  return config;
}

/// A tokenizer_config.json that came in, with the class of its tokenizer, which config.json of the folder implied if it
/// names none: without it the class depends on the model that the file stands next to. `made`: what Cloze would write.
/// Without the name of code that did not come along.
std::string kept_config(const std::string& content, const Tokenizer::Impl& parts, const OrderedJson& made) {
  auto config = parse_ordered_json(content);
  if (!config.is_object()) return content;
  const bool names_code = config.erase("auto_map") > 0;
  if (names_code)
    log_warning("data", "tokenizer_config.json: auto_map names code that does not come along; it is left out");
  const auto named = config.find("tokenizer_class");
  const bool has_class = named != config.end() && named->is_string();
  if (has_class && !names_code) return content;
  if (!has_class && parts.extras.family)
    config["tokenizer_class"] = parts.extras.family->classes[0];
  else if (!has_class)
    for (const auto& [key, value] : made.items())
      if (!config.contains(key) || config[key].is_null()) config[key] = value;
  return json_text(config, 2) + "\n";
}

}  // namespace

void Tokenizer::save(const std::string& folder, const std::optional<TextReader>& reader) const {
  fs::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& content) {
    write_atomic((fs::path(folder) / name).string(), content);
  };
  const auto& extras = impl_->extras;
  const auto files = impl_->model->files();
  const bool has_json = extras.kept.contains("tokenizer.json") || files.contains("tokenizer.json");
  const bool has_more =
      !extras.kept.contains("tokenizer.json") && size() > static_cast<int64_t>(impl_->model->pieces.size());
  const bool lacks_nothing = !lacks_space(*this, reader) && !lacks_padding(*this, reader) && !has_more;
  const bool unchanged = has_json && (!reader || (impl_->fits(*reader) && extras.appended.empty() && lacks_nothing));
  write(facts_file, json_text(tokenizer_facts(*this, *impl_, reader, unchanged), 2) + "\n");
  // The original tokenizer.json has more than what determines ids: special tokens after the vocabulary, the
  // post-processor.
  for (const auto& [name, content] : files)
    write(name, name == "tokenizer.json" ? impl_->model->huggingface_json() : content);
  for (const auto& [name, content] : extras.kept)
    if (unchanged) write(name, content);
  const auto own_frame = frame(reader);
  auto config = config_of(*this, *impl_, own_frame, reader);
  // A tokenizer.json that came alone is of the class that its model implies, which frames it anew.
  if (unchanged && extras.kept.contains("tokenizer.json") && extras.family && !extras.family->classes.empty())
    config["tokenizer_class"] = extras.family->classes[0];
  const auto kept = extras.kept.find("tokenizer_config.json");
  const bool keeps_config = unchanged && kept != extras.kept.end();
  // A file that came with this model frames texts itself.
  const bool has_own_frame = files.contains("tokenizer.json") && reader && impl_->came_with(*reader);
  if (!unchanged) {
    auto document = tokenizer_json(*this, *impl_, has_own_frame ? nullptr : &own_frame, folder);
    if (lacks_space(*this, reader)) put_space_before_text(document, folder);
    write("tokenizer.json", json_text(document) + "\n");
  }
  if (!keeps_config)
    write("tokenizer_config.json", json_text(config, 2) + "\n");
  else if (reader)  // an export; elsewhere the file stays as it came in
    write("tokenizer_config.json", kept_config(kept->second, *impl_, config));
}

}  // namespace cloze
