#pragma once
// Training of tokenizers.
#include <string>

#include "data/prepare/split.h"

namespace cloze {

/// Trains a unigram or BPE model on sentences drawn from the training text of `split` and writes it to
/// `folder`/spiece.model. Specials: [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4. Throws DataError.
void train_tokenizer(const PrepareOptions& options, const Split& split, const std::string& folder);

}  // namespace cloze
