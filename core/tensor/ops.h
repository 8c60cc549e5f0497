#pragma once
// The operations that networks are written in. Each has a plain form of LibTorch operators and, where gradients are
// wanted on the CPU, a fused form with a hand-written backward pass; a test holds the two together.
#include "core/tensor/param.h"

namespace cloze {

/// Dropout whose mask is a function of (key, site, element): the same for any number of threads, and again in the
/// backward pass. Philox4x32-7, 16 bits an element; see kernels/kernels.h for the numbering.
struct Dropout {
  double p = 0;         ///< share of the elements that is dropped
  uint64_t key = 0;     ///< one for each forward pass
  uint32_t site = 0;    ///< one for each place in the network
  bool active = false;  ///< training
  bool on() const { return active && p > 0; }
};

/// True when the fused forms are used for `x`: CPU, gradients wanted, not under the tracer, fp32 or bf16.
bool use_fused(const Tensor& x);
/// While one lives, this thread uses the fused forms although no gradients are recorded: the first run of a block that
/// is run again in the backward pass must give the same numbers.
struct FusedScope {
  FusedScope();
  ~FusedScope();
};
/// Switches the fused forms off (tests compare the two; `benchmark --plain` shows the gain).
void set_fused(bool on);

/// While one lives, products without gradients read fp32 weights that oneDNN has laid out for few rows at a time: texts
/// are written a token a step, where the usual product spends its time on laying them out. The weights must not change
/// meanwhile.
class PackedWeights {
 public:
  explicit PackedWeights(const Layer& network);
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

 private:
  std::vector<NamedParam> packed_;
};

/// x W' + b. x [..., K], w [N, K], b [N] or undefined; returns [..., N].
Tensor linear(const Tensor& x, const Param& w, const Param& b);

/// dropout(activation(x W' + b)), by the name of transformers' ACT2FN.
Tensor linear_activation(const Tensor& x, const Param& w, const Param& b, const std::string& activation,
                         const Dropout& drop = {});

/// The activation alone.
Tensor activation(const Tensor& x, const std::string& name);

/// gamma (x - mean) / sqrt(var + eps) + beta over the last axis; beta undefined: gamma x / sqrt(mean of squares + eps).
/// Source: Ba et al. 2016, equation 4; Zhang and Sennrich 2019, equation 4.
Tensor layer_norm(const Tensor& x, const Param& gamma, const Param& beta, double eps);

/// Dropout alone.
Tensor dropout(const Tensor& x, const Dropout& drop);

/// layer_norm(residual + dropout(x W' + b)): the end of each half of a post-norm block.
Tensor linear_dropout_add_norm(const Tensor& x, const Param& w, const Param& b, const Dropout& drop,
                               const Tensor& residual, const Param& gamma, const Param& beta, double eps);

/// residual + dropout(x W' + b): the end of each half of a pre-norm block.
Tensor linear_dropout_add(const Tensor& x, const Param& w, const Param& b, const Dropout& drop, const Tensor& residual);

/// Who may see whom, as facts.
struct AttentionContext {
  Tensor key_mask{};       ///< bool [B, S], true = a real token (undefined: all real)
  bool causal = false;     ///< a query sees keys up to its own place; the last one stands at the last key
  Tensor prefix{};         ///< int64 [B], of `causal`: so many keys, from the first on, every query of the row sees;
                           ///< undefined: none
  Tensor distance_bias{};  ///< [H, T + S - 1], added to scores: number s - t + T - 1 belongs to query t and key s
  double scale = 0;        ///< of Q K'; 0: 1 / sqrt(C)
  std::vector<Tensor>* probabilities = nullptr;  ///< receives [B, H, T, S] of each call, where plain operators run
  int64_t window = -1;                           ///< a query sees so many keys on either side; -1: all
  int64_t dilation = 1;                          ///< of a window: steps between the keys that are seen
  int64_t dilated_heads = 0;                     ///< heads, from the first on, that step so; 0: all
  Tensor global_mask{};  ///< bool [B, S], true = every query sees this key although it is outside the window
};

/// softmax(Q K' / sqrt(C)) V over heads. qkv [B, T, 3D]: queries, keys and values side by side, before the bias;
/// bias [3D] or undefined; returns [B, T, D]. A query that may see nothing returns zeros. In a window, time and memory
/// are linear in T, and `distance_bias` is not honoured.
Tensor self_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                      const Dropout& drop);

/// The same of queries [B, T, D] over other tokens: kv [B, S, 2D], keys and values side by side.
Tensor cross_attention(const Tensor& q, const Param& q_bias, const Tensor& kv, const Param& kv_bias, int64_t heads,
                       const AttentionContext& context, const Dropout& drop);
/// The same for a decoder that writes, over keys and values that it keeps, biases added: in fp32 by the kernel, without
/// gradients too.
Tensor cached_attention(const Tensor& q, const Tensor& kv, int64_t heads, const AttentionContext& context);

