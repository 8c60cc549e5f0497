#pragma once
// What the processes that train a run together say to each other.
#include <ATen/ATen.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/error.h"
#include "distributed/meeting.h"
#include "distributed/part_tree.h"

namespace cloze {

using at::Tensor;

/// The bounds of consecutive slices of a flat tensor, one for each process: slice r is [bounds[r], bounds[r + 1]).
using SliceBounds = std::vector<int64_t>;

/// The processes that train a run together, of which this is one. Each calls the same verbs in the same order; a verb
/// throws ProcessLost where another process has ended or does not answer.
class Communicator {
 public:
  virtual ~Communicator() = default;
  int64_t rank() const { return rank_; }
  int64_t size() const { return size_; }
  /// How many of them are on the machine of this one.
  int64_t size_here() const { return size_here_; }
  /// It writes the files of the run, prints, and decides for all.
  bool is_first() const { return rank_ == 0; }
  /// The first process of this machine.
  bool is_first_here() const { return rank_here_ == 0; }
  /// Seconds that this process has been in the verbs below so far: mostly those in which it has waited for others.
  double seconds_waited() const { return waited_; }
  /// `rank 3 on HOST (pid 71)`.
  virtual std::string name_of(int64_t rank) const = 0;
  /// `eth0 (10.0.0.2)`, by which this process reaches the others; empty: not known.
  virtual std::string network() const = 0;

  /// Fills in the own slice of `flat` with that of the sum of the parts [0, `parts`) in the order of their tree
  /// (part_tree.h): the same bits for any number of processes.
  ///
  /// sums    as flat, of the subtrees that lie in the own parts (subtrees_in), which it may overwrite; one may be
  /// `flat` slices  of the n numbers
  virtual void sum_slices(const Tensor& flat, const std::vector<Tensor>& sums, int64_t parts,
                          const SliceBounds& slices) = 0;
  /// Fills in the slices of all others, of a flat tensor whose own slice each has.
  virtual void gather(const Tensor& flat, const SliceBounds& slices) = 0;
  /// Overwrites a tensor with that of the first process.
  virtual void broadcast(const Tensor& tensor) = 0;
  /// Copies a tensor of one process into that of another, which has its shape; the rest only pass by.
  virtual void move(const Tensor& tensor, int64_t from, int64_t to) = 0;
  /// The numbers of every process, by rank; each gives as many as it has.
  virtual std::vector<std::vector<double>> exchange(const std::vector<double>& own) = 0;
  /// The text of the first process; the others wait for it as long as that one lives.
  virtual std::string broadcast_text(const std::string& text) = 0;
  /// Tells all others that this process ends with an error, whose sentence and exit code become theirs.
  virtual void fail_for_all(const std::string& sentence, int exit_code) = 0;

 protected:
  Communicator(int64_t rank, int64_t size, int64_t rank_here, int64_t size_here)
      : rank_(rank), size_(size), rank_here_(rank_here), size_here_(size_here) {}
  double waited_ = 0;

 private:
  int64_t rank_, size_, rank_here_, size_here_;
};

/// The values of every process, by rank; their numbers keep every bit, and may be none.
std::vector<nlohmann::json> exchange_json(Communicator& processes, const nlohmann::json& own);

/// The communicator of a run of one process, which has nobody to talk to.
Communicator& alone();

/// Waits until all have come. Throws ConfigError where the first process cannot have its port or the host is none, and
/// ProcessLost, with the ranks, where some do not come in time.
std::unique_ptr<Communicator> meet(const Meeting& meeting);

}  // namespace cloze
