#include "data/tokenizers/models.h"

#include <cstdio>

#include "core/json.h"

namespace cloze {

namespace {

constexpr int64_t max_holes = 100000;  // unused ids

std::string type_of(const Field& field) {
  if (!field["type"].is_null()) return field["type"].text();
  // Files of old versions lack it.
  if (!field["merges"].is_null()) return "BPE";
  if (field["vocab"].json().is_array()) return "Unigram";
  return field["continuing_subword_prefix"].is_null() ? "WordLevel" : "WordPiece";
}

}  // namespace

void Vocabulary::add(const std::string& piece, int64_t id, const Field& where) {
  const auto max = std::min(static_cast<int64_t>(max_pieces), static_cast<int64_t>(ids.size()) + max_holes);
  if (id < 0 || id >= max)
    where.refuse(concat("gives '", piece, "' the id ", id, ", but there are only ", ids.size(), " other tokens"));
  const auto at = static_cast<size_t>(id);
  if (at >= pieces.size()) pieces.resize(at + 1);
  const bool taken = !pieces[at].empty() && pieces[at] != piece;
  if (taken) where.refuse(concat("gives '", piece, "' the id ", id, ", which '", pieces[at], "' has"));
  pieces[at] = piece;
  ids[piece] = static_cast<int32_t>(id);
}

void Vocabulary::require_searchable(const Field& where) const {
  constexpr size_t max_bytes = size_t{1} << 24;  // edges of a trie
  size_t bytes = 0;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].size() > max_piece_bytes)
      where.refuse(concat("gives the id ", id, " to a piece of ", pieces[id].size(), " bytes, more than the ",
                          max_piece_bytes, " that a piece can have; train the tokenizer with shorter pieces"));
    bytes += pieces[id].size();
  }
  if (bytes >= max_bytes) where.refuse(concat("has more than ", max_bytes, " bytes of pieces"));
}

void read_vocabulary(const Field& field, Vocabulary& vocabulary) {
  if (!field.json().is_object() || field.json().empty()) field.refuse("is not an object of tokens and ids");
  field.require_pieces();
  const auto total = static_cast<int64_t>(field.json().size());
  std::vector<std::pair<int64_t, const std::string*>> sorted;
  sorted.reserve(static_cast<size_t>(total));
  for (const auto& [piece, id] : field.json().items()) {
    const bool is_count = id.is_number_unsigned() || (id.is_number_integer() && id.get<int64_t>() >= 0);
    if (!is_count)
      field.refuse(concat("gives '", piece, "' the id ", json_text(id), ", which is not a whole number from 0"));
    sorted.emplace_back(static_cast<int64_t>(std::min<uint64_t>(id.get<uint64_t>(), INT64_MAX)), &piece);
  }
  std::sort(sorted.begin(), sorted.end());
  vocabulary.pieces.reserve(sorted.size());
  vocabulary.ids.reserve(sorted.size());
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i].first == sorted[i - 1].first)
      field.refuse(concat("gives '", *sorted[i].second, "' the id ", sorted[i].first, ", which '",
                          *sorted[i - 1].second, "' has"));
  for (const auto& [id, piece] : sorted) vocabulary.add(*piece, id, field);
}

std::string byte_piece(uint8_t byte) {
  char text[8];
  std::snprintf(text, sizeof text, "<0x%02X>", byte);
  return text;
}

std::unique_ptr<PartModel> read_model(const Field& field, const Spellings& special) {
  if (!field.json().is_object()) field.refuse("is not an object with a vocabulary");
  const auto type = type_of(field);
  std::unique_ptr<PartModel> model;
  if (type == "WordPiece")
    model = read_word_piece(field, special);
  else if (type == "BPE")
    model = read_bpe(field, special);
  else if (type == "Unigram")
    model = read_unigram(field, special);
  else if (type == "WordLevel")
    model = read_word_level(field, special);
  else
    field.refuse(concat("is of the kind '", type, "', a model that Cloze does not support"));
  model->type = type;
  return model;
}

}  // namespace cloze
