#pragma once
// Pairs of runs: killed, resumed, compared bit by bit.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/log.h"
#include "core/process.h"
#include "run/config/load_config.h"
#include "tests/support/catch.h"
#include "tests/support/processes.h"
#include "tests/support/tiny.h"
#include "train/pretrain.h"

namespace cloze {

struct Quiet {
  Quiet() { set_log_level(LogLevel::quiet); }
  ~Quiet() { set_log_level(LogLevel::normal), set_log_file(""); }
};
inline const Quiet quiet;

/// metrics.jsonl without the fields that differ between equal runs.
inline std::vector<nlohmann::json> metrics(const std::string& run) {
  std::vector<nlohmann::json> rows;
  std::ifstream in(run + "/metrics.jsonl");
  for (std::string line; std::getline(in, line);) {
    rows.push_back(nlohmann::json::parse(line));
    rows.back().erase("time");
  }
  return rows;
}

inline bool same_files(const std::string& a, const std::string& b) { return read_file(a) == read_file(b); }

/// The held-out loss with this name.
inline const HeldOut& loss_named(const std::vector<HeldOut>& losses, const std::string& name) {
  for (const auto& one : losses)
    if (one.name == name) return one;
  FAIL("no loss is called " << name);
  return losses.front();
}

/// Trains in a child process, so that it can be killed; its config is RUN.yaml.
inline pid_t train_in_child(const PretrainOptions& options) {
  const pid_t child = fork_with_default_signals();
  if (child == 0) {
    execl(BINARY_DIR "/cloze", "cloze", "--quiet", "pretrain", (options.run + ".yaml").c_str(), "--run",
          options.run.c_str(), options.resume ? "--resume" : nullptr, nullptr);
    _exit(127);
  }
  return child;
}

/// Trains run a without interruption, and run b killed after checkpoint `kill_after` and resumed; both must end with
/// the same metrics and files.
inline void check_killed_run(const RunConfig& config, const TempDir& dir, const std::string& kill_after,
                             const std::string& last, const std::vector<std::string>& files) {
  std::ofstream(dir / "a.yaml") << to_yaml(config);
  std::ofstream(dir / "b.yaml") << to_yaml(config);
  REQUIRE(wait_for(train_in_child({.run = dir / "a"})) == 0);
  const auto killed = train_in_child({.run = dir / "b"});
  CHECK(wait_until([&] { return std::filesystem::exists(dir / ("b/" + kill_after)); }));
  kill(killed, SIGKILL);
  REQUIRE(wait_for(killed) == 128 + SIGKILL);
  REQUIRE(wait_for(train_in_child({.run = dir / "b", .resume = true})) == 0);
  CHECK(metrics(dir / "a") == metrics(dir / "b"));
  for (const auto& file : files) CHECK(same_files(dir / ("a/" + last + "/" + file), dir / ("b/" + last + "/" + file)));
}

}  // namespace cloze
