#pragma once
// What the tokenizers of published models have beside their vocabulary, one entry for each family.
#include <memory>
#include <string>
#include <vector>

#include "data/tokenizers/encoder.h"

namespace cloze {

/// A special token by its role.
enum class Role { cls, sep, language };

/// What stands around one text and between two, by roles. A role that a tokenizer lacks is left out.
struct FrameRule {
  std::vector<Role> before{}, between{}, after{};
  bool segments = false;   ///< the second text and what follows it have type 1
  bool pads_left = false;  ///< padding stands on the left, and the last token is of type 2
};

/// How the ids of a model differ from those of its SentencePiece file: `front`, then the pieces of the file without its
/// first `dropped`, then those of `back` that the file lacks.
struct Renumbering {
  std::vector<std::string> front{};
  int64_t dropped = 0;
  std::vector<std::string> back{};
};

/// The tokenizer of a family of models.
struct TokenizerFamily {
  std::string name;
  std::vector<std::string> classes;      ///< `tokenizer_class` of tokenizer_config.json, without "Fast"
  std::vector<std::string> model_types;  ///< of config.json
  std::vector<std::string> kinds;        ///< of Cloze's models that read texts in this frame
  FrameRule frame;
  Renumbering pieces{};
  SentencePieceRules rules{};  ///< by default; tokenizer_config.json may say otherwise
  int64_t sentinels = 0;       ///< <extra_id_0> ... that the class adds
  std::string language{};      ///< of texts, where nothing else is said
};

const std::vector<TokenizerFamily>& tokenizer_families();
/// The family called `name`, that of a `tokenizer_class`, of a `model_type`, of a kind of Cloze's models; null for
/// none.
const TokenizerFamily* family_called(const std::string& name);
const TokenizerFamily* family_of_class(const std::string& tokenizer_class);
const TokenizerFamily* family_of_model_type(const std::string& model_type);
const TokenizerFamily* family_of_kind(const std::string& kind);

/// The encoder of a SentencePiece file with the ids of `family`. Throws DataError where the file is not one of that
/// family.
std::unique_ptr<Encoder> renumbered(std::unique_ptr<Encoder> file, const TokenizerFamily& family,
                                    const std::string& path);

}  // namespace cloze
