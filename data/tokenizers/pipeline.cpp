#include "data/tokenizers/pipeline.h"

#include <algorithm>
#include <atomic>
#include <unordered_set>

#include "core/contains.h"
#include "core/json.h"
#include "data/tokenizers/added_tokens.h"
#include "data/tokenizers/byte_bpe.h"
#include "data/tokenizers/decoders.h"
#include "data/tokenizers/models.h"
#include "data/tokenizers/normalizers.h"
#include "data/tokenizers/pre_tokenizers.h"
#include "data/tokenizers/word_cache.h"
#include "data/tokenizers/wordpiece.h"

namespace cloze {

namespace {

/// The `post_processor`: the special tokens around a text, and whether offsets exclude spaces.
struct PostProcessor {
  std::string before, after;  ///< spellings; empty for none
  bool trims = false;
  bool trims_all = true;  ///< also the space before the first token
};

void read_post_processor(const Field& field, int depth, PostProcessor& facts) {
  if (field.is_null()) return;
  const auto type = field["type"].text();
  const auto pair = [&](const char* name) {
    const auto list = field[name].list();
    return list.empty() ? std::string() : list[0].text();
  };
  if (type == "Sequence") {
    if (depth >= 16) field.refuse("is a sequence within 16 others; flatten the steps");
    for (const auto& step : field["processors"].list()) read_post_processor(step, depth + 1, facts);
  } else if (type == "TemplateProcessing") {
    bool after_text = false;
    for (const auto& item : field["single"].list()) {
      if (!item["Sequence"].is_null()) after_text = true;
      if (item["SpecialToken"].is_null()) continue;
      const auto& token = item["SpecialToken"]["id"].text();
      if (after_text && facts.after.empty()) facts.after = token;
      if (!after_text && facts.before.empty()) facts.before = token;
    }
  } else if (type == "BertProcessing" || type == "RobertaProcessing") {
    facts.before = pair("cls");
    facts.after = pair("sep");
  } else if (type != "ByteLevel") {
    field.refuse(concat("is of the kind '", type, "', a post-processor that Cloze does not support"));
  }
  if (type != "RobertaProcessing" && type != "ByteLevel") return;
  facts.trims = field["trim_offsets"].flag(true);
  facts.trims_all = !field["add_prefix_space"].flag(true);
}

struct Pipeline final : TokenizerModel {
  Pipeline(std::string text, const Field::Json& json, const std::string& path) : content(std::move(text)) {
    const Field root(json, path + ": ");
    normalizers = read_normalizers(root["normalizer"], search_time);
    pre_tokenizers = read_pre_tokenizers(root["pre_tokenizer"], search_time);
    decoders = read_decoders(root["decoder"], search_time);
    read_post_processor(root["post_processor"], 0, post);
    auto tokens = read_added_tokens(root["added_tokens"]);
    Spellings special_tokens;
    for (const auto& token : tokens)
      if (token.special) special_tokens.insert(token.content);
    model = read_model(root["model"], special_tokens);
    model_size = model->vocabulary.pieces.size();
    add_tokens(std::move(tokens), root["added_tokens"]);
    derive_facts();
    static std::atomic<uint64_t> made{0};
    serial = (uint64_t{1} << 61) | ++made;
    fast = fast_path(root);
    keeps = !ignores_word_position();
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    if (fast && find_invalid_utf8(text) == std::string_view::npos) return fast->encode(text, out);
    encode_text(text, false, out);
  }
  void encode_after(std::string_view text, std::vector<int32_t>& out) const override { encode_text(text, true, out); }

