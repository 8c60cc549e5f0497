// The kernel of gemm.h on the tiles of AMX: 32 x 32 of the result at a time.
#if defined(__AMX_BF16__)
#define CLOZE_ISA amx

#include <immintrin.h>

#include "core/kernels/kernels.h"
#include "core/kernels/gemm.h"

namespace cloze::kernels::CLOZE_ISA {
namespace {

#include "core/kernels/vector.inc"
#include "core/kernels/tiles.inc"

#include "core/kernels/gemm_parts.inc"

constexpr int64_t block = 2 * tile_side;     // rows and columns that are computed together
constexpr int64_t rows_at_once = 2 * block;  // rows whose tiles are in the scratch space at a time
constexpr int64_t depth_block = 256;         // pairs that are accumulated before they are added to `sum`
constexpr int64_t ahead_of_packing = 32;     // rows that are prefetched before they are packed
constexpr int64_t panel_words = 192 << 10;   // of packed columns, for a second-level cache of 2 MB

/// Pairs that are accumulated at a time.
int64_t pairs_at_once(const Bf16Gemm& p) {
  const int64_t pairs = (p.depth + 1) / 2;
  return p.sum ? min(pairs, depth_block) : pairs;
}
int64_t columns_at_once(const Bf16Gemm& p) {
  const int64_t most = panel_words / (padded(pairs_at_once(p)) + 1) / block * block;
  return min(padded(p.columns), most > block ? most : block);
}
int64_t scratch(const Bf16Gemm& p) { return padded(pairs_at_once(p)) * (columns_at_once(p) + rows_at_once); }

/// Sixteen pairs of rows `one` and `two` (null: zeros) from column 0 on, of which `left` columns exist.
CLOZE_INLINE void pair_row(const uint16_t* one, const uint16_t* two, int64_t left, Pair* out) {
  const __mmask16 mask = first_lanes(left);
  store_pairs(out, _mm256_maskz_loadu_epi16(mask, one),
              two ? _mm256_maskz_loadu_epi16(mask, two) : _mm256_setzero_si256());
}

/// A strip of sixteen columns of b as tiles: [padded(pairs), 16]; what does not exist is zero. `left` columns exist.
void pack_strip(const Bf16Gemm& p, int64_t first, int64_t pairs, int64_t column, int64_t left, Pair* out) {
  int64_t k = 0;
  if (p.b_depth_major) {
    for (; k < pairs; ++k) {
      const int64_t row = 2 * (first + k);
      const uint16_t* one = p.b + row * p.b_stride + column;
      pair_row(one, row + 1 < p.depth ? one + p.b_stride : nullptr, left, out + k * tile_side);
    }
  } else {
    const uint16_t* from = p.b + column * p.b_stride + 2 * first;
    if (left >= tile_side)
      for (; k + tile_side <= pairs; k += tile_side)
        transpose_block((const float*)(from + 2 * k), p.b_stride / 2, (float*)(out + k * tile_side), tile_side);
    for (; k < pairs; ++k)
      for (int64_t lane = 0; lane < tile_side; ++lane) {
        out[k * tile_side + lane] = 0;
        if (lane < left) __builtin_memcpy(out + k * tile_side + lane, from + lane * p.b_stride + 2 * k, sizeof(Pair));
      }
  }
  __builtin_memset(out + k * tile_side, 0, sizeof(Pair) * (padded(pairs) - pairs) * tile_side);
}

/// Two strips of b at a time where its rows are the depth, so that whole cache lines are read.
__attribute__((noinline)) void pack_columns(const Bf16Gemm& p, int64_t first, int64_t pairs, int64_t column,
                                            int64_t width, Pair* out) {
  const int64_t strip = padded(pairs) * tile_side;
  int64_t c = 0;
  if (p.b_depth_major) {
    for (; c + block <= width; c += block) {
      Pair *to = out + c / tile_side * strip, *second = to + strip;
      for (int64_t k = 0; k < pairs; ++k) {
        const int64_t row = 2 * (first + k);
        const uint16_t *one = p.b + row * p.b_stride + column + c,
                       *soon = p.b + min(row + ahead_of_packing, p.depth - 1) * p.b_stride + column + c;
        _mm_prefetch((const char*)soon, _MM_HINT_T0);
        _mm_prefetch((const char*)(soon + (row + ahead_of_packing + 1 < p.depth ? p.b_stride : 0)), _MM_HINT_T0);
        store_pairs(to + k * tile_side, second + k * tile_side, _mm512_loadu_si512(one),
                    row + 1 < p.depth ? _mm512_loadu_si512(one + p.b_stride) : _mm512_setzero_si512());
      }
      const int64_t rest = sizeof(Pair) * (padded(pairs) - pairs) * tile_side;
      __builtin_memset(to + pairs * tile_side, 0, rest);
      __builtin_memset(second + pairs * tile_side, 0, rest);
    }
  }
  for (; c < width; c += tile_side) pack_strip(p, first, pairs, column + c, width - c, out + c / tile_side * strip);
}

/// Rows [row, row + count) of a, at most sixteen, as tiles [padded(pairs) / 16, 16, 16]; what does not exist is zero.
void pack_tile_rows(const Bf16Gemm& p, int64_t first, int64_t pairs, int64_t row, int64_t count, Pair* out) {
  for (int64_t k = 0; k < pairs; k += tile_side, out += tile_words) {
    const int64_t some = min(pairs - k, tile_side);
    if (p.a_depth_major) {
      alignas(64) Pair buffer[tile_words] = {};
      for (int64_t i = 0; i < some; ++i) {
        const int64_t t = 2 * (first + k + i);
        const uint16_t* one = p.a + t * p.a_stride + row;
        pair_row(one, t + 1 < p.depth ? one + p.a_stride : nullptr, count, buffer + i * tile_side);
      }
      transpose_block((const float*)buffer, tile_side, (float*)out, tile_side);
      continue;
    }
    for (int64_t r = 0; r < tile_side; ++r) {
      const auto* from = (const Pair*)(p.a + (row + r) * p.a_stride) + first + k;
      const __m512i pairs_of_row =
          r < count ? _mm512_maskz_loadu_epi32(first_lanes(some), from) : _mm512_setzero_si512();
      _mm512_storeu_si512(out + r * tile_side, pairs_of_row);
    }
  }
}

/// Rows of a depth-major `a` in whole blocks, of which whole cache lines are read: two rows of tiles at a time.
void pack_block_rows(const Bf16Gemm& p, int64_t first, int64_t pairs, int64_t row, Pair* out) {
  const int64_t strip = padded(pairs) * tile_side;
  for (int64_t k = 0; k < pairs; k += tile_side, out += tile_words) {
    alignas(64) Pair buffer[2][tile_words];
    for (int64_t i = 0; i < tile_side; ++i) {
      const int64_t t = 2 * (first + k + i), last = p.depth - 1;
      const bool is_there = k + i < pairs;
      const uint16_t *one = p.a + min(t, last) * p.a_stride + row,
                     *soon = p.a + min(t + ahead_of_packing, last) * p.a_stride + row;
      _mm_prefetch((const char*)soon, _MM_HINT_T0);
      _mm_prefetch((const char*)(soon + (t + ahead_of_packing < last ? p.a_stride : 0)), _MM_HINT_T0);
      store_pairs(buffer[0] + i * tile_side, buffer[1] + i * tile_side,
                  is_there ? _mm512_loadu_si512(one) : _mm512_setzero_si512(),
                  is_there && t + 1 < p.depth ? _mm512_loadu_si512(one + p.a_stride) : _mm512_setzero_si512());
    }
    transpose_block((const float*)buffer[0], tile_side, (float*)out, tile_side);
    transpose_block((const float*)buffer[1], tile_side, (float*)(out + strip), tile_side);
  }
}

/// The tiles of rows of `a`: those of the matrix itself, or packed ones.
struct LeftTiles {
  Operand at[rows_at_once / block];
};
__attribute__((noinline)) void left_tiles(const Bf16Gemm& p, int64_t first, int64_t pairs, int64_t row, int64_t count,
                                          Pair* space, LeftTiles& left) {
  const int64_t strip = padded(pairs) * tile_side;
  const bool is_direct = !p.a_depth_major && pairs % tile_side == 0;
  for (int64_t r = 0; r < count; r += block, space += 2 * strip) {
    auto& operand = left.at[r / block];
    operand = {space, space + strip, tile_side, tile_words};
    if (count - r >= block && is_direct) {
      const auto* from = (const Pair*)(p.a + (row + r) * p.a_stride) + first;
      operand = {from, from + tile_side * p.a_stride / 2, p.a_stride / 2, tile_side};
    } else if (count - r >= block && p.a_depth_major) {
      pack_block_rows(p, first, pairs, row + r, space);
    } else {
      pack_tile_rows(p, first, pairs, row + r, min(count - r, tile_side), space);
      if (count - r > tile_side)
        pack_tile_rows(p, first, pairs, row + r + tile_side, min(count - r, block) - tile_side, space + strip);
    }
  }
}

/// What is prefetched of the block of rows of `a` from `row` on, while column `c` of `width` is computed.
CLOZE_INLINE Soon soon(const Bf16Gemm& p, int64_t first, int64_t width, int64_t c, int64_t row) {
  if (p.a_depth_major || row + block > p.rows) return {};
  const int64_t blocks = width > block ? width / block : 1, each = (block + blocks - 1) / blocks, at = c / block * each;
  if (at >= block) return {};
  return {(const Pair*)(p.a + (row + at) * p.a_stride) + first, min(each, block - at), p.a_stride / 2};
}

/// Stores a whole block of the result.
CLOZE_INLINE void store_block(const Bf16Gemm& p, int64_t row, int64_t column, const float* sums) {
  if (p.sum) {
    float* to = p.sum + row * p.c_stride + column;
    for (int64_t i = 0; i < block; ++i, to += p.c_stride, sums += block) {
      store(to, load(to) + load(sums));
      store(to + 16, load(to + 16) + load(sums + 16));
    }
    return;
  }
  const vf low = p.bias ? load(p.bias + column) : vf{}, high = p.bias ? load(p.bias + column + 16) : vf{};
  uint16_t* to = p.c + row * p.c_stride + column;
  for (int64_t i = 0; i < block; ++i, to += p.c_stride, sums += block) {
    const auto rounded = _mm512_cvtne2ps_pbh((__m512)(load(sums + 16) + high), (__m512)(load(sums) + low));
    _mm512_storeu_si512(to, (__m512i)rounded);
  }
}

/// Stores what exists of a block at the edge.
__attribute__((noinline)) void store_part(const Bf16Gemm& p, int64_t row, int64_t column, int64_t rows, int64_t columns,
                                          const float* sums) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; j += 16)
      store_result(p, row + i, column + j, load(sums + i * block + j), columns - j);
}

