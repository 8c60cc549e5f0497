#pragma once
// What made the weights of a checkpoint, as its step folder and the provenance of its run have it.
#include <optional>
#include <string>

#include "data/tokenizer.h"

namespace cloze {

/// What the weights of a checkpoint were made by.
struct MadeBy {
  std::string config{};     ///< the text of run.yaml; empty: not recorded
  std::string tokenizer{};  ///< its fingerprint; empty: none
};

/// Adds to `made_by` of provenance.json what the run goes on with, unless it stands there last. Throws Error with the
/// system's reason.
void record_made_by(const std::string& run, const MadeBy& now);

/// The file with the config by which a checkpoint was trained: the run.yaml of its run or, where somebody edited that
/// since, the config.yaml of the checkpoint, if it has one.
std::string config_file_of(const std::string& run, const std::string& checkpoint);

/// Throws CheckpointError where the run.yaml of a run has another model or other objectives than made a checkpoint, or
/// its tokenizer is another, and no resume that allowed it has recorded that. Checkpoints of earlier versions, which do
/// not say what made them, are taken as they are.
///
/// tokenizer   of the run; none: is not compared
void require_made_by(const std::string& run, const std::string& checkpoint, const std::optional<Tokenizer>& tokenizer);

}  // namespace cloze
