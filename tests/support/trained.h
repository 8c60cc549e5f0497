#pragma once
// A trained run, shared by several test files.
#include "core/log.h"
#include "tests/support/tiny.h"
#include "train/pretrain.h"

/// A run of 250 steps on the synthetic language, trained once for all cases.
inline const std::string& trained() {
  static TempDir dir;
  static const std::string run = [] {
    cloze::set_log_level(cloze::LogLevel::quiet);
    cloze::pretrain(tiny_run(dir, 250), {.run = dir / "run"});
    cloze::set_log_file("");
    return dir / "run";
  }();
  return run;
}