void gemm(const Bf16Gemm& p) {
  const Tiles tiles;
  const int64_t pairs = (p.depth + 1) / 2, together = pairs_at_once(p), group = columns_at_once(p);
  Pair *panels = p.scratch, *rows = p.scratch + padded(together) * group;
  alignas(64) float sums[block * block];
  for (int64_t first = 0; first < pairs; first += together) {
    const int64_t depth = min(together, pairs - first), steps = padded(depth) / tile_side, strip = steps * tile_words;
    for (int64_t column = 0; column < p.columns; column += group) {
      const int64_t width = min(group, p.columns - column);
      pack_columns(p, first, depth, column, width, panels);
      for (int64_t row = 0; row < p.rows; row += rows_at_once) {
        const int64_t count = min(rows_at_once, p.rows - row);
        LeftTiles left;
        left_tiles(p, first, depth, row, count, rows, left);
        for (int64_t c = 0; c < width; c += block) {
          const Pair* right = panels + c / tile_side * strip;
          for (int64_t r = 0; r < count; r += block) {
            multiply_tiles(count - r > tile_side ? 2 : 1, width - c > tile_side ? 2 : 1, steps, left.at[r / block],
                           {right, right + strip, tile_side, tile_words}, {sums, block}, false,
                           soon(p, first, width, c, row + rows_at_once + r));
            const int64_t tile_rows = min(block, count - r), tile_columns = min(block, width - c);
            if (tile_rows == block && tile_columns == block)
              store_block(p, row + r, column + c, sums);
            else
              store_part(p, row + r, column + c, tile_rows, tile_columns, sums);
          }
        }
      }
    }
  }
}

}  // namespace

extern const GemmKernel<uint16_t> gemm_of_isa;
const GemmKernel<uint16_t> gemm_of_isa = {
    .run = gemm, .scratch = scratch, .rows = block, .columns = block, .packing_cost = 96};

}  // namespace cloze::kernels::CLOZE_ISA
#endif
