#pragma once
// What the command line wants of held-out losses, without LibTorch.
#include <optional>
#include <string>
#include <vector>

#include "inference/generation/search.h"
#include "run/checkpoints/chosen_checkpoint.h"

namespace cloze {

/// The runs whose losses are computed, on which text, and by which objectives.
struct EvaluationRequest : RunSelection {
  std::string tokens{};  ///< prepared folder; empty: that of the runs
  std::vector<std::string> text{}, target{};
  std::vector<std::string> objectives{};   ///< in short form; empty: those of the runs' own evaluation
  std::vector<std::string> set{};          ///< evaluation.KEY=VALUE
  std::string format = "auto", columns{};  ///< of the text, as in `prepare`
  std::optional<std::string> field{};      ///< of the text, as in `prepare`
  int64_t sequences = 0;                   ///< 0: evaluation.sequences
  int64_t batch_size = 32;
  bool generate = false;  ///< of pairs: generate the targets and compare
  SearchConfig search{};
};

}  // namespace cloze
