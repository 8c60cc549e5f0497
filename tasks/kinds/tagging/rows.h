#pragma once
// Rows of words with tags, and the way back from tokens to words.
#include <span>
#include <string>
#include <vector>

#include "tasks/rows/rows.h"

namespace cloze {

/// The tokens of a word that stands alone, and of one inside a list of words: after a space where the tokenizer's
/// tokens have it, unless the word begins with one; none for an empty word.
/// Source: huggingface/tokenizers, `encode` of pre-tokenised input. Differs: a space, too, for byte-level tokenizers
/// without `add_prefix_space`, which transformers refuses (RoBERTa) or joins without (ModernBERT).
std::vector<int32_t> word_tokens(const Tokenizer& tokenizer, const std::string& word);

/// One tag for each word of an item.
///
/// words     of the item
/// rows      its rows
/// tags      of each row, by position
/// missing   tag of words without a token
std::vector<int64_t> tags_of_words(int64_t words, std::span<const TaskRow> rows,
                                   std::span<const std::vector<int64_t>> tags, int64_t missing);

/// Words are segmented one by one, after a space where the tokenizer's tokens have one, and the first token of a word
/// has its tag. Further windows begin with a word; a word has its tag in one of them, that with the most tokens on the
/// narrower side of the word.
void add_word_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                   RowCounts& counts);

}  // namespace cloze
