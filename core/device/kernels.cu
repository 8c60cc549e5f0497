// The kernels of a GPU. Compiled when a process first needs them (compiled.h), so that no build has to know a card; the
// tests compile the same text for the CPU and compare it with core/kernels.
//
// A warp works alone. Of a tile of 256 columns its lane l has the columns 8 l to 8 l + 7. Sums are taken in fp32, in an
// order that depends on the shapes alone. Rows are contiguous. `T` is the type of activations, ELEMENT.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
typedef unsigned short u16;

struct bf16 {
  u16 bits;
};
__device__ inline float wide(float x) { return x; }
__device__ inline float wide(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ inline void narrow(float x, float& out) { out = x; }
/// To nearest, ties to even; a NaN stays one.
__device__ inline void narrow(float x, bf16& out) {
  const u32 bits = __float_as_uint(x);
  out.bits = x != x ? 0x7FC0 : (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// The type of elements that a compilation is of: float or bf16.
typedef ELEMENT T;

constexpr int lanes = 32, per_lane = 8, tile_width = lanes * per_lane;

template <class E>
struct alignas(per_lane * sizeof(E) > 16 ? 16 : per_lane * sizeof(E)) Eight {
  E at[per_lane];
};

__device__ inline int own_lane() { return (int)(threadIdx.x % lanes); }
__device__ inline i64 own_warp() { return (i64)blockIdx.x * (blockDim.x / lanes) + threadIdx.x / lanes; }
__device__ inline i64 tiles_of(i64 width) { return (width + tile_width - 1) / tile_width; }

/// The sum over the lanes of a warp, in each of them.
__device__ inline float over_lanes(float x) {
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
  return x;
}

template <class E>
__device__ inline bool is_vector(const E* row, i64 column, i64 width) {
  return column + per_lane <= width && ((u64)(row + column) & 15) == 0;
}

/// Eight columns from `column` on, 0 beyond the width.
template <class E>
__device__ inline void load(const E* row, i64 column, i64 width, float* out) {
  if (is_vector(row, column, width)) {
    const Eight<E> all = *(const Eight<E>*)(row + column);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) out[i] = wide(all.at[i]);
  } else {
#pragma unroll
    for (int i = 0; i < per_lane; ++i) out[i] = column + i < width ? wide(row[column + i]) : 0.0f;
  }
}
template <class E>
__device__ inline void store(const float* x, E* row, i64 column, i64 width) {
  if (is_vector(row, column, width)) {
    Eight<E> all;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) narrow(x[i], all.at[i]);
    *(Eight<E>*)(row + column) = all;
  } else {
#pragma unroll
    for (int i = 0; i < per_lane; ++i)
      if (column + i < width) narrow(x[i], row[column + i]);
  }
}
/// As it is stored and read again.
template <class E>
__device__ inline float rounded(float x) {
  E stored;
  narrow(x, stored);
  return wide(stored);
}

/// As kernels::Dropout of core/kernels/kernels.h, whose masks these are, to the bit.
struct Dropout {
  u64 key;
  u32 site, threshold;
  float scale;
  const i64* rows;
  i64 width;
};

/// Whether the lane's columns are kept: bit i is that of column i. Each lane draws eight numbers, 16 columns apart, and
/// the ballots bring them to the lanes that have those columns.
__device__ inline u32 kept_columns(const Dropout& drop, i64 row, i64 width, i64 tile) {
  const int lane = own_lane();
  const i64 blocks = ((drop.width > 0 ? drop.width : width) + 127) / 128;
  const i64 number = drop.rows ? drop.rows[row] : row;
  u32 c[4] = {(u32)((number * blocks + 2 * tile + lane / 16) * 16 + lane % 16), 0u, drop.site, 0x64726f70u};
  u32 k0 = (u32)drop.key, k1 = (u32)(drop.key >> 32);
#pragma unroll
  for (int round = 0; round < 7; ++round) {
    const u64 a = (u64)0xD2511F53u * c[0], b = (u64)0xCD9E8D57u * c[2];
    const u32 next0 = (u32)(b >> 32) ^ c[1] ^ k0, next2 = (u32)(a >> 32) ^ c[3] ^ k1;
    c[0] = next0;
    c[1] = (u32)b;
    c[2] = next2;
    c[3] = (u32)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  u32 kept = 0;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const u32 all = __ballot_sync(0xFFFFFFFFu, (c[j / 2] >> (16 * (j % 2)) & 0xFFFFu) >= drop.threshold);
    if (j == lane % 16 / 2) kept = all >> (16 * (lane / 16) + 8 * (lane % 2)) & 0xFFu;
  }
  return kept;
}
/// x times dropout. All lanes of a warp call it.
__device__ inline void drop_out(const Dropout& drop, i64 row, i64 width, i64 tile, float* x) {
  if (drop.threshold == 0) return;
  const u32 kept = kept_columns(drop, row, width, tile);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) x[i] = kept >> i & 1 ? x[i] * drop.scale : 0.0f;
}

/// f(row, tile, first own column) for each tile of rows [rows, width], one a warp.
#define EACH_TILE(rows, width)                                  \
  const i64 tiles = tiles_of(width), number = own_warp();       \
  const i64 row = number / tiles, tile = number % tiles;        \
  const i64 column = tile * tile_width + own_lane() * per_lane; \
  if (row >= rows) return;                                      \
  [[maybe_unused]] const i64 first = row * width;

/// out = x times dropout.
extern "C" __global__ void dropout(i64 rows, i64 width, const T* x, Dropout drop, T* out) {
  EACH_TILE(rows, width)
  float v[per_lane];
  load(x + first, column, width, v);
  drop_out(drop, row, width, tile, v);
  store(v, out + first, column, width);
}

/// out [count, width]: the rows of x at `index`, and zeros where that is negative.
extern "C" __global__ void move_rows(i64 count, i64 width, const T* x, const i64* index, T* out) {
  EACH_TILE(count, width)
  float v[per_lane] = {};
  if (index[row] >= 0) load(x + index[row] * width, column, width, v);
  store(v, out + first, column, width);
}

