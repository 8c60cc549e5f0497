#include "finetune/run_rows.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/random.h"
#include "core/tensor/parallel.h"
#include "run/device.h"

namespace cloze {

namespace {

int64_t length_in_batch(const TaskRow& row) { return std::ssize(row.ids) + std::ssize(row.target); }

/// The rows of the next batch, [begin, end) of `order`, which is ascending by length.
size_t end_of_batch(const std::vector<size_t>& order, size_t begin, const std::vector<TaskRow>& rows, int64_t tokens) {
  size_t end = begin + 1;
  while (end < order.size() && length_in_batch(rows[order[end]]) * static_cast<int64_t>(end + 1 - begin) <= tokens)
    ++end;
  return end;
}

constexpr int64_t tokens_of_batch_elsewhere = 8192;  ///< at least, where one batch takes the whole device
constexpr int64_t rows_of_weights = 256;             ///< that weights are packed for

/// Rows of a batch of BabyLM's program, where it judges: on padding that it reads, the others in the batch count.
constexpr size_t babylm_judged_rows = 64;

/// Calls `take` with what `compute` gives of each batch of rows of like length, with the batch and with the numbers of
/// its rows, in any order. On the CPU each of several batches is computed by one thread.
template <class Compute, class Take>
void for_each_batch(Network& network, const LabelledSetting& setting, const std::vector<TaskRow>& rows,
                    bool with_targets, int64_t batch_tokens, const Compute& compute, const Take& take,
                    std::optional<uint64_t> dropout_key = {}) {
  const InEvaluation evaluation(network, dropout_key.has_value());
  const auto device = device_of(network);
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!setting.pads_left) std::ranges::stable_sort(order, {}, [&](size_t r) { return length_in_batch(rows[r]); });
  if (!device.is_cpu()) batch_tokens = std::max(batch_tokens, tokens_of_batch_elsewhere);
  std::vector<std::span<const size_t>> batches;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = setting.pads_left ? std::min(order.size(), begin + babylm_judged_rows)
                            : end_of_batch(order, begin, rows, batch_tokens);
    batches.push_back(std::span<const size_t>(order).subspan(begin, end - begin));
  }
  std::mutex taking;
  const auto run = [&](int64_t number) {
    if (interrupted) throw Interrupted("stopped in an evaluation of a task");
    const at::NoGradGuard no_grad;
    const auto numbers = batches[static_cast<size_t>(number)];
    std::vector<const TaskRow*> chosen;
    for (const auto row : numbers) chosen.push_back(&rows[row]);
    auto made = labelled_batch(setting, chosen, with_targets);
    made.candidates = Tensor();  // rows of like length are seldom of one item
    if (dropout_key) made.dropout_key = mix(*dropout_key, static_cast<uint64_t>(number));
    const auto batch = to_device(std::move(made), device);
    const auto computed = compute(batch);
    const std::lock_guard lock(taking);
    take(computed, batch, numbers);
  };
  std::optional<PackedWeights> packed;
  if (network.backbone->token_embedding().compute().scalar_type() == at::kFloat)
    packed.emplace(network, rows_of_weights, /*tables=*/false);
  if (device.is_cpu() && batches.size() > 1)
    each_part(std::ssize(batches), run);
  else
    for (int64_t number = 0; number < std::ssize(batches); ++number) run(number);
}

int64_t count_states(const RowKind& kind, const TaskRow& row, ProbedTokens tokens) {
  return tokens == ProbedTokens::all ? kind.states(row) : kind.trained_states(row);
}

/// The bytes of a state in each layer that has a probe.
int64_t bytes_of_state(const Network& network) {
  const auto layers = std::ssize(probes_of(network)->layers());
  return layers * backbone_of(network.model_config()).hidden_size * static_cast<int64_t>(sizeof(float));
}

/// The outputs of rows by each probe, for their states, are added to `outputs`.
void add_outputs(Network& network, HeadUse use, const RowStates& rows, std::vector<TaskOutputs>& outputs) {
  const InEvaluation evaluation(network);
  const at::NoGradGuard no_grad;
  for (size_t probe = 0; probe < outputs.size(); ++probe) {
    const auto of_probe = rows.states[static_cast<int64_t>(probe)];
    const auto logits = probes_of(network)->logits(probe, of_probe).to(at::kCPU);  // [S, K]
    for (size_t r = 0; r + 1 < rows.begins.size(); ++r) {
      const auto own = logits.narrow(0, rows.begins[r], rows.begins[r + 1] - rows.begins[r]);
      outputs[probe].logits.push_back((reads_texts(use) ? own[0] : own).clone());
    }
  }
}

}  // namespace

Tensor task_logits(Network& network, const Batch& batch) {
  auto& head = *network.objectives[0];
  Inputs inputs = batch;
  inputs.read_positions = head.read_positions(batch);
  inputs.padding_is_unread = true;
  const auto hidden = network.backbone->hidden(inputs);
  const auto outputs = head.batch_outputs(*network.backbone, hidden, batch);
  return outputs.size() == 1 ? outputs[0].second : at::stack({outputs[0].second, outputs[1].second}, -1);
}

