#pragma once
// A row as a page shows it: its tokens, and below them what is predicted from their positions.
#include <string>
#include <vector>

namespace cloze {

/// What a token is to the objective of its row.
enum class TokenRole {
  text,
  special,      ///< [CLS], [SEP] and their like
  masked,       ///< chosen, and hidden by the mask
  random,       ///< chosen, and replaced by another token
  kept,         ///< chosen, and as it was
  ordered,      ///< predicted, by its rank in a factorisation order
  placeholder,  ///< a mask or a sentinel, for which the target has tokens
  replaced,     ///< a sample that replaces a masked token
  restored      ///< a sample that is the token that was masked
};

struct ShownToken {
  std::string piece{};
  TokenRole role = TokenRole::text;
  std::string below{};  ///< what is predicted here: a token, a label, or its rank in an order; empty: nothing
};

/// What a part of the network reads, or what is predicted.
struct ShownTokens {
  std::string title{};
  std::vector<ShownToken> tokens{};
};

}  // namespace cloze