/// v = residual + dropout(y + bias), eight columns of a row; bias may be null. All lanes of a warp call it.
__device__ inline void add_branch(i64 row, i64 tile, i64 column, i64 width, const T* y, const float* bias,
                                  const Dropout& drop, const T* residual, float* v) {
  float more[per_lane];
  load(y + row * width, column, width, v);
  if (bias) {
    load(bias, column, width, more);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) v[i] += more[i];
  }
  drop_out(drop, row, width, tile, v);
  load(residual + row * width, column, width, more);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) v[i] += more[i];
}

/// out = residual + dropout(y + bias); bias may be null.
extern "C" __global__ void dropout_add(i64 rows, i64 width, const T* y, const float* bias, Dropout drop,
                                       const T* residual, T* out) {
  EACH_TILE(rows, width)
  float v[per_lane];
  add_branch(row, tile, column, width, y, bias, drop, residual, v);
  store(v, out + first, column, width);
}

/// z = residual + dropout(y + bias), out = (z - mean) rstd gamma + beta; a warp a row. bias, residual, beta and z may
/// be null: without z, y is what is normed.
extern "C" __global__ void norm_forward(i64 rows, i64 width, const T* y, const float* bias, Dropout drop,
                                        const T* residual, T* z, const float* gamma, const float* beta, float eps,
                                        int centred, T* out, float* mean, float* rstd) {
  const i64 row = own_warp(), tiles = tiles_of(width), first = row * width;
  if (row >= rows) return;
  const T* normed = z ? z + first : y + first;
  float v[per_lane], more[per_lane], sum = 0, squares = 0;
  for (i64 tile = 0; tile < tiles; ++tile) {
    const i64 column = tile * tile_width + own_lane() * per_lane;
    if (z) {
      add_branch(row, tile, column, width, y, bias, drop, residual, v);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) v[i] = column + i < width ? rounded<T>(v[i]) : 0.0f;
      store(v, z + first, column, width);
    } else {
      load(y + first, column, width, v);
    }
#pragma unroll
    for (int i = 0; i < per_lane; ++i) sum += v[i];
  }
  const float m = centred ? over_lanes(sum) / (float)width : 0.0f;
  for (i64 tile = 0; tile < tiles; ++tile) {
    const i64 column = tile * tile_width + own_lane() * per_lane;
    load(normed, column, width, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) squares += column + i < width ? (v[i] - m) * (v[i] - m) : 0.0f;
  }
  const float r = 1.0f / sqrtf(over_lanes(squares) / (float)width + eps);
  for (i64 tile = 0; tile < tiles; ++tile) {
    const i64 column = tile * tile_width + own_lane() * per_lane;
    load(normed, column, width, v);
    load(gamma, column, width, more);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) v[i] = (v[i] - m) * r * more[i];
    if (beta) {
      load(beta, column, width, more);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) v[i] += more[i];
    }
    store(v, out + first, column, width);
  }
  if (own_lane() == 0) {
    mean[row] = m;
    rstd[row] = r;
  }
}

/// dz, the gradient of z, and dy = dz times dropout, or null; a warp a row.
extern "C" __global__ void norm_backward(i64 rows, i64 width, const T* dout, const T* z, const float* mean,
                                         const float* rstd, const float* gamma, int centred, Dropout drop, T* dz,
                                         T* dy) {
  const i64 row = own_warp(), tiles = tiles_of(width), first = row * width;
  if (row >= rows) return;
  const float m = mean[row], r = rstd[row];
  float d[per_lane], x[per_lane], g[per_lane], sum = 0, along = 0;
  for (i64 tile = 0; tile < tiles; ++tile) {
    const i64 column = tile * tile_width + own_lane() * per_lane;
    load(dout + first, column, width, d);
    load(z + first, column, width, x);
    load(gamma, column, width, g);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      sum += d[i] * g[i];
      along += d[i] * g[i] * (x[i] - m) * r;
    }
  }
  const float mean_of = centred ? over_lanes(sum) / (float)width : 0.0f, part = over_lanes(along) / (float)width;
  for (i64 tile = 0; tile < tiles; ++tile) {
    const i64 column = tile * tile_width + own_lane() * per_lane;
    load(dout + first, column, width, d);
    load(z + first, column, width, x);
    load(gamma, column, width, g);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) d[i] = r * (d[i] * g[i] - mean_of - (x[i] - m) * r * part);
    store(d, dz + first, column, width);
    if (!dy) continue;
    drop_out(drop, row, width, tile, d);
    store(d, dy + first, column, width);
  }
}

/// What a warp sums: the rows of chunk `chunk` of a tile. Sums go to partial [chunks, kinds, width].
#define EACH_CHUNK(rows, width, chunks)                         \
  const i64 tiles = tiles_of(width), number = own_warp();       \
  const i64 chunk = number / tiles, tile = number % tiles;      \
  const i64 column = tile * tile_width + own_lane() * per_lane; \
  if (chunk >= chunks) return;                                  \
  const i64 begin = rows * chunk / chunks, end = rows * (chunk + 1) / chunks;

/// Sums of columns for the gradients of gamma, of beta, and of the bias under dy [rows, width], which may be null.
extern "C" __global__ void norm_sums(i64 rows, i64 width, i64 chunks, const T* dout, const T* z, const float* mean,
                                     const float* rstd, const T* dy, float* partial) {
  EACH_CHUNK(rows, width, chunks)
  float d[per_lane], x[per_lane], of_gamma[per_lane] = {}, of_beta[per_lane] = {}, of_bias[per_lane] = {};
  for (i64 row = begin; row < end; ++row) {
    load(dout + row * width, column, width, d);
    load(z + row * width, column, width, x);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      of_gamma[i] += d[i] * (x[i] - mean[row]) * rstd[row];
      of_beta[i] += d[i];
    }
    if (!dy) continue;
    load(dy + row * width, column, width, d);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) of_bias[i] += d[i];
  }
  float* sums = partial + chunk * 3 * width;
  store(of_gamma, sums, column, width);
  store(of_beta, sums + width, column, width);
  store(of_bias, sums + 2 * width, column, width);
}

/// Sums of the columns of x.
extern "C" __global__ void column_sums(i64 rows, i64 width, i64 chunks, const T* x, float* partial) {
  EACH_CHUNK(rows, width, chunks)
  float v[per_lane], sums[per_lane] = {};
  for (i64 row = begin; row < end; ++row) {
    load(x + row * width, column, width, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) sums[i] += v[i];
  }
  store(sums, partial + chunk * width, column, width);
}