TaskOutputs run_rows(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                     int64_t batch_tokens, std::optional<uint64_t> dropout_key) {
  const auto setting = labelled_setting(network.model_config(), objectives);
  if (const auto* probes = probes_of(network)) return run_probes(network, objectives, rows).at(probes->chosen());
  TaskOutputs outputs;
  outputs.logits.resize(rows.size());
  const auto compute = [&](const Batch& batch) { return task_logits(network, batch).to(at::kCPU); };
  for_each_batch(
      network, setting, rows, /*with_targets=*/false, batch_tokens, compute,
      [&](const Tensor& logits, const Batch&, std::span<const size_t> numbers) {
        for (size_t i = 0; i < numbers.size(); ++i) {
          const auto row = logits[static_cast<int64_t>(i)];
          const auto length = std::ssize(rows[numbers[i]].ids);
          outputs.logits[numbers[i]] = (reads_texts(setting.use) ? row : row.narrow(0, 0, length)).clone();
        }
      },
      dropout_key);
  return outputs;
}

std::vector<TargetLoss> target_losses(Network& network, const Objectives& objectives,
                                      const std::vector<TaskRow>& rows) {
  const auto setting = labelled_setting(network.model_config(), objectives);
  std::vector<TaskRow> with_target;
  std::vector<size_t> numbers_of_all;
  for (size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].target.empty()) continue;
    setting.kind->check(rows[r], setting.labels);
    with_target.push_back(rows[r]);
    numbers_of_all.push_back(r);
  }
  std::vector<TargetLoss> losses(rows.size());
  const auto compute = [&](const Batch& batch) { return network.losses(batch, /*dropout_key=*/0).at(0).single; };
  for_each_batch(network, setting, with_target, /*with_targets=*/true, tokens_of_batch, compute,
                 [&](const Predictions& single, const Batch&, std::span<const size_t> numbers) {
                   const auto row = single.row.to(at::kCPU), loss = single.loss.to(at::kCPU, at::kDouble);
                   for (int64_t i = 0; i < row.numel(); ++i) {
                     auto& own = losses[numbers_of_all[numbers[static_cast<size_t>(row.data_ptr<int64_t>()[i])]]];
                     own.sum += loss.data_ptr<double>()[i];
                     ++own.tokens;
                   }
                 });
  return losses;
}

RowStates states_of_rows(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                         ProbedTokens tokens) {
  const auto setting = labelled_setting(network.model_config(), objectives);
  const bool of_labels = tokens == ProbedTokens::labelled;
  const bool is_padded = !reads_texts(setting.use) && !of_labels;
  RowStates row_states{.begins = {0}};
  for (const auto& row : rows)
    row_states.begins.push_back(row_states.begins.back() + count_states(*setting.kind, row, tokens));
  const auto compute = [&](const Batch& batch) {
    const auto states = probes_of(network)->states(*network.backbone, batch);
    return states.dim() == 4 ? states.flatten(1, 2) : states;  // of all tokens
  };
  for_each_batch(
      network, setting, rows, of_labels, tokens_of_batch, compute,
      [&](const Tensor& states, const Batch& batch, std::span<const size_t> numbers) {
        auto& all = row_states.states;
        if (!all.defined())
          all = at::empty({states.size(0), row_states.begins.back(), states.size(2)}, states.options());
        std::vector<int64_t> from, to;
        int64_t before = 0;
        for (size_t i = 0; i < numbers.size(); ++i) {
          const auto begin = row_states.begins[numbers[i]], count = row_states.begins[numbers[i] + 1] - begin;
          const auto first = is_padded ? static_cast<int64_t>(i) * batch.input_ids.size(1) : before;
          for (int64_t k = 0; k < count; ++k) {
            from.push_back(first + k);
            to.push_back(begin + k);
          }
          before += count;
        }
        all.index_copy_(1, to_tensor(to).to(all.device()), states.index_select(1, to_tensor(from).to(all.device())));
      });
  return row_states;
}

double bytes_of_states(const Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                       ProbedTokens tokens) {
  const auto& kind = *labelled_setting(network.model_config(), objectives).kind;
  double states = 0;
  for (const auto& row : rows) states += static_cast<double>(count_states(kind, row, tokens));
  return states * static_cast<double>(bytes_of_state(network));
}

std::vector<TaskOutputs> run_probes(Network& network, const Objectives& objectives, const std::vector<TaskRow>& rows,
                                    const RowStates* kept) {
  const auto setting = labelled_setting(network.model_config(), objectives);
  std::vector<TaskOutputs> outputs(probes_of(network)->layers().size());
  if (kept) {
    add_outputs(network, setting.use, *kept, outputs);
    return outputs;
  }
  constexpr int64_t most_bytes = 256 << 20;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    int64_t bytes = 0;
    while (end < rows.size() && (end == begin || bytes < most_bytes))
      bytes += bytes_of_state(network) * count_states(*setting.kind, rows[end++], ProbedTokens::all);
    const std::vector<TaskRow> some(rows.begin() + static_cast<int64_t>(begin),
                                    rows.begin() + static_cast<int64_t>(end));
    add_outputs(network, setting.use, states_of_rows(network, objectives, some, ProbedTokens::all), outputs);
  }
  return outputs;
}

}  // namespace cloze
