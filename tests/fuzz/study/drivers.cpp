// Study files, tables of results and run directories as a study reads them.
#include <nlohmann/json.hpp>

#include "core/fingerprint.h"
#include "core/json.h"
#include "study/execution/runs.h"
#include "study/plan/plan.h"
#include "study/report/fit_report.h"
#include "tests/fuzz/targets.h"

namespace cloze {

namespace {

bool fuzz_study(std::string_view bytes) {
  scratch().write("study/base.yaml", "model: {kind: bert}\ndata: {tokens: tokens}\n");
  const auto file = scratch().write("study/study.yaml", std::string(bytes));
  return accepts([&] {
    const auto study = read_study(file);
    seeds_of(study.seeds);
    arms_of(study);
  });
}

bool fuzz_table(std::string_view bytes) {
  const auto file = scratch().write("table.csv", std::string(bytes));
  return accepts([&] { read_points(file, {}); });
}

bool fuzz_curve(std::string_view bytes) {
  scratch().write("curve/metrics.jsonl", std::string(bytes));
  return accepts([] {
    const auto folder = scratch() / "curve";
    read_curve(folder, LossMetric{}, 10);
    read_log(folder);
  });
}

/// Its checksum is made to hold, so that the checks behind it are reached.
bool fuzz_held_out(std::string_view bytes) {
  auto content = parse_json(bytes);
  constexpr auto replace = nlohmann::json::error_handler_t::replace;
  std::string text(bytes);
  if (content.is_object() && content.contains("losses")) {
    content["xxh3"] = hash_hex(content["losses"].dump(-1, ' ', false, replace));
    text = content.dump(-1, ' ', false, replace);
  }
  scratch().write("held_out/held_out.json", text);
  return accepts([] { read_held_out(scratch() / "held_out", "train again"); });
}

bool fuzz_record(std::string_view bytes) {
  const auto file = scratch().write("record.json", std::string(bytes));
  return accepts([&] { read_record(file); });
}

}  // namespace

std::vector<FuzzTarget> fuzz_targets() {
  return {{"study", fuzz_study},
          {"table", fuzz_table},
          {"curve", fuzz_curve},
          {"held_out", fuzz_held_out},
          {"record", fuzz_record}};
}

}  // namespace cloze