/// A matrix [rows, part], whose rows are `stride` numbers apart.
struct Strided {
  const T* data;
  i64 stride;
};

/// out [rows, width]: two or three matrices [rows, part] side by side, and the sums of its columns, which `partial` may
/// be null for. part is a multiple of 8.
extern "C" __global__ void join_columns(i64 rows, i64 width, i64 part, i64 chunks, Strided first, Strided second,
                                        Strided third, T* out, float* partial) {
  EACH_CHUNK(rows, width, chunks)
  if (column >= width) return;
  const i64 which = column / part;
  const Strided from = which == 0 ? first : which == 1 ? second : third;
  float v[per_lane], sums[per_lane] = {};
  for (i64 row = begin; row < end; ++row) {
    load(from.data + row * from.stride, column - which * part, part, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) sums[i] += v[i];
    store(v, out + row * width, column, width);
  }
  if (partial) store(sums, partial + chunk * width, column, width);
}

/// Adds the sums of all chunks, partial [chunks, kinds, width], to targets [width], of which any may be null.
extern "C" __global__ void add_sums(i64 width, i64 chunks, i64 kinds, const float* partial, float* first, float* second,
                                    float* third) {
  const i64 number = own_warp() * lanes + own_lane(), kind = number / width, column = number % width;
  float* target = kind == 0 ? first : kind == 1 ? second : third;
  if (kind >= kinds || !target) return;
  float sum = 0;
#pragma unroll 16
  for (i64 chunk = 0; chunk < chunks; ++chunk) sum += partial[(chunk * kinds + kind) * width + column];
  target[column] += sum;
}

/// The key that every query of a row attends to, its first token's, beside the keys of a window.
struct GlobalKey {
  i64 rows, width, head_width;  ///< tokens of all rows; head_width: 8 times a power of two, at most 256
  i64 length;                   ///< tokens of a row; of all, where rows are unpadded
  i64 window;
  const i64* positions;  ///< of each token in its row; null: rows have `length` tokens
  const T* qkv;          ///< [rows, 3 width]
  float scale;
  Dropout drop;  ///< of a head's probability, by its first column

  /// The sum over the lanes of a head, in each of them.
  __device__ float over_head(float x) const {
    for (int distance = (int)(head_width / per_lane / 2); distance > 0; distance /= 2)
      x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
    return x;
  }
  __device__ i64 position(i64 row) const { return positions ? positions[row] : row % length; }
  /// Where a head's logarithm of its sum of exp(score) is.
  __device__ i64 sum_at(i64 row, i64 column) const {
    return (row / length * (width / head_width) + column / head_width) * length + row % length;
  }
  __device__ float factor(i64 row, i64 tile) const {
    if (drop.threshold == 0) return 1.0f;
    const u32 kept = __ballot_sync(0xFFFFFFFFu, kept_columns(drop, row, width, tile) & 1u);
    const int first = own_lane() / (int)(head_width / per_lane) * (int)(head_width / per_lane);
    return kept >> first & 1 ? drop.scale : 0.0f;
  }
  __device__ bool is_first(i64 column) const { return column < width && column % head_width == 0; }
  __device__ static float product(const float* a, const float* b) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) sum += a[i] * b[i];
    return sum;
  }
};

/// Adds the global key where it is beyond the window: to out [rows, width], which attention in the window made, and to
/// the logarithms of its sums.
extern "C" __global__ void global_key_forward(GlobalKey in, T* out, float* sums) {
  const i64 width = in.width;
  EACH_TILE(in.rows, width)
  const i64 position = in.position(row);
  if (position <= in.window) return;
  float q[per_lane], k[per_lane], v[per_lane], mixed[per_lane];
  const T* of_key = in.qkv + (row - position) * 3 * width + width;
  load(in.qkv + 3 * first, column, width, q);
  load(of_key, column, width, k);
  load(of_key + width, column, width, v);
  load(out + first, column, width, mixed);
  const float before = column < width ? sums[in.sum_at(row, column)] : 0.0f;
  const float score = in.scale * in.over_head(GlobalKey::product(q, k)), factor = in.factor(row, tile);
  const float peak = score > before ? score : before;
  const float sum = peak + logf(expf(before - peak) + expf(score - peak));
  const float old_share = expf(before - sum), share = expf(score - sum) * factor;
#pragma unroll
  for (int i = 0; i < per_lane; ++i) mixed[i] = old_share * mixed[i] + share * v[i];
  store(mixed, out + first, column, width);
  if (in.is_first(column)) sums[in.sum_at(row, column)] = sum;
}

/// Adds its part to dq [rows, width]; of each token and head, the factors of the query and of dout in the gradients of
/// its key and value.
extern "C" __global__ void global_key_backward(GlobalKey in, const T* out, const float* sums, const T* dout, T* dq,
                                               float* of_key, float* of_value) {
  const i64 width = in.width;
  EACH_TILE(in.rows, width)
  const i64 position = in.position(row), own = row * (width / in.head_width) + column / in.head_width;
  if (position <= in.window) {
    if (in.is_first(column)) of_key[own] = of_value[own] = 0.0f;
    return;
  }
  float q[per_lane], k[per_lane], v[per_lane], mixed[per_lane], d[per_lane];
  const T* key = in.qkv + (row - position) * 3 * width + width;
  load(in.qkv + 3 * first, column, width, q);
  load(key, column, width, k);
  load(key + width, column, width, v);
  load(out + first, column, width, mixed);
  load(dout + first, column, width, d);
  const float score = in.scale * in.over_head(GlobalKey::product(q, k)), factor = in.factor(row, tile);
  const float along_value = in.over_head(GlobalKey::product(d, v)), along_out = in.over_head(GlobalKey::product(d, mixed));
  const float p = column < width ? expf(score - sums[in.sum_at(row, column)]) : 0.0f;
  const float of_score = in.scale * p * (factor * along_value - along_out);
  load(dq + first, column, width, d);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) d[i] += of_score * k[i];
  store(d, dq + first, column, width);
  if (!in.is_first(column)) return;
  of_key[own] = of_score;
  of_value[own] = p * factor;
}

