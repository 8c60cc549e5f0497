#pragma once
// What the rules of the BabyLM Challenge say about the training of a text track.
//
// Sources: the call for papers (Charpentier et al. 2025, arXiv 2502.10645): 10 M words of text in strict-small, 100 M
// in strict, each read at most ten times; babylm-org/babylm-eval, strict/evaluation_pipeline/collate_preds.py: the
// checkpoints of a submission.
#include <cstdint>
#include <vector>

namespace cloze::babylm {

inline constexpr int64_t strict_small_words = 10'000'000, strict_words = 100'000'000;
inline constexpr double max_epochs = 10;

/// Words after which a submission has a checkpoint, each time they are seen: 1 M to 9 M, 10 M to 90 M, and 100 M, where
/// strict-small ends, to 1,000 M.
inline std::vector<int64_t> checkpoint_words() {
  std::vector<int64_t> found;
  for (int64_t unit = 1'000'000; unit <= 100'000'000; unit *= 10)
    for (int64_t count = 1; count <= 9; ++count) found.push_back(count * unit);
  found.push_back(1'000'000'000);
  return found;
}

}  // namespace cloze::babylm
