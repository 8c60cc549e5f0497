#pragma once
// The parts of a tokenizer: its model, the tokens beyond the model's vocabulary, and what the files of its folder say.
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/tokenizer.h"
#include "data/tokenizers/added_tokens.h"
#include "data/tokenizers/characters.h"
#include "data/tokenizers/families.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

/// The facts of Cloze's own tokenizer folders.
inline constexpr const char* facts_file = "cloze_tokenizer.json";
inline constexpr int version_of_facts = 3;                ///< since which they always have a checksum
inline constexpr const char* checksum_of_facts = "xxh3";  ///< the key in it of its checksum
inline constexpr const char* role_names[] = {"pad", "unk", "cls", "sep", "mask", "bos", "eos"};

/// The id of a role.
int64_t& id_of(SpecialIds& special, std::string_view role);
/// A token as in tokenizer.json and in Cloze's facts.
nlohmann::json as_json(const AddedToken& token);

/// The parts of a tokenizer besides its model.
struct Extras {
  int64_t sentinels = 0;
  std::map<int64_t, AddedToken> added;  ///< tokens by id; those in the vocabulary are checked against it
  /// Spellings of special tokens without a role that a user added for texts that have them: these are found.
  std::set<std::string> written;
  std::vector<Normalizer> folding;  ///< normalisation of the text in which added tokens are searched
  std::map<std::string, std::string>
      roles;                               ///< `pad` -> `<pad>`, declared by the folder; empty: a role without a token
  std::map<std::string, int64_t> special;  ///< Cloze's own facts: `pad` -> 0
  std::vector<std::string> appended;       ///< roles for which Cloze appends a token, in this order
  const TokenizerFamily* family = nullptr;
  std::string language;                     ///< of texts: `en_XX`
  std::string model_type;                   ///< of the model that it came with, as its config.json has it; or empty
  std::map<std::string, std::string> kept;  ///< the files of transformers, unchanged: file -> content
  bool saved_by_cloze = false;
  bool belongs_to_model = false;
  bool finds_added_tokens = false;  ///< the model finds the added tokens of its own file
};

struct Tokenizer::Impl {
  std::shared_ptr<const TokenizerModel> model;
  Extras extras;
  /// Those of the model, then sentinels, then added tokens, then appended special tokens.
  std::vector<std::string> pieces;
  std::vector<int64_t> sentinels;
  std::unordered_map<std::string_view, int64_t> ids;
  SpecialIds special;
  int64_t language = -1;
  std::vector<uint8_t> is_special, starts_word;
  std::map<int64_t, AddedToken> in_text;  ///< those that are found here, not by the model
  AddedTokens finder;                     ///< of these

  /// Throws DataError with `path` for added tokens that contradict the vocabulary.
  Impl(std::shared_ptr<const TokenizerModel> tokenizer_model, Extras own_extras, const std::string& path);

  /// Calls `f(begin, end, id)` for each added token in a text, and with the id -1 for the text between them.
  template <class F>
  void each_part(std::string_view text, const F& f) const {
    if (finder.empty()) return f(size_t{0}, text.size(), -1);
    auto normalized = whole_text(text, /*tracked=*/true);
    finder.split(normalized, extras.folding, false);
    size_t last = 0;
    for (const auto& part : normalized.parts) {
      if (part.id < 0) continue;
      // A space that normalisation inserts next to an ideograph has the offsets of the ideograph, which is not part of
      // the token.
      const auto spelled = normalized.view(part);
      const auto is_inserted = [&](size_t at) {
        size_t source = normalized.origin(part, at, at + 1).begin;
        return spelled[at] == ' ' && !is_white_space(next_code_point(text, source));
      };
      size_t first = 0, after = spelled.size();
      while (first < after && is_inserted(first)) ++first;
      while (first < after && is_inserted(after - 1)) --after;
      const auto origin = normalized.origin(part, first, after);
      if (last < origin.begin) f(last, size_t{origin.begin}, -1);
      f(size_t{origin.begin}, size_t{origin.end}, part.id);
      last = origin.end;
    }
    if (last < text.size()) f(last, text.size(), -1);
  }

  int64_t size() const { return static_cast<int64_t>(pieces.size()); }
  /// True if the tokenizer came with a model of the kind of `reader`: it frames texts as it did there.
  bool came_with(const TextReader& reader) const;
  /// True if `reader` reads texts like the models of this tokenizer.
  bool fits(const TextReader& reader) const;
  /// Hash of everything that determined ids by version 1 of the facts.
  uint64_t hash_of_files() const;

 private:
  void append(std::string piece);
  int64_t find(const std::vector<std::string>& names) const;
  void add_tokens(const std::string& path);
  void find_roles();
  void append_roles();
  void mark_special_tokens();
  void index_pieces();
  void choose_tokens_in_text();
};

/// The facts of a tokenizer folder besides its vocabulary, by Cloze's own files or those of transformers.
struct FolderFacts {
  Extras extras;
  std::optional<bool> lowercase;
  SentencePieceRules rules;
  WordPieceRules words;  ///< except for `lowercase`, which is above
  bool add_prefix_space = false;
  std::string fingerprint{};  ///< as recorded in the folder; empty: none
  std::string unknown_class;  ///< the class or model type of an unknown family
  /// The family whose class gives a tokenizer.json the rules of tokenizer_config.json in transformers; null: none does.
  const TokenizerFamily* rules_of_class = nullptr;
  std::vector<std::string> warnings;  ///< about options that are ignored
};

/// The facts of a folder; without any of its files, nothing is known of the model. Throws DataError for a damaged file.
FolderFacts read_tokenizer_facts(const std::string& folder);

/// The content of a file. Throws DataError where it cannot be read.
std::string read_tokenizer_file(const std::string& path);

}  // namespace cloze
