#pragma once
// What makes the rows of batches.
#include <memory>
#include <optional>

#include "data/config.h"
#include "data/sampling/mixed_sampler.h"
#include "models/families/model_config.h"
#include "objectives/batch.h"
#include "objectives/config.h"
#include "objectives/masking.h"
#include "objectives/segment_pairs.h"
#include "objectives/step_rows.h"

namespace cloze {

/// The random choices of a row, for statistics.
struct RowDraws {
  size_t masking = 0;  ///< index in the mixture of maskings
  /// Lengths of n-grams and spans as drawn, in words (Masker::corrupt, text_infilling), or in tokens for plm
  /// (plm_spans).
  std::vector<int64_t> lengths;
  int64_t corrupted = 0;  ///< tokens that text_infilling deleted or replaced
  /// Tokens of the row's example. Every token of the text is in one example of an epoch, up to text_fraction().
  int64_t example_tokens = 0;
  int64_t used_tokens = 0;  ///< those of them that are in the row
  uint64_t document = 0;    ///< of the example's first token
  /// Generative objectives: of each label, its offset in the token store; -1 = an end token, a sentinel.
  std::vector<int64_t> label_offsets{};
  std::vector<int32_t> query_rank{}, key_rank{};  ///< of each token of a row of plm, as in PlmExample
};

/// The share of predicted tokens in sequence number `sequence`, which changes linearly over the steps of the run, or,
/// where their number is unknown, over its epochs of `epoch_size` sequences; the same for all sequences of a step.
/// Source: ltgoslo/gpt-bert, pretraining/dataset.py, apply_mask; Ankner et al. 2023 (arXiv 2305.15096).
double masking_rate(const Masking& masking, const StepRows& rows, uint64_t sequence, uint64_t epoch_size);

/// The data and options that all rows of a run are made from.
struct RowContext {
  RowContext(TokenStore tokens, const Objectives& wanted, const DataConfig& data_config, const RowStreams& streams,
             const std::string& stage_name, const ModelConfig& model_config, StepRows rows);
  /// A sampler on the stream of the order, in training with the versions of static masking. Throws DataError if a text
  /// has no examples.
  MixedSampler sampler(SamplerOptions options) const;
  /// The sequence number of each row of the batch that starts at `first`.
  std::vector<uint64_t> sequences(const MixedSampler& sampler, uint64_t first, int64_t count) const;
  /// Throws DataError for ids outside the tokenizer's vocabulary.
  void check_ids(const int64_t* ids, uint64_t count) const;

  TokenStore store;
  Objectives objectives;
  DataConfig data;
  ModelConfig model;
  StepRows step;
  std::string stage;
  TokenProperties vocabulary;
  Rng order_rng;
  uint64_t mask_key, mixture_key, pair_key;
};

/// Makes rows. Const members may be called from many threads.
class RowMaker {
 public:
  virtual ~RowMaker() = default;
  /// Rows [first, first + count) of the infinite order. `draws` [count] receives the random choices of each row.
  virtual Batch batch(uint64_t first, int64_t count, std::vector<RowDraws>* draws) const = 0;
  /// The same rows, in the batches that a training step computes one after the other; none of numbers that stand for no
  /// rows.
  virtual std::vector<Batch> step_batches(uint64_t first, int64_t count) const {
    std::vector<Batch> all;
    all.push_back(batch(first, count, nullptr));
    return all;
  }
  /// Number of sequences in an epoch.
  virtual uint64_t size() const = 0;
  /// Share of the text that an epoch covers.
  virtual double text_fraction() const { return 1; }
  /// Share of an epoch's segment pairs whose B is from another document.
  virtual double random_next_rate() const { return 0; }
};

/// The maker of the rows of the context's objectives. A kind that makes its own rows has
///   std::unique_ptr<RowMaker> make_rows(const Config& config, const RowContext& context);
/// in its folder; generative kinds share that of objectives/generative_rows.h.
std::unique_ptr<RowMaker> make_rows(const RowContext& context);
/// Of kinds that make no rows of their own: texts or segment pairs, masked where an objective masks.
std::unique_ptr<RowMaker> make_masked_rows(const RowContext& context);
inline std::unique_ptr<RowMaker> make_rows(const ObjectiveKind&, const RowContext& context) {
  return make_masked_rows(context);
}

/// The packing of rows with a single segment.
Packing packing_of(RowPacking packing);

/// Layout of a row of ids.
struct RowLayout {
  int64_t length = 0;
  int64_t second = 0;  ///< start of segment B
  int64_t label = 0;
  bool forced = false;      ///< the label was not drawn
  int64_t used_tokens = 0;  ///< tokens of the example's own text
};
/// Fills `ids` with [CLS] text [SEP], with a [SEP] between documents.
RowLayout fill_text_row(const RowContext& context, const Example& example, int64_t* ids);
/// Fills `ids` with [CLS] A [SEP] B [SEP]; A and B have at most `budget` tokens in total.
RowLayout fill_pair_row(const RowContext& context, const SegmentPairRule& rule, const Example& example, uint64_t budget,
                        int64_t* ids);
/// Records the number of tokens of an example, and of those used in its row.
void record_text_usage(const Example& example, const RowLayout& row, RowDraws& draws);

inline Tensor to_tensor(const std::vector<int64_t>& values) {
  auto tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

}  // namespace cloze
