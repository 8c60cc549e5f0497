#pragma once
// Averages of collections of tasks.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config_rule.h"

namespace cloze {

enum class Benchmark { glue, superglue };
constexpr auto choices(Benchmark) {
  using enum Benchmark;
  return std::array{Choice{glue, "glue", "CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE, WNLI"},
                    Choice{superglue, "superglue", "BoolQ, CB, COPA, MultiRC, ReCoRD, RTE, WiC, WSC"}};
}

/// A value of a metric of a task, named as in configs/tasks: `cola` and `mcc`, `superglue-rte` and `accuracy`; MNLI's
/// parts are `mnli` and `mnli-mm`.
struct TaskValue {
  std::string task{}, metric{};
  double value = 0;
};

struct BenchmarkAverage {
  std::optional<double> value{};       ///< none where no task is there
  int64_t tasks = 0;                   ///< that it is of
  std::vector<std::string> missing{};  ///< scores without which it was computed: `mrpc f1`
};

/// Whether scores of a task enter the average.
bool is_task_of(Benchmark benchmark, const std::string& task);

/// The mean over tasks, each of the mean over its runs; of these one with two metrics counts by their mean, and MNLI by
/// the mean of its two parts. A task of which a metric is missing is left out. Source: Wang et al. 2019 (arXiv
/// 1804.07461), section 4.2; Wang et al. 2019 (arXiv 1905.00537), section 3.1.
BenchmarkAverage average_of(Benchmark benchmark, const std::vector<TaskValue>& values);

}  // namespace cloze
