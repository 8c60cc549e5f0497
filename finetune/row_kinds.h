#pragma once
// What the rows of a kind of task are in a batch.
#include <optional>
#include <vector>

#include "objectives/batch.h"
#include "objectives/task_heads/task_heads.h"
#include "tasks/rows/task_row.h"

namespace cloze {

/// The rows of a batch, in their order.
using BatchRows = std::vector<const TaskRow*>;

/// Positions of a row.
struct TokenRange {
  int64_t begin = 0, end = 0;
};

/// What tells the rows of a kind of task from those of others: their labels, and what its head needs to know of them.
/// Each is one struct in row_kinds.cpp.
class RowKind {
 public:
  virtual ~RowKind() = default;
  /// Throws DataError for a row whose labels are none of the task's, which has so many.
  virtual void check(const TaskRow& /*row*/, int64_t /*labels*/) const {}
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

}  // namespace cloze
