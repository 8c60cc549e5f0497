#pragma once
// Which token stands for a text.
#include "core/tensor/param.h"
#include "objectives/task_heads/published_heads.h"

namespace cloze {

/// The position int64 [B] of a token of each row of ids int64 [B, T]; mask bool [B, T], true = a real token, undefined:
/// all real. A row without the end token `eos` has its last real token. Plain operators, traceable.
inline Tensor class_positions_of(ClassToken token, const Tensor& ids, const Tensor& mask, int64_t eos) {
  const auto place = at::ones_like(ids).cumsum(1) - 1;
  const auto furthest = [&](const Tensor& chosen) { return place.masked_fill(chosen.logical_not(), -1).amax(1); };
  if (token == ClassToken::first)
    return mask.defined() ? place.masked_fill(mask.logical_not(), int64_t{1} << 40).amin(1) : place.select(1, 0);
  const auto last = (mask.defined() ? furthest(mask) : place.amax(1)).clamp_min(0);
  if (token == ClassToken::last) return last;
  const auto end = furthest(ids.eq(eos));
  return at::where(end.lt(0), last, end);
}

}  // namespace cloze
