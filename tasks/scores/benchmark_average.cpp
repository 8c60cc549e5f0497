#include "tasks/scores/benchmark_average.h"

#include <algorithm>
#include <utility>

namespace cloze {

namespace {

/// The scores whose mean a task counts by.
struct BenchmarkTask {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> scores{};  ///< task and metric
};

std::vector<BenchmarkTask> tasks_in(Benchmark benchmark) {
  const auto by = [](const std::string& task, const std::vector<std::string>& metrics) {
    BenchmarkTask benchmark_task{.name = task};
    for (const auto& metric : metrics) benchmark_task.scores.emplace_back(task, metric);
    return benchmark_task;
  };
  if (benchmark == Benchmark::superglue)
    return {by("boolq", {"accuracy"}),
            by("cb", {"f1_macro", "accuracy"}),
            by("copa", {"accuracy"}),
            by("multirc", {"f1a", "exact_match"}),
            by("record", {"f1", "exact_match"}),
            by("superglue-rte", {"accuracy"}),
            by("superglue-wic", {"accuracy"}),
            by("wsc", {"accuracy"})};
  return {by("cola", {"mcc"}),
          by("sst2", {"accuracy"}),
          by("mrpc", {"f1", "accuracy"}),
          by("stsb", {"pearson", "spearman"}),
          by("qqp", {"f1", "accuracy"}),
          {"mnli", {{"mnli", "accuracy"}, {"mnli-mm", "accuracy"}}},
          by("qnli", {"accuracy"}),
          by("rte", {"accuracy"}),
          by("wnli", {"accuracy"})};
}

}  // namespace

bool is_task_of(Benchmark benchmark, const std::string& task) {
  return std::ranges::any_of(tasks_in(benchmark), [&](const BenchmarkTask& one) {
    return std::ranges::any_of(one.scores, [&](const auto& score) { return score.first == task; });
  });
}

BenchmarkAverage average_of(Benchmark benchmark, const std::vector<TaskValue>& values) {
  BenchmarkAverage average;
  double sum = 0;
  for (const auto& task : tasks_in(benchmark)) {
    double of_task = 0;
    bool is_whole = true;
    for (const auto& [name, metric] : task.scores) {
      double of_runs = 0, runs = 0;
      for (const auto& value : values) {
        if (value.task != name || value.metric != metric) continue;
        of_runs += value.value;
        ++runs;
      }
      if (runs == 0) {
        is_whole = false;
        average.missing.push_back(name + " " + metric);
      } else {
        of_task += of_runs / runs / static_cast<double>(task.scores.size());
      }
    }
    if (!is_whole) continue;
    sum += of_task;
    ++average.tasks;
  }
  if (average.tasks > 0) average.value = sum / static_cast<double>(average.tasks);
  return average;
}

}  // namespace cloze
