#pragma once
// Scripts that are written without spaces between words.
#include <cstdint>

namespace cloze {

/// Letters and marks of Chinese, Japanese, Thai, Lao, Burmese, Khmer, Tibetan and others whose words have no space
/// between them, with their punctuation. Source: Unicode Standard Annex 14, the line breaking classes SA, ID, CJ, NS,
/// CL and OP of these scripts. Differs: Korean has spaces, and is left out.
bool is_written_without_spaces(int32_t c);

/// Where a unit of such a script may begin: at every character but marks, and vowels that are written after their
/// consonant.
bool begins_unit_without_spaces(int32_t c);

}  // namespace cloze
