#pragma once
// Examples to batches: which segments, which tokens are hidden. Pure functions of (seed, epoch, item).
#include <span>

#include "objectives/rows.h"

namespace cloze {

/// The number of the rules by which rows are cut and masked, which a checkpoint notes: raised where the same seed gives
/// other rows.
///   1  tokens that no epoch reads (rests, short sequences, displaced segments); n-grams that overlap are shortened
///   2  every epoch reads all of the text; n-grams that overlap are passed over
inline constexpr int64_t row_rules = 2;

/// Whether rows of these objectives are pairs of segments, which only a text of several documents has.
bool needs_documents(const Objectives& objectives, const DataConfig& data);

/// Makes every batch of a run. Const members may be called from many threads.
class Collator {
 public:
  /// `stage` names the random streams ("train", "valid"), so that held-out masks never change and never equal
  /// training's. `model`: what its texts begin and end with; read by objectives that let a decoder write, and by plm.
  /// `rows`: of training; sequences of plm of a model that carries a memory then follow each other along the rows.
  Collator(TokenStore store, const Objectives& objectives, const DataConfig& data, const Rng& rng,
           const std::string& stage, const ModelConfig& model = {}, StepRows rows = {});
  /// Sequences [first, first + count) of the endless order. model.bi_data: half of them read their texts backwards.
  /// `draws` receives what each drew.
  Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws = nullptr) const;
  /// Sequences in an epoch.
  uint64_t size() const;
  /// Share of the text that is in the pieces of an epoch: 1, but where rows run through the text and its end is too
  /// short for another one.
  double text_share() const;
  /// Share of an epoch's pairs whose B comes from another document.
  double random_next_share() const;
  const TokenStore& store() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace cloze
