#include "data/tokenizer.h"

#include <xxhash.h>

#include <algorithm>

#include "core/error.h"
#include "core/fingerprint.h"
#include "data/tokenizer_impl.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

std::string sentinel(int64_t k) { return "<extra_id_" + std::to_string(k) + ">"; }

}  // namespace

Tokenizer Tokenizer::with_sentinels(int64_t count) const {
  require<ConfigError>(impl_->sentinels.empty() || static_cast<int64_t>(impl_->sentinels.size()) == count,
                       "the tokenizer has ", impl_->sentinels.size(),
                       " sentinels already; leave --sentinels out, or give that number");
  if (!impl_->sentinels.empty()) return *this;
  const auto vocabulary = static_cast<int64_t>(impl_->model->pieces.size());
  const bool is_followed = !impl_->extras.added.empty() && impl_->extras.added.rbegin()->first >= vocabulary;
  if (is_followed) return followed_by_sentinels(count);
  auto extras = impl_->extras;
  extras.sentinels = count;
  extras.kept.clear();
  Tokenizer tokenizer;
  tokenizer.impl_ = std::make_shared<Impl>(impl_->model, std::move(extras), "the tokenizer");
  return tokenizer;
}

Tokenizer Tokenizer::followed_by_sentinels(int64_t count) const {
  if (!impl_->sentinels.empty()) return *this;
  auto extras = impl_->extras;
  auto roles = special();
  extras.kept.clear();
  extras.appended.clear();  // these are added tokens, as the sentinels after them are
  for (const auto* role : role_names)
    if (const auto id = id_of(roles, role); id >= 0) extras.roles[role] = piece(id);
  const auto add = [&](int64_t id, const std::string& content) {
    extras.added.emplace(id, AddedToken{.content = content, .special = true, .normalized = false});
  };
  for (auto id = static_cast<int64_t>(impl_->model->pieces.size()); id < size(); ++id) add(id, piece(id));
  for (int64_t k = count; k > 0; --k) add(size() + count - k, sentinel(k - 1));
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
    const auto word = tokens.empty() ? 0 : tokens.back().word + 1;
    if (id >= 0) return tokens.push_back({id, begin, end, word});
    for (const auto& token : impl_->model->encode_with_offsets(text.substr(begin, end - begin)))
      tokens.push_back({token.id, begin + token.begin, begin + token.end, word + token.word});
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
std::string Tokenizer::readable_piece(int64_t id) const {
  const auto spelled = piece(id);
  if (kind() != "byte_bpe" || is_special(id)) return spelled;
  const auto bytes = decode(std::vector<int64_t>{id});
  const bool has_control = std::ranges::any_of(bytes, [](unsigned char byte) { return byte < ' '; });
  if (bytes.empty() || has_control || find_invalid_utf8(bytes) != std::string_view::npos) return spelled;
  std::string text;
  for (const char byte : bytes) text += byte == ' ' ? "\u0120" : std::string(1, byte);
  return text;
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
  return recorded == fingerprint() || recorded == hex_of(impl_->hash_of_files());
}

std::string Tokenizer::fingerprint() const {
  uint64_t hash = impl_->hash_of_files();
  if (const auto facts = impl_->model->facts(); facts != "{}")
    hash = XXH3_64bits_withSeed(facts.data(), facts.size(), hash);
  return hex_of(hash);
}

Tokenizer::Frame Tokenizer::frame(const std::optional<TextReader>& reader) const {
  const auto* rule = reader && !impl_->fits(*reader) ? family_of_kind(reader->kind) : impl_->extras.family;
  if (!rule) rule = family_called("bert");
  const bool has_own_end = reader && reader->end >= 0 && !impl_->came_with(*reader);
  const auto& own = special();
  const bool is_of_class = rule == impl_->extras.family;  // else the model reads what Cloze's rows begin and end with
  const auto id_of_role = [&](FrameToken role) {
    const bool ends = role == FrameToken::sep || role == FrameToken::eos;
    if (role == FrameToken::language) return impl_->language;
    if (ends && has_own_end) return reader->end;
    if (role == FrameToken::bos && is_of_class && own.bos >= 0) return own.bos;
    if (role == FrameToken::eos && is_of_class && own.eos >= 0) return own.eos;
    return ends ? own.sep : own.cls;
  };
  const auto ids = [&](const std::vector<FrameToken>& roles) {
    std::vector<int64_t> list;
    for (const auto role : roles)
      if (const auto id = id_of_role(role); id >= 0) list.push_back(id);
    return list;
  };
  const auto& parts = rule->frame;
  return {.before = ids(parts.before),
          .between = ids(parts.between),
          .after = ids(parts.after),
          .segments = parts.segments && (!reader || reader->segments),
          .pads_left = parts.pads_left};
}

}  // namespace cloze
