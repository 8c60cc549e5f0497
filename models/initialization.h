#pragma once
// Standard deviations of the initial weights.
#include "models/backbone_config.h"
#include "models/layers/layers.h"

namespace cloze {

/// Sets the standard deviation and distribution of `initializer` on the parameters under `root`, except those of nested
/// networks and those whose layer has set its own, wherever they differ from initializer_range.
///
/// fan_in   1 / sqrt(inputs), also for an untied LM head, as for dense layers of Mesh TensorFlow
/// xavier   Glorot and Bengio 2010, equation 16, uniform, for each of the stacked matrices; embedding tables: normal,
///          1 / sqrt(width)
///
/// Source: tensorflow/mesh, layers.py, VarianceScalingInitializer; tensor2tensor, models/transformer.py
/// (uniform_unit_scaling, separate matrices for Q, K and V).
/// Differs: Mesh TensorFlow truncates its normal at two deviations, and transformers initialises an untied T5 head with
/// deviation 1. torch's MultiheadAttention (one packed matrix) and fairseq's (gain 1 / sqrt(2)) initialise Q, K and V
/// with 1 / sqrt(2 width), sqrt(2) times smaller than xavier here. fairseq's Linformer overwrites the xavier
/// initialisation of its sequence projections with the normal of all its weights; here they are normal too, except
/// under xavier.
void set_init_ranges(const Layer& root, const BackboneConfig& config);

/// Uniform with deviation gain sqrt(2 / (inputs + outputs)), for each of the matrices stacked in weight [N, K].
/// Source: Glorot and Bengio 2010, equation 16.
void set_xavier(Param weight, double gain = 1);

}  // namespace cloze