/// The sums over parts of `tokens_of_part` tokens of each of `count` rows, for the gradients of its key and value: partial
/// [count, parts, 2, width]. ends int32 [count + 1]; null: rows have in.length tokens.
extern "C" __global__ void global_key_sums(GlobalKey in, i64 count, i64 parts, i64 tokens_of_part, const int* ends,
                                           const T* dout, const float* of_key, const float* of_value, float* partial) {
  const i64 width = in.width, tiles = tiles_of(width), number = own_warp(), tile = number % tiles;
  const i64 part = number / tiles % parts, which = number / tiles / parts;
  const i64 column = tile * tile_width + own_lane() * per_lane;
  if (which >= count || column >= width) return;
  const i64 begin = ends ? ends[which] : which * in.length, end = ends ? ends[which + 1] : begin + in.length;
  const i64 from = begin + part * tokens_of_part, last = from + tokens_of_part < end ? from + tokens_of_part : end;
  float q[per_lane], d[per_lane], keys[per_lane] = {}, values[per_lane] = {};
  for (i64 row = from; row < last; ++row) {
    const i64 own = row * (width / in.head_width) + column / in.head_width;
    load(in.qkv + 3 * row * width, column, width, q);
    load(dout + row * width, column, width, d);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      keys[i] += of_key[own] * q[i];
      values[i] += of_value[own] * d[i];
    }
  }
  float* sums = partial + (which * parts + part) * 2 * width;
  store(keys, sums, column, width);
  store(values, sums + width, column, width);
}

/// Adds them to the gradients of the first token of each row, dk and dv [rows, width].
extern "C" __global__ void global_key_gradients(i64 count, i64 width, i64 parts, i64 length, const int* ends,
                                                const float* partial, T* dk, T* dv) {
  EACH_TILE(count, width)
  if (ends && ends[row] == ends[row + 1]) return;  // a row without tokens
  const i64 token = (ends ? (i64)ends[row] : row * length) * width;
  float k[per_lane], v[per_lane], more[per_lane];
  load(dk + token, column, width, k);
  load(dv + token, column, width, v);
  for (i64 part = 0; part < parts; ++part) {
    const float* sums = partial + (row * parts + part) * 2 * width;
    load(sums, column, width, more);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) k[i] += more[i];
    load(sums + width, column, width, more);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) v[i] += more[i];
  }
  store(k, dk + token, column, width);
  store(v, dv + token, column, width);
}

/// What XLNet adds to scores of content (models/two_stream.cpp): a product of the query and a distance, which stands
/// in `products`, and one of the query and the kind of its segment. A warp has the keys of a head of a row.
struct Relative {
  i64 rows, queries, keys, heads, head_width;  ///< rows: queries of all sequences
  i64 products;                                ///< of a row and head: its columns, of one list of distances or two
  i64 distances;                               ///< columns of a list
  float scale, hidden;                         ///< hidden: the score of a key that a query does not see
  const T* q;                                  ///< [rows, heads head_width]
  const float *r_s, *segments;                 ///< [heads head_width] and [2, heads head_width]
  const i64 *offset, *list;  ///< columns of key 0 [rows] and lists [rows / queries]; null: queries - n, the first
  const bool *differ, *visible;  ///< [rows, keys], of query and key; null: no segments, all are visible

  __device__ i64 row(i64 number) const { return number / (heads * queries) * queries + number % queries; }
  __device__ i64 head(i64 number) const { return number / queries % heads; }
  __device__ i64 of_products(i64 row, i64 head) const { return (head * rows + row) * products; }
  /// The column of key 0.
  __device__ i64 first(i64 row) const {
    return (list ? list[row / queries] * distances : 0) + (offset ? offset[row] : queries - row % queries);
  }
  /// The product of the query and a kind of segment.
  __device__ float by_segment(i64 row, i64 head, int kind) const {
    const i64 width = heads * head_width, at = head * head_width;
    float sum = 0;
    for (i64 i = at + own_lane(); differ && i < at + head_width; i += lanes)
      sum += (wide(q[row * width + i]) + r_s[i]) * segments[kind * width + i];
    return over_lanes(sum);
  }
};

/// Queries for content, q + r_w, and for distances, q + r_r.
extern "C" __global__ void relative_queries(i64 rows, i64 width, const T* q, const float* r_w, const float* r_r,
                                            T* of_content, T* of_distances) {
  EACH_TILE(rows, width)
  float v[per_lane], w[per_lane], r[per_lane];
  load(q + first, column, width, v);
  load(r_w, column, width, w);
  load(r_r, column, width, r);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    w[i] += v[i];
    r[i] += v[i];
  }
  store(w, of_content + first, column, width);
  store(r, of_distances + first, column, width);
}

/// added [sequences, heads, queries, stride], hidden beyond the keys, and which rows see no key, which may be null.
extern "C" __global__ void relative_scores(Relative in, const T* products, i64 stride, T* added, bool* without_keys) {
  const i64 number = own_warp(), row = in.row(number), head = in.head(number);
  if (number >= in.rows * in.heads) return;
  const T* own = products + in.of_products(row, head) + in.first(row);
  const float same = in.by_segment(row, head, 0), other = in.by_segment(row, head, 1);
  bool sees = false;
  for (i64 key = own_lane(); key < stride; key += lanes) {
    const i64 pair = row * in.keys + key;
    const bool visible = key < in.keys && (!in.visible || in.visible[pair]);
    const float by_segment = visible && in.differ && in.differ[pair] ? other : same;
    narrow(visible ? in.scale * (wide(own[key]) + by_segment) : in.hidden, added[number * stride + key]);
    sees |= visible;
  }
  const bool any = __ballot_sync(0xFFFFFFFFu, sees) != 0;
  if (without_keys && head == 0 && own_lane() == 0) without_keys[row] = !any;
}

/// From the gradient of `added`: that of the products, and those of the two kinds of segments [rows, heads, 2].
extern "C" __global__ void relative_scores_backward(Relative in, const T* grad, i64 stride, T* of_products,
                                                    float* of_segments) {
  const i64 number = own_warp(), row = in.row(number), head = in.head(number);
  if (number >= in.rows * in.heads) return;
  const i64 first = in.first(row);
  T* own = of_products + in.of_products(row, head);
  float same = 0, other = 0;
  for (i64 column = own_lane(); column < in.products; column += lanes) {
    const i64 key = column - first;
    const bool is_key = key >= 0 && key < in.keys;
    const float d = is_key ? in.scale * wide(grad[number * stride + key]) : 0.0f;
    narrow(d, own[column]);
    const bool differs = is_key && in.differ && in.differ[row * in.keys + key];
    (differs ? other : same) += d;
  }
  same = over_lanes(same);
  other = over_lanes(other);
  if (own_lane() != 0) return;
  of_segments[2 * (row * in.heads + head)] = same;
  of_segments[2 * (row * in.heads + head) + 1] = other;
}

