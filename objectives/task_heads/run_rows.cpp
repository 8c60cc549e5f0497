#include "objectives/task_heads/run_rows.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/interrupt.h"

namespace cloze {

namespace {

/// Puts a network into evaluation mode, and back into the one that it was in.
class InEvaluation {
 public:
  explicit InEvaluation(Network& network) : network_(network), trained_(network.is_training()) { network.eval(); }
  ~InEvaluation() { network_.train(trained_); }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;

 private:
  Network& network_;
  bool trained_;
};

/// The rows of the next batch, [begin, end) of `order`, which is ascending by length.
size_t end_of_batch(const std::vector<size_t>& order, size_t begin, const std::vector<TaskRow>& rows, int64_t tokens) {
  size_t end = begin + 1;
  while (end < order.size() && static_cast<int64_t>(rows[order[end]].ids.size() * (end + 1 - begin)) <= tokens) ++end;
  return end;
}

/// Rows of a batch of BabyLM's program, where it judges: on padding that it reads, the others in the batch count.
constexpr size_t babylm_judged_rows = 64;

/// The logits of a batch: [B, L] of texts and candidates, [B, T, L] of tokens.
Tensor logits_of(Network& network, const Objective& head, const Batch& batch) {
  auto inputs = inputs_of(batch);
  inputs.read_positions = head.read_positions(batch);
  const auto hidden = network.backbone->hidden(inputs);
  const auto outputs = network.objectives[0]->batch_outputs(*network.backbone, hidden, batch);
  return (outputs.size() == 1 ? outputs[0].second : at::stack({outputs[0].second, outputs[1].second}, -1)).to(at::kCPU);
}

}  // namespace

TaskOutputs run_rows(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                     int64_t batch_tokens) {
  const auto setting = labelled_setting(network.model_config(), objectives);
  const InEvaluation evaluation(network);
  const at::NoGradGuard no_grad;
  const auto device = network.backbone->token_embedding().value().device();
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!setting.pads_left) std::ranges::stable_sort(order, {}, [&](size_t r) { return rows[r].ids.size(); });
  TaskOutputs found;
  found.logits.resize(rows.size());
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    if (interrupted) throw Interrupted("stopped in an evaluation of a task");
    end = setting.pads_left ? std::min(order.size(), begin + babylm_judged_rows)
                            : end_of_batch(order, begin, rows, batch_tokens);
    std::vector<const TaskRow*> chosen;
    for (size_t i = begin; i < end; ++i) chosen.push_back(&rows[order[i]]);
    auto batch = labelled_batch(setting, chosen, /*with_targets=*/false);
    batch.candidates = Tensor();  // rows of like length are seldom of one item
    for (auto* tensor : batch.tensors())
      if (tensor->defined()) *tensor = tensor->to(device);
    const auto logits = logits_of(network, *network.objectives[0], batch);
    for (size_t i = begin; i < end; ++i) {
      const auto row = logits[static_cast<int64_t>(i - begin)];
      const auto length = static_cast<int64_t>(rows[order[i]].ids.size());
      found.logits[order[i]] = (reads_texts(setting.task) ? row : row.narrow(0, 0, length)).clone();
    }
  }
  return found;
}

}  // namespace cloze
