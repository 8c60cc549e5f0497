#include "data/tokenizer_impl.h"

#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/error.h"
#include "core/json.h"

namespace cloze {

namespace {

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

/// The spelling of the token that Cloze appends for a role.
std::string appended_spelling(std::string_view role) {
  if (role == "pad") return "[PAD]";
  if (role == "unk") return "[UNK]";
  if (role == "cls") return "[CLS]";
  if (role == "sep") return "[SEP]";
  return "[MASK]";
}

}  // namespace

int64_t& id_of(SpecialIds& special, std::string_view role) {
  if (role == "pad") return special.pad;
  if (role == "unk") return special.unk;
  if (role == "cls") return special.cls;
  if (role == "sep") return special.sep;
  if (role == "mask") return special.mask;
  return role == "bos" ? special.bos : special.eos;
}

nlohmann::json as_json(const AddedToken& token) {
  return {{"id", token.id},          {"content", token.content}, {"single_word", token.single_word},
          {"lstrip", token.lstrip},  {"rstrip", token.rstrip},   {"normalized", token.normalized},
          {"special", token.special}};
}

Tokenizer::Impl::Impl(std::shared_ptr<const TokenizerModel> tokenizer_model, Extras own_extras, const std::string& path)
    : model(std::move(tokenizer_model)), extras(std::move(own_extras)), pieces(model->pieces) {
  for (int64_t id = 0; id < size(); ++id) {
    is_special.push_back(model->is_control(id));
    starts_word.push_back(model->starts_word(id));
  }
  const bool has_sentinels = find({"<extra_id_0>"}) >= 0;
  // A saved tokenizer.json has those that were appended, and its recorded fingerprint counts them.
  if (has_sentinels && !extras.saved_by_cloze) extras.sentinels = 0;
  for (int64_t k = has_sentinels ? 0 : extras.sentinels; k > 0; --k) append("<extra_id_" + std::to_string(k - 1) + ">");
  add_tokens(path);
  find_roles();
  append_roles();
  special.sentence_mask =
      find({"<mask_1>"}) >= 0 && find({"<mask_2>"}) == special.mask ? find({"<mask_1>"}) : special.mask;
  language = find({extras.language});
  mark_special_tokens();
  index_pieces();
  choose_tokens_in_text();
}

/// Appends the added tokens that follow the vocabulary, and holds the others to it.
void Tokenizer::Impl::add_tokens(const std::string& path) {
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
}

/// Finds the ids of the special tokens by Cloze's facts, by the declarations of the folder, or by default spellings.
void Tokenizer::Impl::find_roles() {
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

/// Appends the tokens of roles that have none.
void Tokenizer::Impl::append_roles() {
  for (const auto& role : extras.appended) {
    auto& id = id_of(special, role);
    if (id >= 0) continue;
    id = size();
    append(appended_spelling(role));
  }
}

void Tokenizer::Impl::mark_special_tokens() {
  for (const auto id : {special.pad, special.unk, special.cls, special.sep, special.mask, special.sentence_mask,
                        special.bos, special.eos}) {
    if (id < 0) continue;
    is_special[static_cast<size_t>(id)] = true;
    starts_word[static_cast<size_t>(id)] = true;
  }
}

/// Fills `ids`, and finds the sentinels in it.
void Tokenizer::Impl::index_pieces() {
  for (size_t id = 0; id < pieces.size(); ++id) ids.emplace(pieces[id], static_cast<int64_t>(id));
  for (int64_t k = 0;; ++k) {
    const auto found = ids.find("<extra_id_" + std::to_string(k) + ">");
    if (found == ids.end()) break;
    sentinels.push_back(found->second);
    is_special[static_cast<size_t>(found->second)] = true;
  }
}

/// Chooses the added tokens that the model does not find.
void Tokenizer::Impl::choose_tokens_in_text() {
  const auto first_taken = extras.finds_added_tokens ? static_cast<int64_t>(model->pieces.size()) : 0;
  for (const auto& [id, token] : extras.added)
    if (id >= first_taken && !is_special[static_cast<size_t>(id)]) in_text.emplace(id, token);
  for (const auto& spelled : extras.written) {
    const auto at = ids.find(spelled);
    const auto id = at == ids.end() ? -1 : at->second;
    const bool has_role = std::any_of(std::begin(role_names), std::end(role_names),
                                      [&](auto* role) { return id_of(special, role) == id; });
    if (id < 0 || has_role) continue;
    const auto declared = extras.added.find(id);
    AddedToken token{.content = spelled, .normalized = false};
    if (declared != extras.added.end()) token = declared->second;
    token.id = static_cast<int32_t>(id);
    token.special = true;
    is_special[static_cast<size_t>(id)] = true;
    in_text[id] = token;
  }
  for (auto [id, token] : in_text) {
    token.special = false;  // it is found
    finder.add(token, extras.folding);
  }
}

bool Tokenizer::Impl::came_with(const TextReader& reader) const {
  return !extras.model_type.empty() && kind_of_model_type(extras.model_type) == reader.kind;
}

bool Tokenizer::Impl::fits(const TextReader& reader) const {
  if (came_with(reader)) return true;
  if (!extras.family) return extras.belongs_to_model;
  const auto& kinds = extras.family->kinds;
  return contains(kinds, reader.kind);
}

uint64_t Tokenizer::Impl::hash_of_files() const {
  uint64_t hash = (model->lowercase ? 1 : 0) + 2 * static_cast<uint64_t>(extras.sentinels);
  for (const auto& [name, content] : model->files()) hash = XXH3_64bits_withSeed(content.data(), content.size(), hash);
  for (const auto& [id, token] : in_text) {
    const auto written = json_text(as_json(token));
    hash = XXH3_64bits_withSeed(written.data(), written.size(), hash);
  }
  return hash;
}

void Tokenizer::Impl::append(std::string piece) {
  pieces.push_back(std::move(piece));
  is_special.push_back(true);
  starts_word.push_back(true);
}

/// The id of the first of these spellings that exists, or -1.
int64_t Tokenizer::Impl::find(const std::vector<std::string>& names) const {
  for (const auto& name : names)
    if (const auto found = std::find(pieces.begin(), pieces.end(), name); !name.empty() && found != pieces.end())
      return found - pieces.begin();
  return -1;
}

}  // namespace cloze