/// The gradient of q from those of both queries, of_distances [heads, rows, head_width], and of segments; the sums of
/// columns for r_w, r_r and r_s, partial [chunks, 3, width], and for both kinds, of_kinds [chunks, 2, width].
extern "C" __global__ void relative_queries_backward(Relative in, i64 chunks, Strided of_content, const T* of_distances,
                                                     const float* of_segments, T* dq, float* partial, float* of_kinds) {
  const i64 rows = in.rows, width = in.heads * in.head_width;
  EACH_CHUNK(rows, width, chunks)
  if (column >= width) return;
  const i64 head = column / in.head_width;
  float q[per_lane], c[per_lane], d[per_lane], r_s[per_lane], kind[2][per_lane];
  load(in.r_s, column, width, r_s);
  load(in.segments, column, width, kind[0]);
  load(in.segments + width, column, width, kind[1]);
  float sums[3][per_lane] = {}, kinds[2][per_lane] = {};
  for (i64 row = begin; row < end; ++row) {
    load(in.q + row * width, column, width, q);
    load(of_content.data + row * of_content.stride, column, width, c);
    load(of_distances + (head * rows + row) * in.head_width, column % in.head_width, in.head_width, d);
    const float same = in.differ ? of_segments[2 * (row * in.heads + head)] : 0.0f;
    const float other = in.differ ? of_segments[2 * (row * in.heads + head) + 1] : 0.0f;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      const float s = same * kind[0][i] + other * kind[1][i];
      sums[0][i] += c[i];
      sums[1][i] += d[i];
      sums[2][i] += s;
      kinds[0][i] += same * (q[i] + r_s[i]);
      kinds[1][i] += other * (q[i] + r_s[i]);
      c[i] += d[i] + s;
    }
    store(c, dq + row * width, column, width);
  }
#pragma unroll
  for (int i = 0; i < 3; ++i) store(sums[i], partial + (chunk * 3 + i) * width, column, width);
#pragma unroll
  for (int i = 0; i < 2; ++i) store(kinds[i], of_kinds + (chunk * 2 + i) * width, column, width);
}

/// out [rows, length], a warp a row: scores, which may be null, and of x [rows, 2 reach + 1] the column of the distance
/// of key and query, clamped to -reach ... reach. Rows are of `length` queries each.
extern "C" __global__ void gather_distances(i64 rows, i64 length, i64 reach, const T* scores, const T* x, T* out) {
  const i64 row = own_warp(), query = row % length;
  if (row >= rows) return;
  for (i64 key = own_lane(); key < length; key += lanes) {
    const i64 distance = key - query, near = distance < -reach ? -reach : distance > reach ? reach : distance;
    const float score = scores ? wide(scores[row * length + key]) : 0.0f;
    narrow(score + wide(x[row * (2 * reach + 1) + near + reach]), out[row * length + key]);
  }
}

/// out [rows, 2 reach + 1], a warp a row: the sums of x [rows, length] over the keys of each distance.
extern "C" __global__ void sum_distances(i64 rows, i64 length, i64 reach, const T* x, T* out) {
  const i64 row = own_warp(), query = row % length;
  if (row >= rows) return;
  const T* own = x + row * length;
  T* sums = out + row * (2 * reach + 1);
  float before = 0, after = 0;
  for (i64 key = own_lane(); key < length; key += lanes) {
    if (key <= query - reach) before += wide(own[key]);
    if (key >= query + reach) after += wide(own[key]);
  }
  before = over_lanes(before);
  after = over_lanes(after);
  for (i64 column = own_lane(); column <= 2 * reach; column += lanes) {
    const i64 key = query + column - reach;
    const float inside = key >= 0 && key < length ? wide(own[key]) : 0.0f;
    narrow(column == 0 ? before : column == 2 * reach ? after : inside, sums[column]);
  }
}

/// The activations of kernels::Activation, by their numbers.
enum Activation { gelu, gelu_tanh, relu, silu };

__device__ inline float activated(int activation, float u) {
  switch (activation) {
    case gelu:
      return 0.5f * u * (1.0f + erff(u * 0.70710678f));
    case gelu_tanh:
      return 0.5f * u * (1.0f + tanhf(0.79788456f * (u + 0.044715f * u * u * u)));
    case relu:
      return u > 0 ? u : 0.0f;
    default:
      return u / (1.0f + expf(-u));
  }
}
__device__ inline float slope(int activation, float u) {
  switch (activation) {
    case gelu:
      return 0.5f * (1.0f + erff(u * 0.70710678f)) + u * 0.39894228f * expf(-0.5f * u * u);
    case gelu_tanh: {
      const float t = tanhf(0.79788456f * (u + 0.044715f * u * u * u));
      return 0.5f * (1.0f + t) + 0.5f * u * (1.0f - t * t) * 0.79788456f * (1.0f + 0.134145f * u * u);
    }
    case relu:
      return u > 0 ? 1.0f : 0.0f;
    default: {
      const float s = 1.0f / (1.0f + expf(-u));
      return s * (1.0f + u * (1.0f - s));
    }
  }
}

/// out = dropout(activation(u)).
extern "C" __global__ void activation_forward(i64 rows, i64 width, int activation, const T* u, Dropout drop, T* out) {
  EACH_TILE(rows, width)
  float v[per_lane];
  load(u + first, column, width, v);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) v[i] = activated(activation, v[i]);
  drop_out(drop, row, width, tile, v);
  store(v, out + first, column, width);
}

/// du, the gradient of u from that of out, and the sums of its columns.
extern "C" __global__ void activation_backward(i64 rows, i64 width, i64 chunks, int activation, const T* u,
                                               const T* dout, Dropout drop, T* du, float* partial) {
  EACH_CHUNK(rows, width, chunks)
  float d[per_lane], v[per_lane], sums[per_lane] = {};
  for (i64 row = begin; row < end; ++row) {
    load(dout + row * width, column, width, d);
    drop_out(drop, row, width, tile, d);
    load(u + row * width, column, width, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      d[i] *= slope(activation, v[i]);
      sums[i] += d[i];
    }
    store(d, du + row * width, column, width);
  }
  store(sums, partial + chunk * width, column, width);
}

