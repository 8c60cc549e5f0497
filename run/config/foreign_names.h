#pragma once
// What a config key that Cloze does not have was meant to be: names of other programs, and keys of another section.
#include <string>
#include <vector>

#include "run/config/config.h"

namespace cloze {

/// A name of transformers' TrainingArguments and model configs, of fairseq's or nanoGPT's options or of BERT's flags,
/// or of a section of Cloze's own.
struct ForeignName {
  std::string name;         ///< in lower case, with underscores; with a section where it means that in it alone
  const char* key;          ///< the key that is meant; empty: there is none
  const char* advice = "";  ///< what to do where no key, or no key alone, does the same
};
const std::vector<ForeignName>& foreign_names();

/// The keys of `config` that a name may mean, at most three: that of the table, else those that end in it.
/// `name` may be a dotted key, or an option: only its last part counts where the table has not the whole, `-` is `_`.
std::vector<std::string> keys_meant_by(const RunConfig& config, const std::string& name);

/// What the table advises on a name; empty for others.
std::string advice_on(const std::string& name);

}  // namespace cloze
