#pragma once
// Attention of one head of one sequence, on raw pointers: no LibTorch, no threads. Scores live in blocks of a few
// query rows, so that memory is linear in length; the backward pass computes them again from the log-sum-exp.
#include "core/kernels/kernels.h"

namespace cloze::kernels {

/// Rows of one head: row t is C numbers from data + t stride on; `bias` [C], or null, belongs to every row.
template <class T>
struct HeadRows {
  const T* data;
  int64_t stride;
  const float* bias;
};
/// The same to be written.
template <class T>
struct HeadOut {
  T* data;
  int64_t stride;
};

/// What a score of XLNet has beside the content: the score of query n and key s is
/// ((q_n + r_w)' k_s + (q_n + r_r)' r_(number n + s) + (q_n + r_s)' e_(apart n s)) scale. `r_w` is the bias of the
/// queries. Source: Yang et al. 2019, sections 2.3 to 2.5.
template <class T>
struct Relative {
  HeadRows<T> r;               ///< keys of the distances
  int64_t distances;           ///< how many
  const int64_t* number;       ///< [T]: the distance of key 0; null: T - n
  const bool *hidden, *apart;  ///< [T, S], or null: nothing is; without `apart` there are no segments
  const float *r_r, *r_s;      ///< [C]
  const float* segments;       ///< [C] of the same segment, and `segment_stride` on of another one
  int64_t segment_stride;
  float* dr;                  ///< backward, as what follows added to: [relative_rows(distances), relative_width(C)]
  float *dr_w, *dr_r, *dr_s;  ///< [relative_width(C)]
  float* dsegments;           ///< [2, relative_width(C)]
  float* scratch;             ///< relative_scratch(...) floats
  bool prepared;              ///< `scratch` has been used with this `r` by the call before, of the same pass
};

/// One head. `T` is float or uint16_t (bf16 bits).
template <class T>
struct Attention {
  int64_t queries, keys, head_width;  ///< T, S, C
  int64_t item;                       ///< b H + h, which names the dropout rows
  HeadRows<T> q, k, v;                ///< T, S, S rows
  float scale;                        ///< of Q K'
  const bool* key_mask;               ///< [S], true = may be used, or null
  bool causal;                        ///< the query at t sees keys up to t + S - T
  int64_t prefix;                     ///< of `causal`: so many keys, from the first on, every query sees
  const Relative<T>* relative;        ///< or null. Not in a window
  const float*
      distance;      ///< added to a score, or null: number s - t + T - 1. Readable up to T + S + 128. Not in a window
  int64_t window;    ///< keys up to so far on either side are seen; -1: all. Not with `causal`; T = S
  int64_t dilation;  ///< of a window: only keys whose distance is a multiple of it, `window` of them on either side
  const int64_t* globals;             ///< places of the keys that every query sees, or null
  int64_t num_globals, most_globals;  ///< of this sequence, and of any in the batch (which numbers their dropout)
  Dropout drop;                       ///< row (item T + t), width S
  HeadOut<T> out;                     ///< T rows
  float* lse;                         ///< [T]; -inf stands for a query that sees nothing
  HeadRows<T> dout;                   ///< backward: T rows
  HeadOut<T> dq, dk, dv;              ///< backward: T, S, S rows
  float* ddistance;                   ///< backward: added to, as long as `distance`; or null
  float* scratch;                     ///< attention_scratch(...) floats
};

/// One head of attention by random features (FAVOR+).
template <class T>
struct Favor {
  int64_t length, head_width;  ///< T, C
  HeadRows<T> q, k, v;         ///< T rows
  const bool* key_mask;        ///< [T], true = may be used, or null
  bool causal, softmax;        ///< features of the softmax kernel, or of the generalised one with ReLU
  float epsilon;
  int64_t features;       ///< R
  const float *w, *w_t;   ///< C^-1/4 times the projection: [R, ceil16(C)] and [C, ceil16(R)], padded with zeros
  HeadOut<T> out;         ///< T rows; read by the backward pass
  float* denominator;     ///< [T]; 0 for a query that sees nothing
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

inline constexpr int64_t attention_rows = 48;  ///< query rows in a block

/// Room for keys in a window's scratch space: not a power of two, so that rows do not fall on the same cache sets.
inline int64_t window_keys(int64_t length) { return (length + 15) / 16 * 16 + 48; }
/// Most columns of keys that a block of queries scores in a window.
inline int64_t window_reach(int64_t length, int64_t window) {
  const int64_t wanted = attention_rows + 2 * window + 32, all = (length + 15) / 16 * 16 + 16;
  return ((wanted < all ? wanted : all) + 15) / 16 * 16;
}
/// Floats of scratch space for either pass of attention in a window.
inline int64_t window_scratch(int64_t length, int64_t head_width, int64_t window, int64_t globals) {
  const int64_t keys = window_keys(length), width = (head_width + 15) / 16 * 16, side = (globals + 15) / 16 * 16,
                reach = window_reach(length, window);
  return 6 * keys * width + 6 * side * width + 2 * attention_rows * (side + reach) + 4 * attention_rows * width + keys +
         side + 2 * reach + 2 * window + 512 + globals + 256;
}

/// Floats of scratch space for either pass of attention by random features.
inline int64_t favor_scratch(int64_t length, int64_t head_width, int64_t features) {
  const int64_t r = (features + 15) / 16 * 16, c = (head_width + 15) / 16 * 16, rows = attention_rows;
  return 4 * r * c + 2 * r + 5 * rows * r + 7 * rows * c + 2 * rows * rows + 2 * c + 4 * rows + 2 * length;
}

inline int64_t relative_width(int64_t head_width) { return (head_width + 31) / 32 * 32; }
/// The list of distances and room behind it.
inline int64_t relative_rows(int64_t distances) { return (distances + 15) / 16 * 16 + 32; }
inline int64_t relative_scratch(int64_t distances, int64_t head_width) {
  const int64_t width = relative_width(head_width), list = relative_rows(distances);
  return 2 * list * width + 3 * attention_rows * width + 2 * attention_rows * list + 64;
}

/// Floats of scratch space for either pass over S = `sources`.
inline int64_t attention_scratch(int64_t sources, int64_t head_width) {
  const int64_t keys = (sources + 127) / 128 * 128, width = (head_width + 31) / 32 * 32;
  return 6 * keys * width + 4 * attention_rows * keys + 4 * attention_rows * width + 2 * keys + 64;
}

}  // namespace cloze::kernels
