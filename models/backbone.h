#pragma once
// What every network offers to objectives: hidden states, and the table that turns them into tokens.
#include "models/attention/attention.h"
#include "models/config.h"

namespace cloze {

/// What a backbone reads; undefined tensors are absent.
struct Inputs {
  Tensor input_ids;         ///< int64 [B, T]
  Tensor attention_mask{};  ///< bool [B, T], true = a real token
  Tensor token_type_ids{};  ///< int64 [B, T]
  Tensor
      global_attention_mask{};  ///< bool [B, T], true = sees and is seen by everything; undefined: as the config says
  Tensor read_positions{};  ///< int64 [N], ascending places in the flattened [B T] whose hidden states are read; those
                            ///< of the others may be anything; undefined: all are read
  Tensor
      prefix{};  ///< int64 [B], of a decoder alone: so many tokens, from the first on, are seen by all; undefined: none
  Tensor decoder_input_ids{};       ///< int64 [B, U], of an encoder with a decoder
  Tensor decoder_attention_mask{};  ///< bool [B, U], true = a token that those behind it may see; undefined: all are
  Memory memory{};                  ///< what `encode` gave for these inputs, where it is known
  Tensor visible{};  ///< bool [B, T, T], true = this query may see this key (its own content every token sees); two
                     ///< streams only, as what follows
  Tensor target_positions{};  ///< int64 [B, N], places that are predicted by a query stream; -1 = none, a row that sees
                              ///< nothing
  Tensor backward{};  ///< bool [B], true = the text of this row runs from right to left, so that its distances change
                      ///< sign; undefined: none does
  std::vector<Tensor> memories{};               ///< [B, M, D] for each layer, of earlier segments; empty: none
  std::vector<Tensor>* new_memories = nullptr;  ///< receives those for the segment behind this one, without gradient
  uint64_t dropout_key = 0;                     ///< names this pass's dropout masks (training only)
};

/// What a stack computes on its way, read by tests and by `verify parity`.
struct Trace {
  std::vector<Tensor> hidden_states{};  ///< [B, T, D]: after the embedding, then after each block; the last one behind
                                        ///< the final norm; two streams in turns
  std::vector<Tensor>
      attentions{};  ///< [B, H, T, S] of each attention, in order, where plain operators run; two streams in turns
};
/// The traces of a network; an encoder alone fills the first.
struct Traces {
  Trace encoder{}, decoder{};
};

/// Keys and values that a block of a decoder keeps between tokens.
struct BlockCache {
  Tensor own{};     ///< [B, S, 2 H C], of earlier tokens
  Tensor memory{};  ///< [B, S', 2 H C], of the encoder's states
};

class Backbone : public Layer {
 public:
  /// Hidden states [B, T, D], those of the decoder where there is one; of two streams those of the queries [B, N, D]
  /// where target_positions are given.
  virtual Tensor hidden(const Inputs& in, Traces* traces = nullptr) = 0;
  /// States of the encoder that a decoder reads. Throws ShapeError for a backbone without a decoder.
  virtual Memory encode(const Inputs& in, Trace* trace = nullptr);
  /// Hidden states [B, U, D] of tokens that follow those in `cache` (a block each; empty: there are none), which
  /// receives them.
  ///
  /// attention_mask   bool [B, S + U], of a decoder alone: true = a real token of those in the cache and these;
  /// position
  ///                  ids count real tokens, so that a row padded on the left is the row alone; undefined: all are real
  ///
  /// Throws ConfigError for a bidirectional backbone, and for one without layers.
  virtual Tensor decode(const Tensor& ids, const Memory& memory, std::vector<BlockCache>& cache,
                        const Tensor& attention_mask = {});
  /// Sequence summary [B, D] from hidden states [B, T, D]. Throws ShapeError for a backbone built without a pooler.
  virtual Tensor pooled(const Tensor& hidden) = 0;
  /// The token embedding [V, E], tied to prediction heads.
  virtual const Param& token_embedding() const = 0;
  /// All tables of the embedding, which another network may share.
  virtual const std::shared_ptr<Embeddings>& embedding_tables() const = 0;
  virtual bool has_pooler() const = 0;
  /// Blocks are run again in the backward pass instead of keeping what they computed.
  virtual void set_gradient_checkpointing(bool on) = 0;
};

/// What objectives need of the backbone beside hidden states.
struct BackboneParts {
  bool pooler = false;
  std::shared_ptr<Embeddings> embeddings{};  ///< those of another network, which are used here as well
  bool own_norm = false;                     ///< of them only the tables of tokens and positions
};

/// A stack of blocks over embeddings: an encoder, or a decoder alone. Throws ConfigError.
std::shared_ptr<Backbone> make_single_stack(const BackboneConfig& config, const BackboneParts& parts);
/// Throws ConfigError.
std::shared_ptr<Backbone> make_encoder_decoder(const EncoderDecoderConfig& config);
/// Throws ConfigError for options that two streams do not have.
std::shared_ptr<Backbone> make_two_stream(const TwoStreamConfig& config);

}  // namespace cloze
