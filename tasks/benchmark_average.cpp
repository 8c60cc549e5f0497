#include "tasks/benchmark_average.h"

#include <algorithm>
#include <utility>

namespace cloze {

namespace {

/// The figures whose mean a task counts by.
struct BenchmarkTask {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> figures{};  ///< task and metric
};

std::vector<BenchmarkTask> tasks_in(Benchmark benchmark) {
  const auto by = [](const std::string& task, const std::vector<std::string>& metrics) {
    BenchmarkTask found{.name = task};
    for (const auto& metric : metrics) found.figures.emplace_back(task, metric);
    return found;
  };
  if (benchmark == Benchmark::superglue)
    return {by("boolq", {"accuracy"}),
            by("cb", {"f1_macro", "accuracy"}),
            by("copa", {"accuracy"}),
            by("multirc", {"f1a", "exact_match"}),
            by("record", {"f1", "exact_match"}),
            by("rte", {"accuracy"}),
            by("wic", {"accuracy"}),
            by("wsc", {"accuracy"})};
  return {by("cola", {"mcc"}),
          by("sst2", {"accuracy"}),
          by("mrpc", {"f1", "accuracy"}),
          by("stsb", {"pearson", "spearman"}),
          by("qqp", {"f1", "accuracy"}),
          {"mnli", {{"mnli-m", "accuracy"}, {"mnli-mm", "accuracy"}}},
          by("qnli", {"accuracy"}),
          by("rte", {"accuracy"}),
          by("wnli", {"accuracy"})};
}

}  // namespace

BenchmarkAverage average_of(Benchmark benchmark, const std::vector<TaskValue>& values) {
  BenchmarkAverage average;
  double sum = 0;
  int64_t tasks = 0;
  for (const auto& task : tasks_in(benchmark)) {
    double of_task = 0;
    bool is_whole = true;
    for (const auto& [name, metric] : task.figures) {
      const auto at = std::ranges::find_if(values, [&](const auto& v) { return v.task == name && v.metric == metric; });
      if (at == values.end()) {
        is_whole = false;
        average.missing.push_back(name + " " + metric);
      } else {
        of_task += at->value / static_cast<double>(task.figures.size());
      }
    }
    if (!is_whole) continue;
    sum += of_task;
    ++tasks;
  }
  if (tasks > 0) average.value = sum / static_cast<double>(tasks);
  return average;
}

}  // namespace cloze
