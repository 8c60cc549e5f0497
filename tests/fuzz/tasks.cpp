// Tasks: their files, and data of every form.
#include "tasks/task.h"

#include "tests/fuzz/targets.h"

namespace cloze {

bool fuzz_task_file(std::string_view bytes) {
  const auto file = scratch().write("task/task.yaml", std::string(bytes));
  return accepts([&] { read_task_config(file); });
}

bool fuzz_task_data(std::string_view bytes) {
  static const std::vector<std::pair<std::string, std::string>> tasks{
      {"classification", "format: tsv, text: 0, label: -1"},
      {"classification", "format: csv, text: \"{text}!\", label: label"},
      {"classification", "format: jsonl, each: a.b, text: a.b.text, label: a.b.label, group: \"{c}\""},
      {"classification", "format: trec, label: fine"},
      {"multilabel", "format: jsonl, text: text, label: labels"},
      {"regression", "format: tsv, text: text, label: label"},
      {"choice", "format: jsonl, text: text, candidates: labels, label: label"},
      {"tagging", "format: conll, scheme: bioes"},
      {"tagging", "format: conllu"},
      {"tagging", "format: jsonl, text: words, label: tags"},
      {"spans", "format: squad"},
      {"spans", "format: jsonl, text: text, second: context, answers: answers"}};
  scratch().write("task/data.txt", std::string(bytes));
  bool any = false;
  for (const auto& [kind, columns] : tasks) {
    const auto file = scratch().write(
        "task/open.yaml", "task: t\nkind: " + kind + "\ndata: {train: data.txt, test: data.txt, " + columns + "}\n");
    any = accepts([&] { open_task(file, {.skip_bad = true}); }) || any;
  }
  return any;
}

}  // namespace cloze
