#pragma once
// The operations that networks consist of. Each has a plain form of LibTorch operators and, for the CPU, a fused form
// with a hand-written backward pass; a test compares the two.
#include "core/tensor/activation.h"
#include "core/tensor/feature_kernel.h"
#include "core/tensor/unpadded_rows.h"

namespace cloze {

/// Dropout whose mask is a function of (key, site, element): the same for any number of threads, and again in the
/// backward pass. Philox4x32-7, 16 bits an element; see core/kernels/kernels.h for the numbering.
struct Dropout {
  double p = 0;         ///< probability that an element is dropped
  uint64_t key = 0;     ///< one for each forward pass
  uint32_t site = 0;    ///< one for each dropout layer of the network
  bool active = false;  ///< training
  Tensor rows{};  ///< int64 [N], the row of the mask that each row has, by the fused forms; undefined: 0, 1, 2, ...
  bool on() const { return active && p > 0; }
};

/// True if the fused forms are used for `x`, with gradients and without: CPU, fp32 or bf16, not under the tracer.
bool use_fused(const Tensor& x);
/// True if the attention of tensors like `x` takes rows without their padding: fused, or of a GPU.
bool unpads_rows(const Tensor& x);
/// Whether the masks of attention's dropout are those of the CPU also where a GPU computes, by scores; else LibTorch's
/// kernel draws them, faster, from the same keys. All other masks are the same bits everywhere.
void set_exact_masks(bool on);
bool has_exact_masks();
/// Switches the fused forms off (tests compare the two; `benchmark --plain` shows the gain). A process in whose
/// environment CLOZE_PLAIN is set begins without them.
void set_fused(bool on);
/// While one exists, the plain forms run.
class PlainScope {
 public:
  PlainScope();
  ~PlainScope();
  PlainScope(const PlainScope&) = delete;
  PlainScope& operator=(const PlainScope&) = delete;

 private:
  bool fused_before_;
};

/// While one exists, matrix multiplications without gradients read fp32 weights that oneDNN has packed for `rows` rows:
/// generation computes one token a step, where the usual multiplication spends its time on packing, and scoring
/// multiplies by the same weights many times. The weights must not change meanwhile. `tables`: those of embeddings,
/// too, which a head of a vocabulary multiplies by.
class PackedWeights {
 public:
  explicit PackedWeights(const Layer& network, int64_t rows = 32, bool tables = true);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

 private:
  std::vector<NamedParam> packed_;
};

/// x W' + b. x [..., K], w [N, K], b [N] or undefined; returns [..., N].
Tensor linear(const Tensor& x, const Param& w, const Param& b);

/// dropout(activation(x W' + b)).
Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, Activation activation,
                         const Dropout& drop = {});

/// x W' + b with rotary position embeddings: queries, keys and values [..., T, 3 H C], of which queries and keys are
/// rotated. table fp32 [T, C]: for each position C / 2 cosines, then their sines; elements i and i + C / 2 of a head
/// are rotated together, in fp32. Source: Su et al. 2021, equation 34 (arXiv 2104.09864), in the order of GPT-NeoX.
Tensor linear_rotary(const Tensor& x, const Param& w, const Param& b, const Tensor& table);

/// A norm over the last axis. Source: Ba et al. 2016, equation 4; Zhang and Sennrich 2019, equation 4.
struct NormParams {
  Param gamma;          ///< [D]
  Param beta{};         ///< [D], or undefined: no bias
  double eps = 1e-12;   ///< added to the variance
  bool centred = true;  ///< false: RMS norm, whose mean is taken as 0
};

/// gamma (x - mean) / sqrt(var + eps) + beta.
Tensor layer_norm(const Tensor& x, const NormParams& norm);

/// Dropout alone.
Tensor dropout(const Tensor& x, const Dropout& drop);

/// The first layer of a feed-forward network: dropout(activation(x W' + b)). Of it x W' + b alone is kept for the
/// backward pass, which makes the rest again.
struct FirstLayer {
  Param w, b;
  Activation activation;
  Dropout drop;
};

/// layer_norm(residual + dropout(x W' + b)): the end of each half of a post-norm block. `first`: of what it makes of x.
Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const NormParams& norm, const FirstLayer* first = nullptr);

/// residual + dropout(x W' + b): the end of each half of a pre-norm block. `first` as there.
Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual,
                          const FirstLayer* first = nullptr);

/// What attention of a GPU made of a mask and of distance biases in one layer, for the others of its stack.
struct MadeMask {
  Tensor of{};            ///< AttentionContext::distance_bias, or key_mask without it
  Tensor added{};         ///< to scores: [B, H, T, S]
  Tensor without_keys{};  ///< bool [B, T, 1, 1], true = a query that sees no key; undefined: all that are read see some
};

