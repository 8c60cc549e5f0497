#pragma once
// Rows of a task as batches.
#include <optional>
#include <vector>

#include "objectives/batch.h"
#include "objectives/collator.h"
#include "objectives/task_heads/task_heads.h"
#include "run/config/config.h"
#include "tasks/rows/task_row.h"

namespace cloze {

/// The rows of a batch, in their order.
using BatchRows = std::vector<const TaskRow*>;

/// Positions of a row.
struct TokenRange {
  int64_t begin = 0, end = 0;
};

struct LabelledSetting;

/// What tells the rows of a kind of task from those of others: their labels, and what its head needs to know of them.
/// Each is one struct in row_kinds.cpp.
class RowKind {
 public:
  virtual ~RowKind() = default;
  /// Throws DataError for a row whose labels are none of the task's, which has so many; of targets for an id that is
  /// none of so many.
  virtual void check(const TaskRow& /*row*/, int64_t /*labels*/) const {}
  /// The positions that a row takes of a batch.
  virtual int64_t length(const TaskRow& row) const { return std::ssize(row.ids); }
  /// A batch that is none of texts with labels; none: it is.
  virtual std::optional<Batch> own_batch(const LabelledSetting&, const BatchRows&) const { return {}; }
  /// The rows of an item are one example.
  virtual bool joins_rows() const { return false; }
  /// The number of states that a probe of a layer is trained on in a row, and of those that it says something of.
  virtual int64_t trained_states(const TaskRow& /*row*/) const { return 1; }
  virtual int64_t states(const TaskRow& /*row*/) const { return 1; }
  /// The tokens [begin, end) of a row that are global in window attention; none: the family says which.
  virtual std::optional<TokenRange> global_tokens(const TaskRow& row) const {
    return TokenRange{row.class_token, row.class_token + 1};
  }
  /// What the head reads besides the text.
  virtual void add_facts(Batch& batch, const BatchRows& rows) const;
  /// Batch::labels or Batch::targets of a task with so many labels.
  virtual void add_labels(Batch& batch, const BatchRows& rows, int64_t labels) const = 0;
};

/// The rows that this head reads.
const RowKind& row_kind_of(const TaskHead& head);
/// Rows of sources with the targets that are to be generated.
const RowKind& target_rows();

/// What batches of a task's rows are made for.
struct LabelledSetting {
  const RowKind* kind = nullptr;
  HeadUse use = HeadUse::texts;
  ModelConfig model;
  int64_t labels = 0;      ///< of the task; 0: it has none; of targets the ids that there are
  bool segments = true;    ///< of rows that have them
  bool pads_left = false;  ///< as BabyLM's program does where it is asked to
  bool unpads = false;     ///< the network computes nothing for padding
  bool probes = false;     ///< its head is probes of layers, whose states are numbered by the rows of a part
};

/// The setting of a run that learns a task. Throws ConfigError for another objective.
LabelledSetting labelled_setting(const ModelConfig& model, const Objectives& objectives);

/// Rows as a batch, padded on the right, or as the setting says, to the longest of them, XLNet's too, whose distances
/// are relative: its head reads the last real token. `choice`: rows of an item stand together, and are one item. Window
/// attention is global at the first token of a text, on the question of spans, and on the second text of a choice.
/// `with_targets` false: as rows whose labels nobody knows.
Batch labelled_batch(const LabelledSetting& setting, const BatchRows& rows, bool with_targets = true);

/// The decoder's input int64 [B, T] for ids [B, T], -100 = padding: the ids shifted right, after the start token or
/// their own last token. Source: shift_tokens_right of transformers, models/bart and models/mbart.
Tensor shifted_right(const Tensor& ids, const ModelConfig& model);

/// Batches of a task's rows for training: an example is a row or, of `choice`, the rows of an item. An epoch is a
/// permutation of them by (seed, order, epoch). No batch has examples of two epochs: where `batch_size` does not divide
/// their number, the last batch of an epoch is smaller, and the sequence numbers after its examples stand for none: a
/// batch of such numbers alone is empty. A training step computes its examples in batches of like length,
/// or of as many tokens as are computed fast (tasks/rows/like_lengths.h), whichever of its batches they are drawn for:
/// losses are summed over the whole step.
///
/// order       of the stage, as RowContext::order_rng
/// step        of examples; without any: batches of any size, which end with the epoch
/// drop_last   a step that would have fewer is none: an epoch ends before its examples, which are others each time
///
/// Throws DataError without rows, for a label that is none of the task's, and where no batch is left.
std::unique_ptr<RowMaker> make_labelled_rows(const LabelledSetting& setting, std::vector<TaskRow> rows,
                                             const Rng& order, const StepBatches& step, bool drop_last = false);

/// The rows of a run whose objective is the head of a task, of the prepared task that its tokens are; of another run
/// those of its text. The config has no phases. Throws ConfigError for a head and a text, which has no labels.
Collator rows_of_run(const RunConfig& config, const TokenStore& store, const RowsStart& start = {});

}  // namespace cloze
