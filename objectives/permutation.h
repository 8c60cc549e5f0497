#pragma once
// Rows of permutation language modelling.
#include "objectives/batch.h"
#include "objectives/config.h"
#include "objectives/masking.h"
#include "objectives/noising.h"

namespace cloze {

/// The batch of texts, each with its orders drawn from its stream. A row is text [SEP] [CLS], padded on the left; segments are 0, that of
/// [CLS] is 2. Inputs stay as they are: what a token may see is in `visible`, what is predicted in `target_places`.
/// Source: Yang et al. 2019, section 2 (arXiv 1906.08237); zihangdai/xlnet, data_utils.py. Differs: one segment, which is read without memory.
Batch permutation_batch(const std::vector<std::vector<int64_t>>& texts, std::vector<Stream>& streams, const PlmConfig& config, const Vocabulary& vocabulary);

}  // namespace cloze
