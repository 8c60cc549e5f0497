#pragma once
// Runs of a folder that several processes train together.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/distributed/ranks.h"
#include "tests/support/runs.h"
#include "tests/train/tasks/trained.h"

namespace cloze {

/// The runs of a folder, whose configs are DIR/NAME.yaml and whose folders DIR/NAME-SIZE.
inline std::vector<std::string> names_in(const std::string& dir) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir))
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem());
  std::ranges::sort(names);
  return names;
}

/// Trains these runs; those that are there are resumed.
inline void train_all(const std::string& dir, Communicator& processes) {
  for (const auto& name : names_in(dir)) {
    const auto run = concat(dir, "/", name, "-", processes.size());
    const bool goes_on = processes.broadcast_text(std::filesystem::exists(run) ? "goes on" : "begins") == "goes on";
    const auto config = decode<RunConfig>(ConfigTree::load(concat(dir, "/", name, ".yaml")));
    pretrain(config, {.run = run, .resume = goes_on}, parts_of_run(config), processes);
  }
}

[[maybe_unused]] inline const bool trains = [] {
  scenarios()["train"] = [](Communicator& processes) {
    const Quiet silent;
    train_all(setting("CLOZE_ARGUMENT"), processes);
    return std::string("trained");
  };
  return true;
}();

inline void train_by(int64_t size, const std::string& dir) {
  for (const auto& end : Ranks("train", size, {.timeout = 120, .argument = dir, .is_local = size % 2 == 0}).ends()) {
    CHECK(end.said == "trained");
    CHECK(end.code == 0);
  }
}

/// state.json of a checkpoint without times and lengths of files.
inline nlohmann::json state_in(const std::string& checkpoint) {
  auto state = nlohmann::json::parse(read_file(checkpoint + "/state.json"));
  for (const auto* key : {"seconds", "ledger", "metrics_bytes"}) state.erase(key);
  return state;
}

/// The files of a step that differ between two runs.
inline std::string differing_files(const std::string& run, const std::string& other, const std::string& step) {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator(run + "/" + step)) {
    const auto name = entry.path().filename().string();
    if (!name.ends_with(".safetensors")) continue;
    if (!same_files(entry.path(), other + "/" + step + "/" + name)) found += name + " ";
  }
  if (state_in(run + "/" + step) != state_in(other + "/" + step)) found += "state.json ";
  return found;
}

inline void write_config(const RunConfig& config, const std::string& dir, const std::string& name) {
  std::ofstream(concat(dir, "/", name, ".yaml")) << to_yaml(config);
}

/// Trains the runs of a folder by one process, and by `sizes`: all of them have the same bytes at their last step.
inline void check_processes(const std::string& dir, const std::vector<int64_t>& sizes, const std::string& step) {
  train_all(dir, alone());
  for (const auto size : sizes) {
    train_by(size, dir);
    for (const auto& name : names_in(dir)) {
      INFO(name << " on " << size);
      const auto run = concat(dir, "/", name, "-1"), other = concat(dir, "/", name, "-", size);
      CHECK(differing_files(run, other, step) == "");
      CHECK(metrics(run) == metrics(other));
    }
  }
}

}  // namespace cloze
