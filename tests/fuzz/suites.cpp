// Suites of evaluation: JSON lines and tables of every kind, and the JSON of other programs.
#include "evaluation/suites/suite.h"

#include "evaluation/suites/python_json.h"
#include "tests/fuzz/targets.h"

namespace cloze {

bool fuzz_suite_lines(std::string_view bytes) {
  const auto file = scratch().write("suite/items.jsonl", std::string(bytes));
  scratch().write("suite/templates.jsonl", "{\"predicate_id\": \"R\", \"pattern\": \"[X] [Y]\"}\n");
  return accepts([&] {
    if (open_suite(file).name != "items") throw std::logic_error("another name");
  });
}

bool fuzz_suite_table(std::string_view bytes) {
  bool any = false;
  for (const std::string name : {"table.csv", "table.tsv", "table.txt", "table.json"}) {
    const auto file = scratch().write(name, std::string(bytes));
    any = accepts([&] { open_suite(file); }) || any;
  }
  return accepts([&] {
           const auto table = parse_csv(bytes, "table.csv");
           if (is_age_table(table)) child_ages(table);
         }) ||
         any;
}

bool fuzz_python_json(std::string_view bytes) {
  return accepts([&] {
    const auto text = python_json(parse_python_json(bytes, "made-up.json"), 2);
    if (python_json(parse_python_json(text, "again.json"), 2) != text) throw std::logic_error("another JSON");
  });
}

}  // namespace cloze
