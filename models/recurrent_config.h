#pragma once
// The options of a recurrent network.
#include "models/backbone_config.h"

namespace cloze {

/// Layers that read a text token by token and keep a state of what they have read.
struct RecurrentConfig : BackboneConfig {
  RecurrentConfig() {
    architecture = Architecture::decoder;
    type_vocab_size = 1;
    token_types = false;
    embedding_norm = false;
  }
  int64_t longest_row(double numbers) const override { return static_cast<int64_t>(numbers / gates()); }
  int64_t widest_activation() const override { return 4 * hidden_size; }
  double layer_weights() const override { return layers() * 2 * gates() * width(); }
  double least_activations(bool recomputes) const override { return layers() * (recomputes ? width() : gates()); }
  /// A layer keeps its input, the gates before and after their activations, the cell, its tanh and the output.
  double activations(const std::vector<RowSizes>& rows, bool recomputes) const override {
    const double layer = 2 * gates() + 4 * width();
    const double kept = (recomputes ? layers() * width() + layer : layers() * layer) + width();
    return total(rows, &RowSizes::length) * kept + head_activations(rows);
  }

 private:
  double layers() const { return static_cast<double>(num_hidden_layers); }
  double gates() const { return 4 * width(); }
};

}  // namespace cloze
