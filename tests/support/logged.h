#pragma once
// The log of a part of a test.
#include <filesystem>
#include <string>

#include "core/log.h"
#include "tests/support/temp_dir.h"

/// What is logged meanwhile.
template <class F>
std::string logged(const TempDir& dir, const F& f) {
  const auto path = dir / "log";
  std::filesystem::remove(path);
  cloze::set_log_file(path);
  f();
  cloze::set_log_file("");
  return read_file(path);
}
