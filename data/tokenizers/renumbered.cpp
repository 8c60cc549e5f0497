// A SentencePiece file with the ids of its model.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "core/error.h"
#include "core/json.h"
#include "data/tokenizers/families.h"

namespace cloze {

namespace {

using Json = nlohmann::json;

struct Renumbered final : TokenizerModel {
  Renumbered(std::unique_ptr<TokenizerModel> made, const TokenizerFamily& of, const std::string& path)
      : file(std::move(made)), family(of), dropped(of.pieces.dropped) {
    const auto& front = family.pieces.front;
    const auto count = static_cast<int64_t>(file->pieces.size());
    first = static_cast<int64_t>(front.size());
    const auto refuse = [&](const std::string& why) {
      fail<DataError>(path, ": ", why, "; it is not the SentencePiece file of a tokenizer of ", family.name);
    };
    if (count <= dropped) refuse(concat("has ", count, " pieces"));
    for (int64_t id = 0; id < dropped; ++id)
      if (!file->is_control(id))
        refuse(concat("piece ", id, " is '", file->pieces[static_cast<size_t>(id)],
                      "', where a special token is expected"));
    pieces = front;
    pieces.insert(pieces.end(), file->pieces.begin() + dropped, file->pieces.end());
    end = static_cast<int64_t>(pieces.size());
    for (const auto& piece : family.pieces.back)
      if (!contains(pieces, piece)) pieces.push_back(piece);
    lowercase = file->lowercase;
    // The unknown piece of the file, or that of the model instead.
    const auto file_unknown = file->role("unk");
    unknown = file_unknown >= dropped ? file_unknown - dropped + first
                                      : std::find(front.begin(), front.end(), "<unk>") - front.begin();
    if (dropped > 0 && file_unknown != (unknown < first ? 0 : dropped))
      refuse(concat("its unknown piece is ", file_unknown));
  }

  void encode(std::string_view text, std::vector<int32_t>& out) const override {
    const size_t before = out.size();
    file->encode(text, out);
    renumber(out, before);
  }
  void encode_after(std::string_view text, std::vector<int32_t>& out) const override {
    const size_t before = out.size();
    file->encode_after(text, out);
    renumber(out, before);
  }
  std::vector<TokenSpan> encode_with_offsets(std::string_view text) const override {
    auto tokens = file->encode_with_offsets(text);
    for (auto& token : tokens) token.id = model_id(token.id);
    return tokens;
  }
  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<int64_t> file_ids;
    for (const auto id : ids)
      if (in_file(id)) file_ids.push_back(id - first + dropped);
    return file->decode(file_ids);
  }
  std::string kind() const override { return file->kind(); }
  std::map<std::string, std::string> files() const override { return file->files(); }
  bool starts_word(int64_t id) const override { return !in_file(id) || file->starts_word(id - first + dropped); }
  bool is_control(int64_t id) const override { return !in_file(id) || file->is_control(id - first + dropped); }
  int64_t role(std::string_view name) const override {
    if (name == "unk") return unknown;
    const auto file_id = file->role(name);
    return file_id < dropped ? -1 : file_id - dropped + first;
  }
  bool keeps_spaces() const override { return file->keeps_spaces(); }
  std::string facts() const override {
    auto all = parse_ordered_json(file->facts());  // part of the fingerprint: its order is kept
    all["family"] = family.name;
    return json_text(all);
  }

  std::string huggingface_json() const override {
    auto document = parse_json(file->huggingface_json());
    auto& net = document["model"];
    const auto old = net["vocab"];
    net["vocab"] = old.is_array() ? Json::array() : Json::object();
    for (int64_t id = 0; id < static_cast<int64_t>(pieces.size()); ++id) {
      const auto& piece = pieces[static_cast<size_t>(id)];
      if (!old.is_array())
        net["vocab"][piece] = id;
      else
        net["vocab"].push_back({piece, in_file(id) ? old[static_cast<size_t>(id - first + dropped)][1] : Json(0.0)});
    }
    if (old.is_array())
      net["unk_id"] = unknown;
    else
      net["unk_token"] = pieces[static_cast<size_t>(unknown)];
    return json_text(document);
  }

 private:
  bool in_file(int64_t id) const { return id >= first && id < end; }
  /// Of the dropped pieces only the unknown one occurs in a text.
  int32_t model_id(int32_t file_id) const {
    return static_cast<int32_t>(file_id < dropped ? unknown : file_id - dropped + first);
  }
  void renumber(std::vector<int32_t>& ids, size_t from) const {
    for (size_t i = from; i < ids.size(); ++i) ids[i] = model_id(ids[i]);
  }

  std::unique_ptr<TokenizerModel> file;
  const TokenizerFamily& family;
  int64_t dropped, first = 0, end = 0;  // ids from `first` to `end` are those of the file's pieces
  int64_t unknown = 0;
};

}  // namespace

std::unique_ptr<TokenizerModel> renumbered(std::unique_ptr<TokenizerModel> file, const TokenizerFamily& family,
                                           const std::string& path) {
  if (family.pieces.front.empty() && family.pieces.back.empty()) return file;
  return std::make_unique<Renumbered>(std::move(file), family, path);
}

}  // namespace cloze
