#pragma once
// The lengths of texts with corrupted spans. Source: Raffel et al. 2020, section 3.3 (arXiv 1910.10683);
// google-research/text-to-text-transfer-transformer, t5/data/preprocessors.py.
#include <cstdint>

namespace cloze {

/// Noise tokens and spans of a mask of random_spans (noise.h).
struct NoiseCount {
  int64_t tokens, spans;
};
NoiseCount noise_count(int64_t length, double density, double mean_length);

/// Maximum number of text tokens that span corruption turns into a source of at most `inputs_length` ids, end token
/// included. 512, 0.15, 3: 568. Differs: exact for random_spans (there short texts are counted without a span, and
/// their sources lose its sentinel). Throws ConfigError unless 0 <= density < 1 and mean_length >= 1.
int64_t raw_length(int64_t inputs_length, double density, double mean_length);
/// Length of the target for `raw_length` text tokens, end token included. 512, 0.15, 3: 114.
int64_t targets_length(int64_t inputs_length, double density, double mean_length);

}  // namespace cloze
