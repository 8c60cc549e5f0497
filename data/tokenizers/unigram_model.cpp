// Unigram language model: the most probable segmentation of a text.
// Source: Kudo 2018, section 3.2 (arXiv 1804.10959); huggingface/tokenizers, models/unigram.
#include <algorithm>
#include <limits>

#include "data/tokenizers/models.h"
#include "data/tokenizers/piece_trie.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

constexpr double unknown_penalty =
    10;  // log probability of an unknown character below that of the least probable piece

struct Unigram final : PartModel {
  /// The best segmentation of the text before a position: its last piece.
  struct Position {
    double best = 0;
    int32_t id = -1;
    uint32_t from = 0;
    bool reached = false;

    void reach(uint32_t start, double score, int32_t piece) {
      if (!reached || score > best) *this = {.best = score, .id = piece, .from = start, .reached = true};
    }
  };

  void find_best(std::string_view part, std::vector<Position>& positions) const {
    positions.assign(part.size() + 1, Position{});
    for (size_t begin = 0; begin < part.size();) {
      size_t next = begin;
      next_code_point(part, next);
      const auto from = static_cast<uint32_t>(begin);
      const double before = positions[begin].best;
      bool known = false;
      trie.each_prefix(part.substr(begin), [&](size_t length, int32_t id) {
        known = known || length == next - begin;
        positions[begin + length].reach(from, before + scores[static_cast<size_t>(id)], id);
      });
      if (!known) positions[next].reach(from, before + unknown_score, unknown);
      begin = next;
    }
  }

  void encode(std::string_view part, std::vector<TokenSpan>& out) const override {
    thread_local std::vector<Position> positions;
    find_best(part, positions);
    thread_local std::vector<TokenSpan> best;  // from the end to the start, unknown characters fused
    best.clear();
    for (size_t end = part.size(); end > 0;) {
      const auto& position = positions[end];
      require<DataError>(position.id >= 0, "the tokenizer has no token for '",
                         part.substr(position.from, end - position.from), "' and its model has no unk_id");
      if (position.id == unknown && !best.empty() && best.back().id == unknown)
        best.back().begin = position.from;
      else
        best.push_back({position.id, position.from, end});
      end = position.from;
    }
    for (auto piece = best.rbegin(); piece != best.rend(); ++piece) write(*piece, part, out);
  }

  void write(const TokenSpan& piece, std::string_view part, std::vector<TokenSpan>& out) const {
    if (piece.id != unknown) return out.push_back(piece);
    const std::string spelled(part.substr(piece.begin, piece.end - piece.begin));
    if (const auto known = vocabulary.find_in_text(spelled); known >= 0)
      return out.push_back({known, piece.begin, piece.end});
    const bool in_bytes = !bytes.empty() && std::all_of(spelled.begin(), spelled.end(),
                                                        [&](char c) { return bytes[static_cast<uint8_t>(c)] >= 0; });
    if (!in_bytes) return out.push_back(piece);
    for (const char c : spelled) out.push_back({bytes[static_cast<uint8_t>(c)], piece.begin, piece.end});
  }

  PieceTrie trie;
  std::vector<double> scores;
  double unknown_score = 0;
  std::vector<int32_t> bytes;  // ids of <0x00> ... <0xFF>, -1 for none; empty without byte_fallback
};

}  // namespace

std::unique_ptr<PartModel> read_unigram(const Field& field, const Spellings& special) {
  auto made = std::make_unique<Unigram>();
  auto& unigram = *made;
  unigram.vocabulary.special = special;
  const auto list = field["vocab"];
  if (!list.json().is_array() || list.json().empty()) list.refuse("is not a list of pieces and scores");
  list.require_pieces();
  double min_score = std::numeric_limits<double>::infinity();
  for (size_t id = 0; id < list.json().size(); ++id) {
    const auto& entry = list.json()[id];
    const bool fits = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!fits) list.refuse(concat("[", id, "] is not a piece and its score"));
    const auto& piece = entry[0].get_ref<const std::string&>();
    unigram.vocabulary.pieces.push_back(piece);
    unigram.vocabulary.ids[piece] = static_cast<int32_t>(id);
    unigram.scores.push_back(entry[1].get<double>());
    min_score = std::min(min_score, unigram.scores.back());
  }
  unigram.vocabulary.require_searchable(list);
  for (size_t id = 0; id < unigram.vocabulary.pieces.size(); ++id) {
    const auto& piece = unigram.vocabulary.pieces[id];
    if (!special.contains(piece)) unigram.trie.add(piece, static_cast<int32_t>(id));
  }
  unigram.unknown_score = min_score - unknown_penalty;
  if (const auto unknown = field["unk_id"]; !unknown.is_null())
    unigram.unknown = static_cast<int32_t>(unknown.count(0, static_cast<int64_t>(unigram.scores.size()) - 1));
  if (field["byte_fallback"].flag(false))
    for (int byte = 0; byte < 256; ++byte)
      unigram.bytes.push_back(unigram.vocabulary.find(byte_piece(static_cast<uint8_t>(byte))));
  return made;
}

}  // namespace cloze