/// Which keys a query attends to, and how scores are computed.
struct AttentionContext {
  Tensor key_mask{};    ///< bool [B, S], true = a real token (undefined: all real)
  bool causal = false;  ///< a query attends to keys up to its own position; the last query is aligned with the last key
  Tensor prefix{};      ///< int64 [B], with `causal`: number of leading keys that every query of the row attends to;
                        ///< undefined: 0
  Tensor distance_bias{};  ///< [H, T + S - 1], element s - t + T - 1 is added to the score of query t and key s
  double scale = 0;        ///< of Q K'; 0: 1 / sqrt(C)
  std::vector<Tensor>* probabilities = nullptr;  ///< receives [B, H, T, S] of each call, by the plain form
  std::vector<Tensor>* projections = nullptr;    ///< receives what full attention scores, of each layer, [B, T, 3 H C]
  int64_t window = -1;                           ///< number of keys attended to on either side; -1: all
  int64_t dilation = 1;                          ///< of a window: step between its keys
  int64_t dilated_heads = 0;                     ///< number of leading heads with that dilation; 0: all
  Tensor global_mask{};          ///< bool [B, S], true = every query attends to this key, also outside the window
  int64_t globals = 0;           ///< number of true elements of each row of `global_mask`; 0: they are counted
  bool first_is_global = false;  ///< of each row it is the first token, and no other
  /// The queries and keys are those of self-attention, [1, N, ...], and of these rows, each of which attends to itself;
  /// not by the plain forms. null: they have their padding
  std::shared_ptr<const UnpaddedRows> unpadded{};
  bool padding_is_unread = false;                 ///< of queries, of which all others see themselves
  std::shared_ptr<std::vector<MadeMask>> made{};  ///< of the layers so far; null: each makes its own

  /// The context of these rows with their padding.
  AttentionContext with_padding() const {
    auto padded = *this;
    padded.key_mask = unpadded->mask;
    padded.unpadded = nullptr;
    padded.padding_is_unread = true;
    return padded;
  }
};

/// softmax(Q K' / sqrt(C)) V over heads. qkv [B, T, 3D]: queries, keys and values concatenated, before the bias;
/// bias [3D] or undefined; returns [B, T, D]. A query whose keys are all masked returns zeros. In a window, time and
/// memory are linear in T, and `distance_bias` is not supported.
Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop);

/// The same of what a linear layer makes of x [B, T, K]: w [3D, K], b [3D] or undefined.
Tensor linear_self_attention(const Tensor& x, const Param& w, const Param& b, int64_t heads,
                             const AttentionContext& context, const Dropout& drop);

/// The same for queries [B, T, D] over other tokens: kv [B, S, 2D], keys and values concatenated.
Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop);

/// The position and segment terms of XLNet's scores.
struct RelativeTerms {
  Param r_w, r_r, r_s;       ///< [H, C], added to queries before keys, distances and segments
  Param segments;            ///< [2, H, C]: query and key are of the same segment, of different segments
  Tensor distance_offset{};  ///< int64 [B, N], index of the distance between each query and key 0; undefined: N - n
  Tensor distance_list{};    ///< int64 [B], which list of r a row uses; undefined: the first
  Tensor segments_differ{};  ///< bool [B, N, S], true = of different segments; undefined: no segment term
  Tensor visible{};          ///< bool [B, N, S], true = may be attended to; undefined: all may
  std::vector<Tensor>* probabilities = nullptr;  ///< receives [B, H, N, S], by the plain form
};

/// Attention with scores
/// ((q_n + r_w)' k_s + (q_n + r_r)' r_(distance_offset n + s) + (q_n + r_s)' e_(segments_differ n s)) / sqrt(C).
/// q [B, N, D], kv [B, S, 2D] keys and values concatenated, r [L, R, D] L lists of distance keys; returns [B, N, D]. A
/// query that sees no key returns zeros. Source: Yang et al. 2019, sections 2.3 to 2.5; Dai et al. 2019,
/// section 3.3.
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop);

/// The random features that scores are estimated from.
struct RandomFeatures {
  Tensor projection;  ///< fp32 [R, C]
  FeatureKernel kernel = FeatureKernel::softmax;
  double epsilon = 1e-6;  ///< added to every positive feature
};

/// phi(Q) (phi(K)' V) / (phi(Q) phi(K)' 1) over heads, arguments as above; windows and global keys of the
/// context are ignored. Time and memory are linear in T; no tensor of the size [T, R, C] is kept. Source: Choromanski
/// et al. 2021, equations 4, 9 and 10 (arXiv 2009.14794).
Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& features);

/// What a layer of long short-term memory keeps of the tokens that it has read.
struct MemoryState {
  Tensor output;  ///< [B, D]
  Tensor cell;    ///< [B, D] in fp32, or in double: it is not rounded to the type of the output
};
/// The state after a token: cell' = sigmoid(f + 1) cell + sigmoid(i) tanh(g), output = sigmoid(o) tanh(cell').
/// gates [B, 4 D]: the sums of i, f, g and o. Source: Zaremba et al. 2014, section 3.1 (arXiv 1409.2329). Differs: 1 is
/// added to forget gates, so that a cell keeps most of its content at first (Jozefowicz et al. 2015, section 2.2).
MemoryState memory_cell(const Tensor& gates, const Tensor& cell);

