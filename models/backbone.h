#pragma once
// The interface of every network to objectives: hidden states, and the token embedding that heads are tied to.
#include "models/attention/attention.h"
#include "models/encoder_decoder_config.h"
#include "models/recurrent_config.h"
#include "models/stack_parts.h"
#include "models/two_stream_config.h"

namespace cloze {

/// The inputs of a backbone; an undefined tensor is absent.
struct Inputs {
  Tensor input_ids;         ///< int64 [B, T]
  Tensor attention_mask{};  ///< bool [B, T], true = a real token
  /// Nobody reads the hidden states of padding: they are unspecified, and mostly not computed.
  bool padding_is_unread = false;
  std::shared_ptr<const UnpaddedRows> unpadded{};  ///< of a mask on a device, found before it was moved there
  Tensor token_type_ids{};                         ///< int64 [B, T]
  /// [B, T, E], token embeddings in place of those of input_ids, which tell where padding is; undefined: these
  Tensor input_embeddings{};
  /// bool [B, T], true = a global token, which attends to all tokens and is attended to by all; undefined: as the
  /// config says
  Tensor global_attention_mask{};
  Tensor read_positions{};  ///< int64 [N], ascending indices into the flattened [B T] whose hidden states are used; the
                            ///< other hidden states are unspecified; undefined: all are used
  /// int64 [B], decoder-only models: length of the prefix, to whose tokens all tokens attend; undefined: no prefix
  Tensor prefix{};
  Tensor decoder_input_ids{};       ///< int64 [B, U], encoder-decoder models
  Tensor decoder_embeddings{};      ///< [B, U, E], in place of those of decoder_input_ids; undefined: these
  Tensor decoder_attention_mask{};  ///< bool [B, U], true = later tokens may attend to this one; undefined: all true
  EncoderOutput encoded{};          ///< the output of `encode` for these inputs, if already computed
  Tensor visible{};  ///< bool [B, T, T], true = this query may attend to this key (a token of the content stream always
                     ///< attends to itself); two-stream models only, like the members below
  Tensor target_positions{};  ///< int64 [B, N], positions that the query stream predicts; -1 = unused, such a query
                              ///< attends to nothing
  Tensor backward{};          ///< bool [B], true = the text of this row is reversed, so that its distances change sign;
                              ///< undefined: no row is
  std::vector<Tensor> mems{};               ///< [B, M, D] per layer, states of earlier segments; empty: none
  std::vector<Tensor>* new_mems = nullptr;  ///< receives the mems for the next segment, detached
  uint64_t dropout_key = 0;                 ///< the key that this pass's dropout masks are drawn from (training only)
};

/// Intermediate results of a stack, for tests and `verify parity`.
struct Trace {
  std::vector<Tensor> hidden_states{};  ///< [B, T, D]: after the embedding, then after each block; the last one after
                                        ///< the final norm; two streams alternate
  /// [B, H, T, S], the probabilities of each attention, in order, where plain operators run; two streams alternate
  std::vector<Tensor> attentions{};
  bool keeps_attentions = true;  ///< false: `attentions` stays empty
  /// [B, T, 3 H C], the queries, keys and values of each self-attention that scores all pairs of tokens, with their
  /// gradients; rotated where positions rotate them
  std::vector<Tensor> projections{};
  bool keeps_projections = false;  ///< true: `projections` is filled
};
/// The traces of a network; a single stack fills `encoder`.
struct Traces {
  Trace encoder{}, decoder{};
};

/// What a backbone keeps of the tokens that it has read, to go on after them. Who decodes holds one, empty at first,
/// and does not ask what is in it: of a Transformer the keys and values of each block, of a recurrent network its
/// states.
struct DecoderState {
  std::vector<Tensor> of_tokens{};  ///< [B, ...]
  std::vector<Tensor> of_source{};  ///< of the encoder's output, which rows with the same source may share

  /// The state of these rows, int64 [R]: row r goes on after row rows[r], which has the same source.
  DecoderState select(const Tensor& rows) const;
};

class Backbone : public Layer {
 public:
  /// Hidden states [B, T, D], of the decoder in an encoder-decoder; with target_positions, those of the query stream
  /// [B, N, D].
  virtual Tensor hidden(const Inputs& in, Traces* traces = nullptr) = 0;
  /// The encoder's output for cross-attention. Throws ShapeError for a backbone that is no encoder-decoder.
  virtual EncoderOutput encode(const Inputs& in, Trace* trace = nullptr);
  /// Hidden states [B, U, D] of the tokens after those of `state` (empty: no tokens yet), which then has them too.
  ///
  /// attention_mask   bool [B, S + U], decoder-only Transformers: true = a real token, an earlier or a new one.
  /// Position
  ///                  ids count real tokens, so that left padding does not change a row; undefined: no padding
  /// read_positions   as those of Inputs, decoder-only models
  ///
  /// Throws ConfigError for a backbone that does not decode.
  virtual Tensor decode(const Tensor& ids, const EncoderOutput& encoded, DecoderState& state,
                        const Tensor& attention_mask = {}, const Tensor& read_positions = {});
  /// The backbone decodes: it is causal, has layers, and each of them keeps a state of earlier tokens.
  virtual bool decodes() const { return false; }
  /// Pooled representation [B, D] of hidden states [B, T, D]. Throws ShapeError for a backbone built without a pooler.
  virtual Tensor pooled(const Tensor& hidden) = 0;
  /// Multiply-adds of `hidden` for a batch of these rows.
  virtual double multiply_adds(const std::vector<RowSizes>& rows) const = 0;
  /// Multiply-adds of `pooled` for one row.
  virtual double pooling_multiply_adds() const { return 0; }
  /// The token embedding [V, E], tied to prediction heads.
  virtual const Param& token_embedding() const = 0;
  /// The embedding layer, which another network may share.
  virtual const std::shared_ptr<Embeddings>& embedding_tables() const = 0;
  virtual bool has_pooler() const = 0;
  /// Recompute the activations of each block in the backward pass instead of storing them.
  virtual void set_gradient_checkpointing(bool on) = 0;
};

/// Optional parts of a backbone: those that objectives need, and those of the family, which `make_backbone` sets.
struct BackboneParts {
  bool pooler = false;
  bool frozen_pooler = false;                ///< kept as it is: no objective uses it
  std::shared_ptr<Embeddings> embeddings{};  ///< the embeddings of another network, tied to this one's
  bool own_norm = false;                     ///< tie only the token and position tables
  StackParts stack{};
  EmbeddingProjection projection{};
};

/// A stack of blocks over embeddings: encoder-only or decoder-only. Throws ConfigError.
std::shared_ptr<Backbone> make_single_stack(const TransformerConfig& config, const BackboneParts& parts);
/// Throws ConfigError.
std::shared_ptr<Backbone> make_encoder_decoder(const EncoderDecoderConfig& config, const StackParts& parts);
/// Throws ConfigError for options that two-stream models do not support.
std::shared_ptr<Backbone> make_two_stream(const TwoStreamConfig& config);
/// Layers of long short-term memory over embeddings. Throws ConfigError.
std::shared_ptr<Backbone> make_recurrent(const RecurrentConfig& config);

}  // namespace cloze
