#pragma once
// How tags mark phrases.
#include <array>

#include "core/config/config_rule.h"

namespace cloze {

/// How tags mark where a phrase begins and ends.
enum class TagScheme { none, bio, bioes, bmes, bilou, iob1, ioe1, ioe2 };
/// The names of seqeval mean the same.
constexpr auto choices(TagScheme) {
  using enum TagScheme;
  return std::array{
      Choice{none, "none", "they mark none, as those of parts of speech, or as their letters tell"},
      Choice{bio, "bio", "B- begins a phrase, I- goes on, O is none"},
      Choice{bioes, "bioes", "E- ends a phrase and S- is one of a single word, too"},
      Choice{bmes, "bmes", "the same with M- for I-"},
      Choice{bilou, "bilou", "the same with L- for E- and U- for S-"},
      Choice{iob1, "iob1", "B- only where a phrase follows another one of its type"},
      Choice{ioe1, "ioe1", "E- only where a phrase of the same type follows"},
      Choice{ioe2, "ioe2", "E- ends every phrase"},
      Choice{none, "automatic"},
      Choice{bio, "IOB2"},
      Choice{bioes, "IOBES"},
      Choice{bilou, "BILOU"},
      Choice{iob1, "IOB1"},
      Choice{ioe1, "IOE1"},
      Choice{ioe2, "IOE2"},
  };
}

}  // namespace cloze
