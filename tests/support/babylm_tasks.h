#pragma once
// The seven tasks of the BabyLM Challenge in a few made-up items.
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temp_dir.h"

/// An item of a task, whose texts begin alike and tell its label at their end.
inline nlohmann::json babylm_item(const std::string& task, int number) {
  const int label = task == "mnli" ? number % 3 : number % 2;
  const std::string ends[] = {"sat.", "slept.", "woke."};
  const auto first = "The cat number " + std::to_string(number % 7) + " " + ends[label],
             second = "The mat " + ends[label];
  nlohmann::json item{{"idx", number}, {"label", label}};
  if (task == "boolq")
    item.update({{"question", first}, {"passage", second}});
  else if (task == "multirc")
    item.update({{"paragraph", second}, {"question", first}, {"answer", ends[label]}});
  else if (task == "wsc")
    item.update({{"text", second}, {"span1_text", first}, {"span2_text", "it"}});
  else if (task == "qqp")
    item.update({{"question1", first}, {"question2", second}});
  else if (task == "mnli")
    item.update({{"premise", first}, {"hypothesis", second}});
  else
    item.update({{"sentence1", first}, {"sentence2", second}});
  return item;
}

/// Writes both files of every task into a folder: `items` to train on, and 10 that are judged.
inline void write_babylm_tasks(const TempDir& dir, const std::string& folder, int items) {
  for (const std::string task : {"boolq", "multirc", "rte", "wsc", "mrpc", "qqp", "mnli"}) {
    std::string train, valid;
    for (int i = 0; i < items; ++i) train += babylm_item(task, i).dump() + "\n";
    for (int i = 0; i < 10; ++i) valid += babylm_item(task, 3 * i + 1).dump() + "\n";
    dir.write(folder + "/" + task + ".train.jsonl", train);
    dir.write(folder + "/" + task + ".valid.jsonl", valid);
  }
}