/// As kernels::Rotation: the first `rotated` columns of y are turned by the angles of their position, heads of
/// `head_width` columns; the others are copied. A thread an element, in pairs.
extern "C" __global__ void rotate(i64 rows, i64 width, i64 rotated, i64 head_width, i64 length, const float* table,
                                  const T* x, int inverse, T* out) {
  const i64 number = own_warp() * lanes + own_lane(), row = number / (width / 2), pair = number % (width / 2);
  if (row >= rows) return;
  const i64 half = head_width / 2, head = pair / half, i = pair % half, at = row * width + head * head_width + i;
  const float u = wide(x[at]), v = wide(x[at + half]);
  if (head * head_width >= rotated) {
    narrow(u, out[at]);
    narrow(v, out[at + half]);
    return;
  }
  const float* angles = table + row % length * head_width;
  const float cosine = angles[i], sine = inverse ? -angles[half + i] : angles[half + i];
  narrow(u * cosine - v * sine, out[at]);
  narrow(v * cosine + u * sine, out[at + half]);
}

/// The losses of rows of logits [rows, width] and what their gradient needs; a warp a row. bias and weights may be
/// null.
extern "C" __global__ void cross_entropy_forward(i64 rows, i64 width, const T* logits, const float* bias,
                                                 const i64* labels, const float* weights, float smoothing,
                                                 float z_weight, float* loss, float* lse, int* correct) {
  const i64 row = own_warp(), tiles = tiles_of(width);
  if (row >= rows) return;
  const T* own = logits + row * width;
  float v[per_lane], more[per_lane], peak = -1e30f, total = 0, all = 0;
  for (i64 tile = 0; tile < tiles; ++tile) {
    const i64 column = tile * tile_width + own_lane() * per_lane;
    load(own, column, width, v);
    if (bias) {
      load(bias, column, width, more);
#pragma unroll
      for (int i = 0; i < per_lane; ++i) v[i] += more[i];
    }
    float largest = peak;
#pragma unroll
    for (int i = 0; i < per_lane; ++i)
      if (column + i < width) {
        largest = v[i] > largest ? v[i] : largest;
        all += v[i];
      }
    total *= expf(peak - largest);
    peak = largest;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) total += column + i < width ? expf(v[i] - peak) : 0.0f;
  }
#pragma unroll
  for (int distance = lanes / 2; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(0xFFFFFFFFu, peak, distance);
    const float more_total = __shfl_xor_sync(0xFFFFFFFFu, total, distance);
    const float largest = other > peak ? other : peak;
    total = total * expf(peak - largest) + more_total * expf(other - largest);
    peak = largest;
  }
  all = over_lanes(all);
  if (own_lane() != 0) return;
  const float log_sum = peak + logf(total), score = wide(own[labels[row]]) + (bias ? bias[labels[row]] : 0.0f);
  float own_loss = (1.0f - smoothing) * (log_sum - score) + z_weight * log_sum * log_sum;
  if (smoothing > 0) own_loss += smoothing * (log_sum - all / (float)width);
  loss[row] = weights ? own_loss * weights[row] : own_loss;
  lse[row] = log_sum;
  correct[row] = score >= peak;
}

/// Logits become their gradient, times *scale; the sums of its columns are that of the bias.
extern "C" __global__ void cross_entropy_backward(i64 rows, i64 width, i64 chunks, T* logits, const float* bias,
                                                  const i64* labels, const float* weights, const float* lse,
                                                  float smoothing, float z_weight, const float* scale, float* partial) {
  EACH_CHUNK(rows, width, chunks)
  float v[per_lane], more[per_lane] = {}, sums[per_lane] = {};
  if (bias) load(bias, column, width, more);
  for (i64 row = begin; row < end; ++row) {
    load(logits + row * width, column, width, v);
    const float factor = weights ? *scale * weights[row] : *scale, all = 1.0f + 2.0f * z_weight * lse[row];
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      const float p = expf(v[i] + more[i] - lse[row]);
      const float wanted = (labels[row] == column + i ? 1.0f - smoothing : 0.0f) + smoothing / (float)width;
      v[i] = column + i < width ? factor * (all * p - wanted) : 0.0f;
      sums[i] += v[i];
    }
    store(v, logits + row * width, column, width);
  }
  store(sums, partial + chunk * width, column, width);
}

/// As kernels::Adam.
struct Adam {
  float beta1, beta2, epsilon, rest1, rest2, correction1, correction2, grad_scale;
};

/// A matrix in the flat buffers, or several of them in a row: of all before it the tiles of 256 numbers, the rows, and
/// the blocks of 256 rows and columns; its numbers; what its rule keeps of it alone, or null.
struct Matrix {
  i64 tile, row, block, begin, end, decays, rows, columns;
  float *first, *second;
};
enum { by_tile, by_row, by_block };

/// The matrix that has a tile, a row or a block.
__device__ inline const Matrix& matrix_of(i64 count, const Matrix* all, int key, i64 number) {
  i64 low = 0, high = count;
  while (high - low > 1) {
    const i64 middle = (low + high) / 2;
    if (((const i64*)&all[middle])[key] <= number)
      low = middle;
    else
      high = middle;
  }
  return all[low];
}

/// Own eight numbers of a tile of all matrices, one a warp.
#define EACH_TILE_OF_ALL(count, tiles, all)                     \
  const i64 tile = own_warp();                                  \
  if (tile >= tiles) return;                                    \
  const Matrix& own = matrix_of(count, all, by_tile, tile);     \
  const i64 end = own.end;                                      \
  const i64 at = own.begin + (tile - own.tile) * tile_width + own_lane() * per_lane;

__device__ inline void clear(float* g, i64 at, i64 end) {
  const float zeros[per_lane] = {};
  store(zeros, g, at, end);
}