/// Positions of the true elements of each row of mask [B, T], in order: int64 [B, G], G the maximum over rows; rows
/// with fewer are filled with unmarked positions. `most`: G, where it is known; else a device is waited for.
Tensor marked_positions(const Tensor& mask, int64_t most = 0);

/// The tables of an embedding and the norm after them.
struct EmbeddingTables {
  Param word;         ///< [V, E]
  Param position{};   ///< [P, E], or undefined: no position embeddings
  Param type{};       ///< [types, E], or undefined: no type embeddings
  NormParams norm{};  ///< gamma undefined: no norm
  double scale = 1;   ///< of the rows of `word`
};
/// The ids to look up: int64 [B, T] each. types undefined: all 0; positions undefined: 0, 1, 2, ...
struct EmbeddingIds {
  Tensor ids, types{}, positions{};
  Tensor vectors{};  ///< [B, T, E], in place of scale word[ids]; undefined: these
};

/// dropout(layer_norm(scale word[ids] + type[types] + position[positions])). Returns [B, T, E] in the compute
/// dtype.
Tensor embed(const EmbeddingIds& in, const EmbeddingTables& tables, const Dropout& drop);

/// Sampling of one token for each row from softmax((hidden E' + bias) / temperature).
struct TokenDraw {
  double temperature = 1;
  Tensor uniform;  ///< fp64 [N], in [0, 1): selects the token by the cumulative probability
  Tensor drawn{};  ///< receives int64 [N]
};
/// Uniform numbers for n rows: number i is the first of stream i of `key`.
Tensor uniform_numbers(int64_t n, uint64_t key);

/// Options of a cross entropy.
struct LossOptions {
  double label_smoothing = 0;  ///< e: a label counts 1 - e, and every token e / V. Szegedy et al. 2016, section 7
  double z_loss = 0;  ///< weight of the squared log-sum-exp. Mesh TensorFlow's softmax_cross_entropy_with_logits
  Tensor weights{};   ///< fp32 [N], without gradient: factors of the rows' losses; undefined: ones
};

/// Sum over rows of -log softmax(hidden E' + bias)[label], each times its weight. hidden [N, D], table [V, D], bias [V]
/// or undefined, labels int64 [N]; returns fp32 []. `correct`, if given, receives int64 [], the number of labels that
/// are the arg max, which stays on the device; `draw`, tokens sampled from the same logits.
Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossOptions& shape = {}, Tensor* correct = nullptr, TokenDraw* draw = nullptr);

/// The single predictions of a cross entropy, in the order of the labels.
struct TokenScores {
  Tensor loss;     ///< fp32 [N], -log softmax(hidden E' + bias)[label]
  Tensor correct;  ///< bool [N], the label is the arg max
};
/// The same loss for each token, without gradient; at most 16 MB of logits exist at a time. `draw`, if given, receives
/// sampled tokens.
TokenScores token_scores(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                         TokenDraw* draw = nullptr);

/// Log-probabilities of tokens in fp64, log softmax(hidden E' + bias)[label], from logits in fp32, without gradient.
/// hidden [N, D]; rows int64 [M], the row of `hidden` that each label is predicted from, ascending; labels int64 [M];
/// returns fp64 [M] on the CPU, not finite where logits of the row are not. At most 4 MB of logits exist at a time.
Tensor token_log_probabilities(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                               const Tensor& labels);
/// The places of labels among all tokens.
struct TokenRanks {
  Tensor rank;         ///< int64 [M], 1 = the most probable; equal logits share the best of their ranks
  Tensor gap_to_best;  ///< fp64 [M], logit of the most probable token less that of the label
};
/// Arguments as above.
TokenRanks token_ranks(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& rows,
                       const Tensor& labels);

/// Sampled tokens alone, int64 [N], without gradient.
Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw);

/// a b for each matrix of a [..., M, K] and b [..., K, N], broadcast; as at::matmul, but where fused the same for any
/// number of threads. Call it qualified: argument-dependent lookup also finds at::matmul.
Tensor matmul(const Tensor& a, const Tensor& b);

/// Rows of x [R, D] at `index` int64 [N]; the backward pass adds into zeros. Returns [N, D].
Tensor take_rows(const Tensor& x, const Tensor& index);

/// scores [B, H, T, T], to each of which the element of by_distance [B, H, T, 2 k + 1] is added that belongs to the
/// distance of its key from its query, clamped to -k ... k.
Tensor add_by_distance(const Tensor& scores, const Tensor& by_distance);
/// The sums of x [B, H, T, T] over the keys of each distance, clamped to -reach ... reach: [B, H, T, 2 reach + 1].
Tensor sum_by_distance(const Tensor& x, int64_t reach);

}  // namespace cloze