  std::vector<TokenSpan> encode_with_offsets(std::string_view text) const override {
    auto normalized = prepared(text, true, false);
    std::vector<TokenSpan> tokens, spans;
    int64_t word = -1;
    for (const auto& part : normalized.parts) {
      spans.clear();
      ++word;
      const auto view = normalized.view(part);
      if (part.id >= 0)
        spans.push_back({part.id, 0, view.size()});
      else
        model->encode(view, spans);
      for (const auto& piece : spans) {
        const auto origin = normalized.origin(part, piece.begin, piece.end);
        word += !splits && piece.begin > 0 && begins_with_space(view.substr(piece.begin));
        tokens.push_back(
            {piece.id, std::min<size_t>(origin.begin, text.size()), std::min<size_t>(origin.end, text.size()), word});
        if (post.trims)
          trim(part.id >= 0 ? view : pieces[static_cast<size_t>(piece.id)], text, tokens.size() == 1, tokens.back());
      }
    }
    return tokens;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<std::string> spelled;
    for (const auto id : ids) {
      spelled.push_back(spelled_in_decoding[static_cast<size_t>(id)]);
      search_time->add_text(spelled.back().size());
    }
    return decode_pieces(decoders, std::move(spelled));
  }
  std::string kind() const override {
    if (model->type == "BPE") return in_bytes ? "byte_bpe" : "bpe";
    std::string name = model->type;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return name;
  }
  /// The canonical form of everything that determines ids: without post-processor and without special tokens after the
  /// vocabulary.
  std::map<std::string, std::string> files() const override {
    auto json = parse_json(content);
    for (const auto* other : {"post_processor", "padding", "truncation"}) json.erase(other);
    auto kept = Field::Json::array();
    for (auto& token : json["added_tokens"])
      if (token["special"] != true || token["id"].get<size_t>() < model_size) kept.push_back(token);
    json["added_tokens"] = kept;
    return {{"tokenizer.json", json_text(json)}};
  }
  bool starts_word(int64_t id) const override {
    const auto& piece = pieces[static_cast<size_t>(id)];
    if (controls[static_cast<size_t>(id)] || !is_used(id)) return true;
    if (!model->continuing.empty())
      return piece.size() <= model->continuing.size() || !piece.starts_with(model->continuing);
    return space_mark.empty() || piece.starts_with(space_mark);
  }
  bool is_control(int64_t id) const override { return controls[static_cast<size_t>(id)] != 0; }
  int64_t role(std::string_view name) const override {
    if (name == "unk") return model->unknown;
    const auto& spelled = name == "bos" ? post.before : name == "eos" ? post.after : std::string();
    const auto found = std::find(pieces.begin(), pieces.end(), spelled);
    return spelled.empty() || found == pieces.end() ? -1 : found - pieces.begin();
  }
  std::string huggingface_json() const override { return content; }
  bool keeps_spaces() const override { return keeps; }

 private:
  /// Throws DataError for an added token to which the vocabulary, or one before it, gives another id, `known`.
  static void require_same_id(const Vocabulary& all, const AddedToken& token, int32_t known, const Field& field) {
    const auto at = static_cast<size_t>(token.id);
    const auto there = at < all.pieces.size() ? all.pieces[at] : std::string();
    if (known == token.id || there == token.content) return;
    field.refuse(concat("gives '", token.content, "' the id ", token.id,
                        there.empty() ? ", and it has" : concat(", which '", there, "' has, and it has"), " the id ",
                        known, " already; give it one id of its own"));
  }

  void add_tokens(std::vector<AddedToken> tokens, const Field& field) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
    // The vocabulary of the model is unchanged: the model never outputs added tokens.
    Vocabulary all{.pieces = model->vocabulary.pieces, .ids = model->vocabulary.ids, .special = {}};
    std::vector<std::pair<int32_t, std::string>> normalized;
    for (auto& token : tokens) {
      const auto known = all.find(token.content);
      if (known < 0)
        all.add(token.content, token.id, field);
      else
        require_same_id(all, token, known, field);
      if (known >= 0) token.id = known;
      search_time->add_text(token.content.size());
      const auto spelling = added.add(token, normalizers);
      if (spelling != token.content) normalized.emplace_back(token.id, spelling);
      if (token.special) special.push_back(token.id);
    }
    pieces = std::move(all.pieces);
    spelled_in_decoding = pieces;
    for (auto& [id, spelling] : normalized) spelled_in_decoding[static_cast<size_t>(id)] = std::move(spelling);
  }

  void derive_facts() {
    controls.assign(pieces.size(), 0);
    for (size_t id = 0; id < pieces.size(); ++id) controls[id] = pieces[id].empty();
    for (const auto id : special) controls[static_cast<size_t>(id)] = 1;
    if (model->unknown >= 0) controls[static_cast<size_t>(model->unknown)] = 1;
    for (const auto& step : normalizers) {
      const auto* bert = std::get_if<BertNormalizer>(&step);
      lowercase = lowercase || std::holds_alternative<LowercaseNormalizer>(step) || (bert && bert->lowercase);
      in_bytes = in_bytes || std::holds_alternative<ByteLevelNormalizer>(step);
      const auto* replaced = std::get_if<ReplaceNormalizer>(&step);
      if (replaced && replaces_spaces(*replaced)) space_mark = replaced->content;
    }
    for (const auto& step : pre_tokenizers) {
      splits = splits || splits_words(step);
      in_bytes = in_bytes || std::holds_alternative<ByteLevelPreTokenizer>(step);
      const auto* metaspace = std::get_if<MetaspacePreTokenizer>(&step);
      if (!metaspace) continue;
      space_mark = metaspace->mark;
      tracks = tracks || metaspace->prepend == MetaspacePreTokenizer::Prepend::first;
    }
    if (in_bytes) space_mark = byte_symbol(' ');
  }

