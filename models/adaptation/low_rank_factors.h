#pragma once
// LoRA: the factors of the linear layers of a backbone.
#include "core/tensor/low_rank.h"
#include "models/backbone.h"
#include "models/adaptation/config.h"

namespace cloze {

/// Rows of a linear layer that have a name of their own: the queries of queries, keys and values.
struct NamedRows {
  std::string name;
  int64_t first, parts, of;  ///< so many parts of the rows from that one on, of so many in all
};
/// Those of the linear layer at a path: `encoder.0.attention.qkv`.
std::vector<NamedRows> rows_of_layer(const std::string& path);

/// A and B of each target, `stack.0.attention.qkv.query.a`. They enter the matrices that they are of, where the
/// operators find them. A is drawn as peft does, B is zero.
/// Source: huggingface/peft, tuners/lora/layer.py, reset_lora_parameters.
class LowRankFactors : public Layer {
 public:
  /// Throws ConfigError for a target that no layer has.
  LowRankFactors(const LoraAdaptation& config, const Backbone& backbone);
  /// Dropout of the next pass, by its key.
  void begin_pass(uint64_t key);
  /// The matrices have the products from here on, and no factors.
  void merge();
  const std::vector<NamedParam>& matrices() const { return matrices_; }

 private:
  void add(const LoraAdaptation& config, const std::string& path, const NamedRows& rows, const Param& weight);
  double dropout_;
  std::vector<NamedParam> matrices_;  // of the backbone
};

}  // namespace cloze