/// The direction of Adam, its moments updated: eight numbers.
__device__ inline void adam_direction(const Adam& adam, i64 at, i64 end, const float* g, float* m, float* v,
                                      float* direction) {
  float first[per_lane], second[per_lane];
  load(g, at, end, direction);
  load(m, at, end, first);
  load(v, at, end, second);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const float gradient = direction[i] * adam.grad_scale;
    first[i] = adam.beta1 * first[i] + adam.rest1 * gradient;
    second[i] = adam.beta2 * second[i] + adam.rest2 * gradient * gradient;
    direction[i] = first[i] / adam.correction1 / (sqrtf(second[i] / adam.correction2) + adam.epsilon);
  }
  store(first, m, at, end);
  store(second, v, at, end);
}

extern "C" __global__ void adamw(i64 count, i64 tiles, const Matrix* all, Adam adam, float rate, float weight_decay,
                                 float* p, float* g, float* m, float* v, bf16* shadow) {
  EACH_TILE_OF_ALL(count, tiles, all)
  const float decay = own.decays ? weight_decay : 0.0f;
  float x[per_lane], step[per_lane];
  load(p, at, end, x);
  adam_direction(adam, at, end, g, m, v, step);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) x[i] = x[i] * (1.0f - rate * decay) - rate * step[i];
  store(x, p, at, end);
  if (shadow) store(x, shadow, at, end);
  clear(g, at, end);
}

extern "C" __global__ void lion(i64 count, i64 tiles, const Matrix* all, float beta1, float beta2, float grad_scale,
                                float rate, float weight_decay, float* p, float* g, float* m, bf16* shadow) {
  EACH_TILE_OF_ALL(count, tiles, all)
  const float decay = own.decays ? weight_decay : 0.0f;
  float x[per_lane], d[per_lane], momentum[per_lane];
  load(p, at, end, x);
  load(g, at, end, d);
  load(m, at, end, momentum);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    const float gradient = d[i] * grad_scale, direction = momentum[i] + (1.0f - beta1) * (gradient - momentum[i]);
    momentum[i] += (1.0f - beta2) * (gradient - momentum[i]);
    x[i] = x[i] * (1.0f - rate * decay) - (direction > 0 ? rate : direction < 0 ? -rate : 0.0f);
  }
  store(x, p, at, end);
  store(momentum, m, at, end);
  if (shadow) store(x, shadow, at, end);
  clear(g, at, end);
}

/// The sums of squares of a tile's weights and of their updates, squares [tiles, 2].
__device__ inline void add_squares(i64 tile, const float* x, const float* step, float* squares) {
  float of_weights = 0, of_steps = 0;
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    of_weights += x[i] * x[i];
    of_steps += step[i] * step[i];
  }
  of_weights = over_lanes(of_weights);
  of_steps = over_lanes(of_steps);
  if (own_lane() != 0) return;
  squares[2 * tile] = of_weights;
  squares[2 * tile + 1] = of_steps;
}

/// The sum of every second of the squares of a matrix, in each lane of its warp.
__device__ inline float sum_of_squares(const Matrix& own, const float* squares) {
  const i64 end = own.tile + tiles_of(own.end - own.begin);
  float sum = 0;
#pragma unroll 8
  for (i64 tile = own.tile + own_lane(); tile < end; tile += lanes) sum += squares[2 * tile];
  return over_lanes(sum);
}

/// Gradients become LAMB's updates before they are scaled.
extern "C" __global__ void lamb_updates(i64 count, i64 tiles, const Matrix* all, Adam adam, float weight_decay,
                                        const float* p, float* g, float* m, float* v, float* squares) {
  EACH_TILE_OF_ALL(count, tiles, all)
  const float decay = own.decays ? weight_decay : 0.0f;
  float x[per_lane], step[per_lane];
  load(p, at, end, x);
  adam_direction(adam, at, end, g, m, v, step);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) step[i] += decay * x[i];
  store(step, g, at, end);
  add_squares(tile, x, step, squares);
}

/// The trust ratio of each matrix, one a warp.
extern "C" __global__ void lamb_factors(i64 count, const Matrix* all, const float* squares, float* factors) {
  const i64 number = own_warp();
  if (number >= count) return;
  const float weights = sqrtf(sum_of_squares(all[number], squares));
  const float updates = sqrtf(sum_of_squares(all[number], squares + 1));
  if (own_lane() == 0) factors[number] = all[number].decays && weights > 0 && updates > 0 ? weights / updates : 1.0f;
}

/// What moves the means of Adafactor.
struct Averages {
  float decay, fresh, scale_squared, epsilon;
};
__device__ inline float averaged(const Averages& by, float mean, float square) {
  return by.decay * mean + by.fresh * (square + by.epsilon);
}

/// The means of squared gradients of rows, one a warp; those of matrices that are not factored have none.
extern "C" __global__ void adafactor_rows(i64 count, i64 rows, const Matrix* all, Averages by, const float* g) {
  const i64 number = own_warp();
  if (number >= rows) return;
  const Matrix& own = matrix_of(count, all, by_row, number);
  if (!own.second) return;
  const i64 row = number - own.row;
  float v[per_lane], sum = 0;
  for (i64 tile = 0; tile < tiles_of(own.columns); ++tile) {
    load(g + own.begin + row * own.columns, tile * tile_width + own_lane() * per_lane, own.columns, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) sum += v[i] * v[i];
  }
  sum = over_lanes(sum);
  if (own_lane() == 0) own.first[row] = averaged(by, own.first[row], sum * by.scale_squared / (float)own.columns);
}

/// The sums of squared gradients of the columns of each block, one a warp: sums [blocks, 256].
extern "C" __global__ void adafactor_blocks(i64 count, i64 blocks, const Matrix* all, const float* g, float* sums) {
  const i64 number = own_warp();
  if (number >= blocks) return;
  const Matrix& own = matrix_of(count, all, by_block, number);
  if (!own.second) return;
  const i64 tiles = tiles_of(own.columns), chunk = (number - own.block) / tiles, tile = (number - own.block) % tiles;
  const i64 column = tile * tile_width + own_lane() * per_lane;
  const i64 past = (chunk + 1) * tile_width < own.rows ? (chunk + 1) * tile_width : own.rows;
  float v[per_lane], squares[per_lane] = {};
#pragma unroll 4
  for (i64 row = chunk * tile_width; row < past; ++row) {
    load(g + own.begin + row * own.columns, column, own.columns, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) squares[i] += v[i] * v[i];
  }
  store(squares, sums + number * tile_width, own_lane() * per_lane, tile_width);
}

