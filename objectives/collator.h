#pragma once
// From examples to batches: segments, masking, corruption. Pure functions of (seed, epoch, item).
#include <span>

#include "objectives/rows.h"

namespace cloze {

/// Version of the rules by which rows are cut and masked, saved in checkpoints; raised whenever the same seed gives
/// different rows.
///   1  some tokens are in no epoch (rests, short sequences, displaced segments); overlapping n-grams are shortened
///   2  every epoch covers the whole text; overlapping n-grams are skipped
///   3  words of scripts without spaces are their pieces; words longer than a row's predictions are cut
inline constexpr int64_t row_rules = 3;

/// Whether rows of these objectives are segment pairs, which need a text of several documents.
bool needs_documents(const Objectives& objectives, const DataConfig& data);

/// Makes every batch of a run. Const members may be called from many threads.
class Collator {
 public:
  /// `stage` names the random streams ("train", "valid"), so that held-out masks never change and never equal
  /// training's. `model`: used by generative objectives, for the special tokens of its texts, and by plm. `rows`: the
  /// rows of a training step; for a plm model that carries mems, consecutive segments of the text are then the same row
  /// of consecutive steps.
  Collator(TokenStore store, const Objectives& objectives, const DataConfig& data, const RowStreams& streams,
           const std::string& stage, const ModelConfig& model = {}, StepRows rows = {});
  explicit Collator(RowContext context);
  /// Of rows that are made otherwise than the objectives of the context make them.
  Collator(RowContext context, std::unique_ptr<RowMaker> rows);
  /// Sequences [first, first + count) of the infinite order. model.bi_data: half of them have reversed texts. `draws`
  /// receives the random choices of each row. Throws DataError for tokens whose file has become shorter.
  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws = nullptr) const;
  /// The same rows, in the batches that a training step computes one after the other: rows of tasks in batches of like
  /// length, over all batches of their step. Throws as `batch`.
  std::vector<Batch> step_batches(uint64_t first, int64_t count) const;
  /// Number of sequences in an epoch.
  uint64_t size() const;
  /// Share of the text that an epoch covers: 1, except where rows run through the text and its end is too short for
  /// another row.
  double text_fraction() const;
  /// Share of an epoch's segment pairs whose B is from another document.
  double random_next_rate() const;
  const TokenStore& store() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cloze