  /// True for a rule that replaces a space by a mark.
  static bool replaces_spaces(const ReplaceNormalizer& step) {
    std::vector<PatternSpan> spans;
    step.pattern.split(" ", spans);
    return spans.size() == 1 && spans[0].matched && !step.content.empty() && step.content != " ";
  }

  /// False for a rule that only marks spaces, so that a text stays in one part.
  static bool splits_words(const PreTokenizer& step) {
    if (const auto* metaspace = std::get_if<MetaspacePreTokenizer>(&step)) return metaspace->split;
    const auto* bytes = std::get_if<ByteLevelPreTokenizer>(&step);
    return !bytes || bytes->use_regex;
  }

  /// True for normalised text that begins with a space or its mark.
  bool begins_with_space(std::string_view text) const {
    size_t at = 0;
    return (!space_mark.empty() && text.starts_with(space_mark)) ||
           (!text.empty() && is_white_space(next_code_point(text, at)));
  }

  bool is_used(int64_t id) const { return !pieces[static_cast<size_t>(id)].empty(); }

  /// False if a word at the start of a text has other ids than the same word after a space.
  bool ignores_word_position() const {
    for (const std::string word : {"a", "e", "x", "1", "."}) {
      std::vector<int32_t> first, inside;
      try {
        encode_text(word, false, first);
        encode_text(" " + word, true, inside);
      } catch (const DataError&) {
        continue;  // the model does not know this word
      }
      if (first != inside) return false;
    }
    return true;
  }

  /// The text normalised and split. `continues`: it directly follows another character.
  NormalizedText prepared(std::string_view text, bool tracked, bool continues) const {
    search_time->add_text(text.size());
    auto normalized = whole_text(text, tracked || tracks);
    added.split(normalized, normalizers, continues);
    pre_tokenize(pre_tokenizers, normalized, continues);
    return normalized;
  }

  void encode_text(std::string_view text, bool continues, std::vector<int32_t>& out) const {
    thread_local WordCache cache;
    thread_local std::vector<TokenSpan> spans;
    const auto normalized = prepared(text, false, continues);
    const auto by_model = [&](std::string_view part, std::vector<int32_t>& ids) {
      spans.clear();
      model->encode(part, spans);
      for (const auto& piece : spans) ids.push_back(piece.id);
      return true;
    };
    for (const auto& part : normalized.parts) {
      const auto view = normalized.view(part);
      if (part.id >= 0)
        out.push_back(part.id);
      else if (!cache.append(serial, view, out, by_model))
        by_model(view, out);
    }
  }

  /// Excludes leading and trailing spaces of a token from its offsets.
  /// Source: huggingface/tokenizers, pre_tokenizers/byte_level.rs, `process_offsets`.
  void trim(std::string_view spelled, std::string_view text, bool first, TokenSpan& token) const {
    static const std::string space = byte_symbol(' ');
    static const int32_t space_code = byte_code(' ');
    size_t leading = 0, trailing = 0, characters = 0;
    for (size_t at = 0; at < spelled.size(); ++characters) {
      const int32_t c = next_code_point(spelled, at);
      const bool is_space = c == space_code || is_white_space(c);
      if (is_space && leading == characters) ++leading;
      trailing = is_space ? trailing + 1 : 0;
    }
    const bool prefix = (first || token.begin == 0) && !post.trims_all && leading == 1;
    for (size_t i = 0; i < leading && !prefix && token.begin < token.end; ++i) next_code_point(text, token.begin);
    for (size_t i = 0; i < trailing && token.end > token.begin; ++i) do
        --token.end;
      while (token.end > token.begin && (text[token.end] & 0xC0) == 0x80);
  }

  std::unique_ptr<TokenizerModel> fast_path(const Field& root) const;
  std::unique_ptr<TokenizerModel> fast_wordpiece(const Field& field, const BertNormalizer& bert) const;
  std::unique_ptr<TokenizerModel> fast_byte_bpe(const Field& field, const ByteLevelPreTokenizer& level) const;