/// The means of columns from the sums of blocks; the first block of columns has its warp do it.
extern "C" __global__ void adafactor_columns(i64 count, i64 blocks, const Matrix* all, Averages by, const float* sums) {
  const i64 number = own_warp();
  if (number >= blocks) return;
  const Matrix& own = matrix_of(count, all, by_block, number);
  const i64 tiles = tiles_of(own.columns), tile = number - own.block;
  if (!own.second || tile >= tiles) return;
  float v[per_lane], squares[per_lane] = {}, means[per_lane];
  for (i64 chunk = 0; chunk < tiles_of(own.rows); ++chunk) {
    load(sums + (number + chunk * tiles) * tile_width, own_lane() * per_lane, tile_width, v);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) squares[i] += v[i];
  }
  const i64 column = tile * tile_width + own_lane() * per_lane;
  load(own.second, column, own.columns, means);
#pragma unroll
  for (int i = 0; i < per_lane; ++i)
    means[i] = averaged(by, means[i], squares[i] * by.scale_squared / (float)own.rows);
  store(means, own.second, column, own.columns);
}

/// The mean of the means of the rows of each matrix, one a warp.
extern "C" __global__ void adafactor_means(i64 count, const Matrix* all, float* means) {
  const i64 number = own_warp();
  if (number >= count || !all[number].second) return;
  const Matrix& own = all[number];
  float sum = 0;
#pragma unroll 8
  for (i64 row = own_lane(); row < own.rows; row += lanes) sum += own.first[row];
  sum = over_lanes(sum);
  if (own_lane() == 0) means[number] = sum / (float)own.rows;
}

/// Gradients become Adafactor's updates before they are scaled.
extern "C" __global__ void adafactor_updates(i64 count, i64 tiles, const Matrix* all, Averages by, float grad_scale,
                                             const float* means, const float* p, float* g, float* squares) {
  EACH_TILE_OF_ALL(count, tiles, all)
  float x[per_lane], step[per_lane];
  load(p, at, end, x);
  load(g, at, end, step);
  i64 row = (at - own.begin) / own.columns, column = (at - own.begin) % own.columns;
#pragma unroll
  for (int i = 0; i < per_lane; ++i) {
    if (at + i >= end) break;
    step[i] *= grad_scale;
    if (own.second) {
      step[i] = step[i] / sqrtf(own.first[row] / means[&own - all]) / sqrtf(own.second[column]);
    } else {
      float& second = own.first[at + i - own.begin];
      second = averaged(by, second, step[i] * step[i]);
      step[i] /= sqrtf(second);
    }
    if (++column == own.columns) {
      column = 0;
      ++row;
    }
  }
  store(step, g, at, end);
  add_squares(tile, x, step, squares);
}

/// The factor on the update of each matrix, one a warp: the root mean square of its weights over that of its updates,
/// where this is above 1.
extern "C" __global__ void adafactor_factors(i64 count, const Matrix* all, float least_weights, const float* squares,
                                             float* factors) {
  const i64 number = own_warp();
  if (number >= count) return;
  const float numbers = (float)(all[number].end - all[number].begin);
  const float weights = sqrtf(sum_of_squares(all[number], squares) / numbers);
  const float updates = sqrtf(sum_of_squares(all[number], squares + 1) / numbers);
  if (own_lane() != 0) return;
  factors[number] = (weights > least_weights ? weights : least_weights) / (updates > 1.0f ? updates : 1.0f);
}

/// Weights go by the updates that stand where the gradients were, times the factors of their matrices.
extern "C" __global__ void descend(i64 count, i64 tiles, const Matrix* all, const float* factors, float rate,
                                   float weight_decay, float* p, float* g, bf16* shadow) {
  EACH_TILE_OF_ALL(count, tiles, all)
  const float decay = own.decays ? weight_decay : 0.0f, factor = rate * factors[&own - all];
  float x[per_lane], step[per_lane];
  load(p, at, end, x);
  load(g, at, end, step);
#pragma unroll
  for (int i = 0; i < per_lane; ++i) x[i] = x[i] * (1.0f - rate * decay) - factor * step[i];
  store(x, p, at, end);
  if (shadow) store(x, shadow, at, end);
  clear(g, at, end);
}

__device__ inline float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

/// The gates i, f, g and o of an element of a memory cell, from their sums [rows, 4 width]; 1 is added to that of f.
struct Gates {
  float i, f, g, o;
};
__device__ inline Gates gates_of(const T* sums, i64 at, i64 width) {
  return {sigmoid(wide(sums[at])), sigmoid(wide(sums[at + width]) + 1.0f), tanhf(wide(sums[at + 2 * width])),
          sigmoid(wide(sums[at + 3 * width]))};
}

/// A step of long short-term memory; a thread an element.
extern "C" __global__ void memory_cell_forward(i64 rows, i64 width, const T* sums, const float* cell, T* output,
                                               float* next) {
  const i64 number = own_warp() * lanes + own_lane();
  if (number >= rows * width) return;
  const Gates gates = gates_of(sums, number / width * 4 * width + number % width, width);
  next[number] = gates.f * cell[number] + gates.i * gates.g;
  narrow(gates.o * tanhf(next[number]), output[number]);
}

/// The gradients of the sums and of the cell before, from those of the output and of the cell after.
extern "C" __global__ void memory_cell_backward(i64 rows, i64 width, const T* sums, const float* cell,
                                                const T* output_grad, const float* next_grad, T* sums_grad,
                                                float* cell_grad) {
  const i64 number = own_warp() * lanes + own_lane();
  if (number >= rows * width) return;
  const i64 at = number / width * 4 * width + number % width;
  const Gates gates = gates_of(sums, at, width);
  const float t = tanhf(gates.f * cell[number] + gates.i * gates.g), of_output = wide(output_grad[number]);
  const float of_next = next_grad[number] + of_output * gates.o * (1.0f - t * t);
  narrow(of_next * gates.g * gates.i * (1.0f - gates.i), sums_grad[at]);
  narrow(of_next * cell[number] * gates.f * (1.0f - gates.f), sums_grad[at + width]);
  narrow(of_next * gates.i * (1.0f - gates.g * gates.g), sums_grad[at + 2 * width]);
  narrow(of_output * t * gates.o * (1.0f - gates.o), sums_grad[at + 3 * width]);
  cell_grad[number] = of_next * gates.f;
}
