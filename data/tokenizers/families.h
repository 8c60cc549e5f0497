#pragma once
// Facts about the tokenizers of published models besides their vocabularies, one entry for each family.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/tokenizers/tokenizer_model.h"

namespace cloze {

/// A special token of a frame, by its role.
enum class FrameToken { cls, sep, bos, eos, language };

/// The special tokens around one text and between two, by roles. Roles that a tokenizer lacks are skipped.
struct FrameRule {
  std::vector<FrameToken> before{}, between{}, after{};
  bool segments = false;   ///< the second text and what follows it have type 1
  bool pads_left = false;  ///< padding is on the left, and the last token has type 2
};

/// The ids of a model whose ids differ from those of its SentencePiece file: `front`, then the pieces of the file
/// without the first `dropped`, then those of `back` that the file lacks.
struct Renumbering {
  std::vector<std::string> front{};
  int64_t dropped = 0;
  std::vector<std::string> back{};
};

/// The steps that a class of transformers 5 has in place of those of a tokenizer.json, and the options of
/// tokenizer_config.json that choose among them.
struct OwnSteps {
  enum class Space { fixed, bytes, marks };
  std::string normalizer{}, pre_tokenizer{};  ///< kinds of steps; one with `?` is there by an option or by the file
  std::optional<bool> lowercases{};           ///< the default of do_lower_case; none: no such option
  bool may_keep_accents = false;              ///< has keep_accents
  Space space = Space::fixed;                 ///< what add_prefix_space changes
  const char* without_space = "never";        ///< the prepend_scheme of marks where add_prefix_space is false
};

/// The tokenizer of a family of models.
struct TokenizerFamily {
  std::string name;
  std::vector<std::string> classes;      ///< `tokenizer_class` of tokenizer_config.json, without "Fast"
  std::vector<std::string> model_types;  ///< of config.json
  std::vector<std::string> kinds;        ///< of Cloze's models that use this frame
  FrameRule frame;
  Renumbering pieces{};
  SentencePieceRules rules{};                  ///< defaults; tokenizer_config.json may override them
  int64_t sentinels = 0;                       ///< <extra_id_0> ... that the class adds
  std::string language{};                      ///< default language of texts
  std::string vocabulary = "unigram";          ///< the published vocabularies, as Tokenizer::kind() has it
  std::map<std::string, std::string> roles{};  ///< special tokens of the class that have no usual spelling
  OwnSteps own_steps{};
};

const std::vector<TokenizerFamily>& tokenizer_families();
/// The family by name, by `tokenizer_class`, by `model_type`, and by the kind of Cloze's model; null if unknown.
const TokenizerFamily* family_called(const std::string& name);
const TokenizerFamily* family_of_class(const std::string& tokenizer_class);
const TokenizerFamily* family_of_model_type(const std::string& model_type);
const TokenizerFamily* family_of_kind(const std::string& kind);
/// The kind of Cloze's model that a `model_type` of config.json is: `roberta` of `xlm-roberta`.
std::string kind_of_model_type(const std::string& model_type);

/// The tokenizer model of a SentencePiece file with the ids of `family`. Throws DataError if the file is not one of
/// that family.
std::unique_ptr<TokenizerModel> renumbered(std::unique_ptr<TokenizerModel> file, const TokenizerFamily& family,
                                           const std::string& path);

}  // namespace cloze