  std::string content;
  std::shared_ptr<SearchTime> search_time = std::make_shared<SearchTime>();  // of all expressions
  std::vector<Normalizer> normalizers;
  std::vector<PreTokenizer> pre_tokenizers;
  std::unique_ptr<PartModel> model;
  size_t model_size = 0;  // ids below are in the model's vocabulary
  std::vector<Decoder> decoders;
  PostProcessor post;
  AddedTokens added;
  std::vector<int32_t> special;
  std::vector<std::string> spelled_in_decoding;  // added tokens in their normalised form
  std::vector<uint8_t> controls;
  std::string space_mark;  // prefix of tokens at the start of a word
  bool in_bytes = false;   // tokens are spelled in byte symbols
  bool splits = false;     // the pre-tokenizer makes words of a text
  bool tracks = false;     // ids depend on the source offsets of parts
  bool keeps = false;
  uint64_t serial = 0;                   // unique among all opened tokenizers
  std::unique_ptr<TokenizerModel> fast;  // a faster model with the same ids, or null
};

/// BERT's WordPiece and GPT-2's byte-level BPE have dedicated models.
std::unique_ptr<TokenizerModel> Pipeline::fast_path(const Field& root) const {
  const auto model_field = root["model"];
  const bool dense = model_field["vocab"].json().is_object() && !contains(pieces, "");
  const bool one_step = pre_tokenizers.size() == 1 && normalizers.size() <= 1;
  if (!dense || !one_step || !added.empty()) return nullptr;
  const auto* bert = normalizers.empty() ? nullptr : std::get_if<BertNormalizer>(&normalizers[0]);
  if (model->type == "WordPiece" && bert && bert->clean_text &&
      std::holds_alternative<BertPreTokenizer>(pre_tokenizers[0]))
    return fast_wordpiece(model_field, *bert);
  const auto* level = std::get_if<ByteLevelPreTokenizer>(&pre_tokenizers[0]);
  if (model->type == "BPE" && level && level->use_regex && normalizers.empty())
    return fast_byte_bpe(model_field, *level);
  return nullptr;
}

std::unique_ptr<TokenizerModel> Pipeline::fast_wordpiece(const Field& field, const BertNormalizer& bert) const {
  if (model->continuing != "##" || field["unk_token"].text_or("[UNK]") != "[UNK]" || model->unknown < 0) return nullptr;
  // Special tokens must not result from text: those with punctuation cannot.
  for (const auto& token : model->vocabulary.special)
    if (std::none_of(token.begin(), token.end(), [](char c) { return c > 0 && is_punctuation(c); })) return nullptr;
  std::string lines;
  for (size_t id = 0; id < field["vocab"].json().size(); ++id) {
    if (pieces[id].find_first_of("\n\r") != std::string::npos) return nullptr;
    lines += pieces[id] + "\n";
  }
  const auto longest = field["max_input_chars_per_word"].count(100, INT64_MAX);
  const WordPieceRules rules{.lowercase = bert.lowercase,
                             .strip_accents = bert.strip_accents,
                             .split_ideographs = bert.split_ideographs,
                             .max_word_length = static_cast<size_t>(longest),
                             .as_tokenizers = true};
  return make_wordpiece(std::move(lines), "tokenizer.json", rules);
}

std::unique_ptr<TokenizerModel> Pipeline::fast_byte_bpe(const Field& field, const ByteLevelPreTokenizer& level) const {
  for (const auto* option : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (!field[option].text_or("").empty()) return nullptr;
  if (field["ignore_merges"].flag(false) || field["byte_fallback"].flag(false)) return nullptr;
  for (int byte = 0; byte < 256; ++byte)
    if (model->vocabulary.find_in_text(byte_symbol(static_cast<uint8_t>(byte))) < 0) return nullptr;
  std::string merges = "#version: 0.2\n";
  std::unordered_set<std::string> distinct;
  for (const auto& merge : field["merges"].json()) {
    const auto line =
        merge.is_string() ? merge.get<std::string>() : merge[0].get<std::string>() + " " + merge[1].get<std::string>();
    if (line.starts_with("#version") && merge.is_string()) continue;
    const auto space = line.find(' ');
    const bool plain =
        std::count(line.begin(), line.end(), ' ') == 1 && line.find_first_of("\n\r") == std::string::npos;
    if (!plain || !distinct.insert(line).second) return nullptr;
    if (model->vocabulary.special.contains(line.substr(0, space) + line.substr(space + 1))) return nullptr;
    merges += line + "\n";
  }
  return make_byte_bpe(json_text(field["vocab"].json()), std::move(merges), "tokenizer.json", level.add_prefix_space);
}

}  // namespace

std::unique_ptr<TokenizerModel> make_pipeline(std::string content, const nlohmann::json& json,
                                              const std::string& path) {
  return std::make_unique<Pipeline>(std::move(content), json, path);
}

}  // namespace cloze
