#pragma once
// How much of a text each of its tokens covers.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/tokenizer.h"

namespace cloze {

/// The number of bytes of a sentence that each of its ids covers, with the white space before it: they add up to the
/// sentence, plus one for the separator if it follows another sentence.
/// follows   it follows another sentence of its document
std::vector<uint32_t> source_bytes(const Tokenizer& tokenizer, const std::string& sentence,
                                   std::span<const int32_t> ids, bool follows);

}  // namespace cloze
