#pragma once
// Standard deviations of the first weights.
#include "models/config.h"
#include "models/layers/layers.h"

namespace cloze {

/// Gives the parameters under `root`, those of networks inside it left out, the deviation and distribution that
/// `initializer` asks for, where it is not initializer_range.
///
/// fan_in   1 / sqrt(inputs), an untied head of tokens included, as dense layers of Mesh TensorFlow start
/// xavier   Glorot and Bengio 2010, equation 16, uniform, for each of the matrices that lie stacked; tables
///          1 / sqrt(width), normal
///
/// Source: tensorflow/mesh, layers.py, VarianceScalingInitializer; tensor2tensor, models/transformer.py
/// (uniform_unit_scaling, a matrix each for Q, K and V).
/// Differs: Mesh TensorFlow cuts its normal at two deviations, and transformers starts an untied T5 head with deviation
/// 1. torch's MultiheadAttention (one packed matrix) and fairseq's (gain 1 / sqrt(2)) start Q, K and V with
/// 1 / sqrt(2 width), sqrt(2) times smaller than xavier here. fairseq's Linformer overwrites the xavier of its
/// projections of positions with the normal of all its weights, which is what they start as here but under xavier.
void set_init_ranges(const Layer& root, const BackboneConfig& config);

/// Uniform, with the deviation gain sqrt(2 / (inputs + outputs)) of each matrix that lies stacked in weight [N, K].
/// Source: Glorot and Bengio 2010, equation 16.
void set_xavier(Param weight, double gain = 1);

}  // namespace cloze
