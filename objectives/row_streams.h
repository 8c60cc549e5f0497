#pragma once
// The random streams that rows are made from.
#include "core/random.h"

namespace cloze {

/// The random streams of rows.
struct RowStreams {
  RowStreams(const Rng& all) : order(all), masking(all) {}
  RowStreams(const Rng& of_order, const Rng& of_masking) : order(of_order), masking(of_masking) {}
  Rng order;    ///< the order of the text, how it is cut and paired
  Rng masking;  ///< which tokens are masked or corrupted, and how
};

}  // namespace cloze
