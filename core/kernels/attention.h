#pragma once
// Attention of one head over one sequence, on raw pointers: no LibTorch, no threads. Scores are computed for a tile of
// query rows at a time, so that memory is linear in the length; the backward pass recomputes them from the log-sum-exp.
#include "core/kernels/kernels.h"

namespace cloze::kernels {

/// Rows of one head: row t is the C numbers at data + t stride; `bias` [C] (or null) is added to every row.
template <class T>
struct HeadRows {
  const T* data;
  int64_t stride;
  const float* bias;
};
/// The same, as output.
template <class T>
struct HeadOut {
  T* data;
  int64_t stride;
};

/// XLNet's position and segment terms of a score. The score of query n and key s is
/// ((q_n + r_w)' k_s + (q_n + r_r)' r_(distance_offset n + s) + (q_n + r_s)' e_(segments_differ n s)) scale. `r_w` is
/// the bias of the queries. Source: Yang et al. 2019, sections 2.3 to 2.5.
template <class T>
struct Relative {
  HeadRows<T> r;                   ///< distance keys
  int64_t distances;               ///< number of distance keys
  const int64_t* distance_offset;  ///< [T]: index of key 0's distance; null: T - n
  const bool* visible;             ///< [T, S], true = may be attended to; null: all may
  const bool* segments_differ;     ///< [T, S], true = query and key are of different segments; null: no segment term
  const float *r_r, *r_s;          ///< [C]
  const float* segments;           ///< [C] of the same segment; of different segments at + segment_stride
  int64_t segment_stride;
  float* dr;                  ///< backward, added to, like the next four: [relative_rows(distances), relative_width(C)]
  float *dr_w, *dr_r, *dr_s;  ///< [relative_width(C)]
  float* dsegments;           ///< [2, relative_width(C)]
  float* scratch;             ///< relative_scratch(...) floats
  bool prepared;              ///< `scratch` holds this `r`, prepared by the previous call of the same pass
};

/// One head. `T` is float or uint16_t (bf16 bits).
template <class T>
struct Attention {
  int64_t queries, keys, head_width;  ///< T, S, C
  int64_t mask_row;                   ///< the row of the dropout mask that the first query has
  HeadRows<T> q, k, v;                ///< T, S, S rows
  float scale;                        ///< of Q K'
  const bool* key_mask;               ///< [S], true = may be used, or null
  bool causal;                        ///< the query at t attends to keys up to t + S - T
  int64_t prefix;                     ///< with `causal`: number of leading keys that every query attends to
  const Relative<T>* relative;        ///< or null. Not with `window`
  const float* distance;  ///< added to the score of (t, s): element s - t + T - 1; or null. Readable up to T + S + 128.
                          ///< Not with `window`
  int64_t window;         ///< keys attended to on either side; -1: all. Not with `causal`; T = S
  int64_t dilation;       ///< step between the keys of a window, `window` of them on either side
  const int64_t* globals;            ///< positions of the keys that every query attends to, or null
  int64_t num_globals, max_globals;  ///< of this sequence; maximum over the batch (the width of their dropout rows)
  Dropout drop;                      ///< row mask_row + t, of S or more columns
  HeadOut<T> out;                    ///< T rows
  float* lse;                        ///< [T]; -inf where all keys of a query are masked
  HeadRows<T> dout;                  ///< backward: T rows
  HeadOut<T> dq, dk, dv;             ///< backward: T, S, S rows
  float* ddistance;                  ///< backward: added to, of the length of `distance`; or null
  float* scratch;                    ///< attention_scratch(...) floats
};

/// One head of random-feature attention (FAVOR+).
template <class T>
struct Favor {
  int64_t length, head_width;  ///< T, C
  HeadRows<T> q, k, v;         ///< T rows
  const bool* key_mask;        ///< [T], true = may be used, or null
  bool causal, softmax;        ///< softmax: features of the softmax kernel, else of the generalised ReLU kernel
  float epsilon;
  int64_t features;       ///< R
  const float *w, *w_t;   ///< C^-1/4 times the projection: [R, ceil16(C)] and [C, ceil16(R)], padded with zeros
  HeadOut<T> out;         ///< T rows; read by the backward pass
  float* denominator;     ///< [T]; 0 where all keys of a query are masked
  HeadRows<T> dout;       ///< backward: T rows
  HeadOut<T> dq, dk, dv;  ///< backward: T rows
  float* scratch;         ///< favor_scratch(...) floats
};

template <class T>
struct AttentionKernels {
  void (*forward)(const Attention<T>&);
  void (*backward)(const Attention<T>&);
  void (*window_forward)(const Attention<T>&);
  void (*window_backward)(const Attention<T>&);
  void (*favor_forward)(const Favor<T>&);
  void (*favor_backward)(const Favor<T>&);
};

struct AttentionTable {
  AttentionKernels<float> f32;
  AttentionKernels<uint16_t> bf16;
};

const AttentionTable& attention_table();

template <class T>
const AttentionKernels<T>& attention();
template <>
inline const AttentionKernels<float>& attention<float>() {
  return attention_table().f32;
}
template <>
inline const AttentionKernels<uint16_t>& attention<uint16_t>() {
  return attention_table().bf16;
}

inline constexpr int64_t attention_rows = 48;  ///< query rows of a tile

/// Padded number of keys in the scratch space of windowed attention: not a power of two, so that rows do not map to the
/// same cache sets.
inline int64_t window_keys(int64_t length) { return (length + 15) / 16 * 16 + 48; }
/// Maximum number of window keys that a tile of queries scores.
inline int64_t window_reach(int64_t length, int64_t window) {
  const int64_t wanted = attention_rows + 2 * window + 32, all = (length + 15) / 16 * 16 + 16;
  return ((wanted < all ? wanted : all) + 15) / 16 * 16;
}
/// Floats of scratch space for either pass of windowed attention.
inline int64_t window_scratch(int64_t length, int64_t head_width, int64_t window, int64_t globals) {
  const int64_t keys = window_keys(length), width = (head_width + 15) / 16 * 16,
                global_columns = (globals + 15) / 16 * 16, reach = window_reach(length, window);
  return 6 * keys * width + 6 * global_columns * width + 2 * attention_rows * (global_columns + reach) +
         4 * attention_rows * width + keys + global_columns + 2 * reach + 2 * window + 512 + globals + 256;
}

/// Floats of scratch space for either pass of random-feature attention.
inline int64_t favor_scratch(int64_t length, int64_t head_width, int64_t features) {
  const int64_t r = (features + 15) / 16 * 16, c = (head_width + 15) / 16 * 16, rows = attention_rows;
  return 4 * r * c + 2 * r + 5 * rows * r + 7 * rows * c + 2 * rows * rows + 2 * c + 4 * rows + 2 * length;
}

inline int64_t relative_width(int64_t head_width) { return (head_width + 31) / 32 * 32; }
/// Padded number of distance keys.
inline int64_t relative_rows(int64_t distances) { return (distances + 15) / 16 * 16 + 32; }
inline int64_t relative_scratch(int64_t distances, int64_t head_width) {
  const int64_t width = relative_width(head_width), rows = relative_rows(distances);
  return 2 * rows * width + 3 * attention_rows * width + 2 * attention_rows * rows + 64;
}

/// Floats of scratch space for either pass over S = `sources`.
inline int64_t attention_scratch(int64_t sources, int64_t head_width) {
  const int64_t keys = (sources + 127) / 128 * 128, width = (head_width + 31) / 32 * 32;
  return 6 * keys * width + 4 * attention_rows * keys + 4 * attention_rows * width + 2 * keys + 64;
}

}  // namespace cloze::kernels
