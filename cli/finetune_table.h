#pragma once
// Several fine-tunings of one command, and the table that they end in.
#include <string>
#include <vector>

#include "study/task_plan.h"

namespace cloze {

/// Which fine-tunings a table is of.
struct FinetuneTable {
  std::vector<std::string> runs{};  ///< pretrained
  FinetuningTerms terms{};
  std::string out{};  ///< folder of the tables and of the runs
  int64_t jobs = 0;   ///< concurrent fine-tunings; 0: one per core
  bool json = false;  ///< print the tables as one line of JSON
};

/// Fine-tunes every run on every task with every seed, as far as that is not done yet, prints the tables, and writes
/// them to table.md, .csv, .tex and .json. Returns the exit code: 1 where a fine-tuning failed. Throws ConfigError as
/// task_plan, for overrides of the seed, and for runs that were made by another plan.
int finetune_table(const FinetuneTable& asked, const std::string& program);

}  // namespace cloze