/// What XLNet's scores have beside the content.
struct RelativeTerms {
  Param r_w, r_r, r_s;  ///< [H, C], added to queries before keys, distances and segments
  Param segments;       ///< [2, H, C]: query and key are of one segment, of two
  Tensor
      number{};  ///< int64 [B, N], the distance between each query and key 0, as a number of the list; undefined: N - n
  Tensor list{};    ///< int64 [B], which list of r belongs to a row; undefined: the first
  Tensor apart{};   ///< bool [B, N, S], true = of two segments; undefined: there are no segments
  Tensor hidden{};  ///< bool [B, N, S], true = may not be seen; undefined: everything may
  std::vector<Tensor>* probabilities = nullptr;  ///< receives [B, H, N, S], where plain operators run
};

/// Attention with scores ((q_n + r_w)' k_s + (q_n + r_r)' r_(number n + s) + (q_n + r_s)' e_(apart n s)) / sqrt(C). q
/// [B, N, D], kv [B, S, 2D] keys and values side by side, r [L, R, D] keys of lists of distances; returns [B, N, D]. A
/// query that may see nothing returns zeros. Source: Yang et al. 2019, sections 2.3 to 2.5; Dai et al. 2019,
/// section 3.3.
Tensor relative_attention(const Tensor& q, const Tensor& kv, const Tensor& r, int64_t heads, const RelativeTerms& terms,
                          const Dropout& drop);

/// How scores are estimated from random features.
struct RandomFeatures {
  Tensor projection;               ///< fp32 [R, C]
  std::string kernel = "softmax";  ///< `softmax`, `relu`, `trigonometric`
  double epsilon = 1e-6;           ///< added to every positive feature
};

/// phi(Q) (phi(K)' V) / (phi(Q) phi(K)' 1) over heads, arguments as above; of the context, windows and global keys have
/// no part. Time and memory are linear in T; nothing of the size [T, R, C] is kept. Source: Choromanski et al. 2021,
/// equations 4, 9 and 10 (arXiv 2009.14794).
Tensor favor_attention(const Tensor& qkv, const Param& bias, int64_t heads, const AttentionContext& context,
                       const RandomFeatures& features);

/// Places of the true elements of each row of mask [B, T], in order: int64 [B, G], G the most of any row; a row with
/// fewer goes on with places that are not marked.
Tensor marked_positions(const Tensor& mask);

/// The tables of an embedding and the norm behind them.
struct EmbeddingTables {
  Param word;        ///< [V, E]
  Param position{};  ///< [P, E], or undefined: there are none
  Param type{};      ///< [types, E], or undefined: there are none
  Param gamma{};     ///< [E], or undefined: no norm
  Param beta{};      ///< [E], or undefined: RMS norm
  double eps = 1e-12;
  double scale = 1;  ///< of the rows of `word`
};
/// What is looked up: int64 [B, T] each. types undefined: all 0; positions undefined: 0, 1, 2, ...
struct EmbeddingIds {
  Tensor ids, types{}, positions{};
};

/// dropout(layer_norm(scale word[ids] + type[types] + position[positions])). Returns [B, T, E] in the dtype of the
/// products.
Tensor embed(const EmbeddingIds& in, const EmbeddingTables& tables, const Dropout& drop);

/// Tokens that are drawn from softmax((hidden E' + bias) / temperature), one for each row.
struct TokenDraw {
  double temperature = 1;
  Tensor uniform;  ///< fp64 [N], in [0, 1): which token, counted along the running sum
  Tensor drawn{};  ///< receives int64 [N]
};
/// The numbers for n rows: number i is the first of stream i of `key`.
Tensor uniform_numbers(int64_t n, uint64_t key);

/// What a cross entropy has beside its labels.
struct LossShape {
  double label_smoothing = 0;  ///< e: a label counts 1 - e, and every token e / V. Szegedy et al. 2016, section 7
  double z_loss = 0;  ///< weight of the square of the log-sum-exp. Mesh TensorFlow's softmax_cross_entropy_with_logits
};

/// Sum over rows of -log softmax(hidden E' + bias)[label]. hidden [N, D], table [V, D], bias [V] or undefined, labels
/// int64 [N]; returns fp32 []. `correct`, where given, receives how many labels were the arg max; `draw`, tokens from
/// the same logits.
Tensor token_cross_entropy(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                           const LossShape& shape = {}, int64_t* correct = nullptr, TokenDraw* draw = nullptr);

/// Single predictions of a cross entropy, in the order of its labels.
struct TokenScores {
  Tensor loss;   ///< fp32 [N], -log softmax(hidden E' + bias)[label]
  Tensor right;  ///< bool [N], the label is the arg max
};
/// The same loss token by token, without gradient; at most 16 MB of logits are there at a time. `draw`, where given,
/// receives tokens.
TokenScores token_scores(const Tensor& hidden, const Param& table, const Param& bias, const Tensor& labels,
                         TokenDraw* draw = nullptr);

/// Tokens alone, int64 [N], without gradient.
Tensor draw_tokens(const Tensor& hidden, const Param& table, const Param& bias, const TokenDraw& draw);

/// a b for each matrix of a [..., M, K] and b [..., K, N], broadcast; as at::matmul, but the same for any number of
/// threads where gradients are wanted.
Tensor matrix_product(const Tensor& a, const Tensor& b);

/// Rows of x [R, D] at `index` int64 [N]; the backward pass adds into zeros. Returns [N, D].
Tensor take_rows(const Tensor& x, const Tensor& index);

}  // namespace cloze
