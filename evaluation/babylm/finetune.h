#pragma once
// The fine-tuning of the BabyLM Challenge: seven tasks, each as the published program trains and judges it, and beside
// it by our own rules.
// Source: babylm-org/babylm-eval, strict/scripts/eval_finetuning.sh and strict/evaluation_pipeline/finetune.
// Differs: random draws, and so the order of items, first weights and dropout.
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config_rule.h"
#include "core/report/table.h"

namespace cloze {

/// A task of the challenge: its files are TASK.train.jsonl and TASK.valid.jsonl.
struct BabylmGlueTask {
  const char* name;
  const char *text, *second;  ///< columns or templates
  int labels;                 ///< 0, 1, ... in its files
  const char* metric;         ///< that chooses the epoch
};
inline constexpr std::array babylm_finetuned{
    BabylmGlueTask{"boolq", "question", "passage", 2, "accuracy"},
    BabylmGlueTask{"multirc", "Question: {question} Answer: {answer}", "paragraph", 2, "accuracy"},
    BabylmGlueTask{"rte", "sentence1", "sentence2", 2, "accuracy"},
    BabylmGlueTask{"wsc", "Does \"{span2_text}\" refer to \"{span1_text}\" in this passage?", "text", 2, "accuracy"},
    BabylmGlueTask{"mrpc", "sentence1", "sentence2", 2, "f1"},
    BabylmGlueTask{"qqp", "question1", "question2", 2, "f1"},
    BabylmGlueTask{"mnli", "premise", "hypothesis", 3, "accuracy"}};

/// The task file of a task whose files are in `data`, an absolute path.
std::string babylm_task_file(const BabylmGlueTask& task, const std::string& data);

/// Where the published program pads rows.
enum class PaddingSide { right, left };
constexpr auto choices(PaddingSide) {
  return std::array{Choice{PaddingSide::right, "right"},
                    Choice{PaddingSide::left, "left", "the first position of a shorter row is padding, and is read"}};
}

/// What is fine-tuned.
struct BabylmFinetuneRequest {
  std::string run;                  ///< pretrained, or a step folder of one
  std::string data;                 ///< folder of the files of the tasks, or that of the evaluation data above it
  std::string results = "results";  ///< folder of results (evaluation/babylm/results.h)
  std::string folder{};             ///< of the fine-tuned runs; empty: runs/MODEL-babylm
  PaddingSide padding = PaddingSide::right;  ///< of the published program
  int64_t seeds = 1;                         ///< fine-tunings of each task by our own rules
  std::vector<std::string> set{};            ///< overrides of all fine-tunings
};

/// Scores of the published valid part, in [0, 1]: accuracy, and of two labels f1 and mcc.
using BabylmScores = std::vector<std::pair<std::string, double>>;

/// A fine-tuned task.
struct BabylmFinetuned {
  std::string task;
  double majority = 0;              ///< accuracy of the most frequent label
  BabylmScores published{};         ///< as the published program has them
  bool is_constant = false;         ///< that predicts the same label everywhere
  std::vector<BabylmScores> own{};  ///< by our own rules, of each seed
};

struct BabylmFinetuning {
  std::string results;  ///< folder of the predictions that collate takes
  std::vector<BabylmFinetuned> tasks{};
  std::vector<std::string> notes{};  ///< a sentence each
};

/// Fine-tunes a run on the seven tasks, in child processes one after another, and writes predictions.json and
/// results.txt of each. What is finished stays, and what was killed goes on: the same command completes the work.
///
/// published   the recipe babylm-2026 with seed 42; the epoch is chosen on the items that it is judged on
/// own rules   the same, but that a tenth of the training part chooses the epoch, and the head reads the token that the
///             family's own head reads
///
/// Throws DataError for data without the files, ConfigError where the folder has runs of other data, of
/// another pretrained run or of other overrides, Error where a
/// fine-tuning fails.
BabylmFinetuning finetune_babylm(const BabylmFinetuneRequest& request);

/// Accuracies in percent, by task, with their means.
Table table_of(const BabylmFinetuning& finetuning);
/// {"results", "tasks": [{"task", "majority", "published", "constant", "own"}], "notes"}
nlohmann::json to_json(const BabylmFinetuning& finetuning);

}  // namespace cloze
