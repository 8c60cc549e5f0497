#pragma once
// What every network offers to objectives: hidden states, and the table that turns them into tokens.
#include "core/tensor/ops.h"
#include "models/config.h"
#include "models/layers.h"

namespace cloze {

/// What a backbone reads; undefined tensors are absent.
struct Inputs {
  Tensor input_ids;          ///< int64 [B, T]
  Tensor attention_mask{};   ///< bool [B, T], true = a real token
  Tensor token_type_ids{};   ///< int64 [B, T]
  Tensor global_attention_mask{};   ///< bool [B, T], true = sees and is seen by everything; undefined: as the config says
  uint64_t dropout_key = 0;  ///< names this pass's dropout masks (training only)
};

/// The input of a stack of layers, read by tests and by `verify parity`.
struct Trace {
  std::vector<Tensor> hidden_states;   ///< [B, T, D]: after the embedding, then after each block
};

class Backbone : public Layer {
 public:
  /// Hidden states [B, T, D].
  virtual Tensor hidden(const Inputs& in, Trace* trace = nullptr) = 0;
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
  std::shared_ptr<Embeddings> embeddings{};   ///< those of another network, which are used here as well
  bool own_norm = false;                      ///< of them only the tables of tokens and positions
};

std::shared_ptr<Backbone> make_backbone(const EncoderConfig& config, const BackboneParts& parts);

}  // namespace cloze
