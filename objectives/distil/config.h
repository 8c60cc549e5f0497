#pragma once
// The section `distil` of a run: what its network learns from another one. Without LibTorch.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "objectives/distil/layer_map.h"

namespace cloze {

class Constraints;
struct ObjectiveSetting;

/// The tokens whose logits are compared.
enum class TaughtTokens { all, predicted };
constexpr auto choices(TaughtTokens) {
  return std::array{Choice{TaughtTokens::all, "all", "all but padding"},
                    Choice{TaughtTokens::predicted, "predicted", "those that the objective predicts"}};
}

/// Losses beside those of the objectives, by which a network becomes like its teacher on the same corrupted rows. They
/// are of training alone: held-out losses, scores and exports are those of the objectives.
/// Source: Hinton et al. 2015 (arXiv 1503.02531); Sanh et al. 2019 (arXiv 1910.01108), distiller.py, its weights
/// alpha_ce and alpha_cos; Jiao et al. 2020 (arXiv 1909.10351), task_distill.py; Wang et al. 2020 (arXiv 2002.10957);
/// Sun et al. 2019 (arXiv 1908.09355). Differs: padding counts in no loss.
struct DistilConfig {
  std::string like;
  std::string teacher;
  double logits = 1;
  double temperature = 1;
  TaughtTokens tokens = TaughtTokens::all;
  double cosine = 0;
  double hidden = 0;
  double embeddings = 0;
  double scores = 0;
  double attention = 0;
  double values = 0;
  double patient = 0;
  std::vector<int64_t> layers{evenly_spaced};

  bool is_on() const { return !teacher.empty(); }
  /// A loss reads queries, keys or values.
  bool reads_attention() const { return scores > 0 || attention > 0 || values > 0; }
  /// A loss reads more than the last states.
  bool reads_layers() const { return hidden > 0 || embeddings > 0 || patient > 0 || reads_attention(); }
  /// A loss reads the states of all tokens of a text.
  bool reads_all_tokens() const { return tokens == TaughtTokens::all || cosine > 0 || reads_layers(); }
};

template <class V>
void describe(V& v, DistilConfig& c) {
  v.like(
      c,
      "the losses of a published model, beside objectives of a weight: 2 of distilbert, 0 of tinybert and minilm, 0.5 "
      "of patient-kd",
      {{"distilbert", {{"logits", "5"}, {"temperature", "2"}, {"cosine", "1"}}},
       {"tinybert", {{"logits", "0"}, {"hidden", "1"}, {"embeddings", "1"}, {"scores", "1"}}},
       {"minilm", {{"logits", "0"}, {"attention", "1"}, {"values", "1"}}},
       {"patient-kd", {{"logits", "0.5"}, {"temperature", "10"}, {"patient", "100"}}}});
  v("teacher", c.teacher,
    "the run, or step folder of one, that this one learns from, of the same tokenizer and, on a task, of the same "
    "labels; empty = none");
  v("logits", c.logits,
    "factor of the Kullback-Leibler divergence of the logits, mean over their rows, times temperature squared",
    in_range(0, 1e6));
  v("temperature", c.temperature, "both logits are divided by it first", in_range(0.01, 1000));
  v("tokens", c.tokens, "in pretraining, the tokens whose logits are compared");
  v("cosine", c.cosine, "factor of 1 - cosine of the last hidden states, mean over all tokens", in_range(0, 1e6));
  v("hidden", c.hidden,
    "factor of the squared differences of the states of `layers`, mean over tokens and numbers, sum over layers; "
    "through a linear layer, which is trained, where widths differ",
    in_range(0, 1e6));
  v("embeddings", c.embeddings, "the same of the states after the embeddings", in_range(0, 1e6));
  v("scores", c.scores,
    "factor of the squared differences of the attention scores of `layers`, mean over heads and keys, then over tokens",
    in_range(0, 1e6));
  v("attention", c.attention,
    "factor of the divergence of the attention of the last layer, mean over heads and tokens (MiniLM)",
    in_range(0, 1e6));
  v("values", c.values, "the same of the products of its values, softmax(V V' / sqrt(C)) (MiniLM)", in_range(0, 1e6));
  v("patient", c.patient,
    "factor of the squared distance of the first token's states, each divided by its length, summed over `layers` "
    "without the last (Patient KD)",
    in_range(0, 1e6));
  v("layers", c.layers,
    "the teacher's layer for each layer, from 1 on; every = of 12 layers for 4 the layers 3, 6, 9, 12; last = the last",
    layer_list());
}

/// Whether a loss is one of these, by its name, or a parameter is trained for them alone.
inline bool is_of_distil(const std::string& name) { return name.starts_with("distil"); }

/// Throws ConfigError for losses without a teacher, which a config may have that names none yet.
void require_teacher(const DistilConfig& config);

/// The rules of a section beside the objectives of its run.
void check_distil(const DistilConfig& config, const ObjectiveSetting& in, Constraints& constraints);

}  // namespace cloze
