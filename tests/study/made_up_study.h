#pragma once
// Studies of several stages (tuning, halving, probes, single streams), whose runs are made up by fake_cloze.
#include <string>
#include <vector>

#include "core/log.h"
#include "run/config/load_config.h"
#include "study/report/report.h"
#include "study/search/stages.h"
#include "tests/study/study_files.h"
#include "tests/support/temp_dir.h"

namespace cloze {

/// A study of several stages, whose runs are made up by fake_cloze.
struct Study {
  explicit Study(const std::string& yaml) {
    set_log_level(LogLevel::quiet);
    folder.write("base.yaml", std::string(small_run_yaml) + "optimizer: {weight_decay: 0.03}\n");
    write(yaml);
  }
  void write(const std::string& yaml) const { folder.write("study.yaml", "study: s\nbase: base.yaml\n" + yaml); }
  Stages stages() const { return make_stages(folder / "study.yaml", folder / "out"); }
  StudyProgress run(std::vector<std::string> only = {}, StaleRuns stale = StaleRuns::refuse) const {
    return run_stages(folder / "study.yaml", folder / "out",
                      {.program = BINARY_DIR "/fake_cloze", .jobs = 2, .only = only, .stale = stale});
  }
  StudyReport report() const { return make_report(stages()); }
  std::string error() const {
    return error_of([&] { stages(); });
  }
  std::string starts(const std::string& run) const { return read_file(folder / ("out/" + run + "/starts")); }
  TempDir folder;
};

/// The notes of a report, one a line.
inline std::string notes_of(const StudyReport& report) {
  std::string text;
  for (const auto& note : report.notes) text += note + "\n";
  return text;
}

inline const std::string two_arms = "arms: {a: {}, b: {train.batch_size: 8}}\n";

/// A config of a run, as it was written for its process.
inline RunConfig config_of(const Study& study, const std::string& run) {
  return decode<RunConfig>(ConfigTree::load(study.folder / ("out/" + run + ".yaml")));
}

}  // namespace cloze
