#pragma once
// What the objectives of a run forbid, each its own (ObjectiveKind::check) and what several do, and the rows that they
// lead to expect, before any is made: their sizes decide what a step costs.
#include "core/config/config_rule.h"
#include "data/config.h"
#include "models/families/model_config.h"
#include "models/layers/cost.h"
#include "objectives/config.h"

namespace cloze {

/// What surrounds an objective in a run.
struct ObjectiveSetting {
  const ModelConfig& model;
  const DataConfig& data;
  const Objectives& objectives;  ///< all of the run
  int64_t batch_size = 0;        ///< sequences in a forward pass
  int64_t accumulation = 1;      ///< forward passes in an optimizer step
  int64_t steps = 0;             ///< optimizer steps of the run; 0: unknown
  double ema_decay = 0;          ///< of an average of the weights; 0: none
  bool ends_by_text = false;     ///< the run has a number of words, epochs or tokens

  const BackboneConfig& backbone() const { return backbone_of(model); }
  template <class Kind>
  bool has() const {
    return first_of<Kind>(objectives) != nullptr;
  }
};

/// The rules of all objectives of a run, alone and together.
void check_constraints(const ObjectiveSetting& in, Constraints& constraints);

// Rules of several kinds; `kind` names the objective in the sentence.

/// An objective that reads a text in both directions: no two-stream model, no encoder-decoder, no decoder of a family
/// of decoders, no prefix.
void require_bidirectional(const char* kind, const ObjectiveSetting& in, Constraints& constraints);
/// An objective that trains generation.
void require_generative(const char* kind, const NextTokenTerms& terms, const ObjectiveSetting& in,
                        Constraints& constraints);
/// The LM head multiplies hidden states by the token embeddings; `remedy` names the objective that has a transform.
void require_lm_head(const char* kind, const NextTokenTerms& terms, const char* remedy, const ObjectiveSetting& in,
                     Constraints& constraints);
/// Rows without a source have no prefix.
void forbid_prefix_lm(const char* kind, const ObjectiveSetting& in, Constraints& constraints);
void forbid_two_streams(const char* kind, const ObjectiveSetting& in, Constraints& constraints);
/// An objective whose rows no other one can read.
void forbid_companions(const char* kind, const ObjectiveSetting& in, Constraints& constraints);
/// Two segments in a row. `subject` needs them, `remedy` does without.
void require_segments(const std::string& subject, const std::string& remedy, const ObjectiveSetting& in,
                      Constraints& constraints);

/// The rows of a micro-batch, all of data.max_seq_length tokens, with what each objective expects of them
/// (ObjectiveKind::expect). The neighbours of spans that sbo reads are not counted.
std::vector<RowSizes> expected_rows(const ObjectiveSetting& in);

/// What several kinds expect: a source of data.max_seq_length tokens, and a target that is `fraction` as long; a
/// decoder-only model reads both in that length.
void expect_source_target(double fraction, const ObjectiveSetting& in, std::vector<RowSizes>& rows);

}  // namespace cloze
