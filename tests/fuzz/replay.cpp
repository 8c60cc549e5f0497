// Replays the seeds of the fuzz drivers of a program, each as it is and with damage that a seed number decides.
//
//   fuzz_replay [--mutations N] [--seed S] [TARGET [FILE...]]
//
// A seed whose name begins with `good` must be accepted, one whose name begins with `bad` refused with an Error. What
// the parser was given last lies in fuzz-input, so that a crash can be repeated: fuzz_replay TARGET fuzz-input
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/file.h"
#include "core/log.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"

using namespace cloze;

namespace {

namespace fs = std::filesystem;

struct Options {
  uint64_t mutations = 0, seed = 1;
  std::string target{};
  std::vector<std::string> files{};
};

/// Seeds in the order of their names.
std::vector<std::string> seeds_of(const FuzzTarget& target) {
  std::vector<std::string> files;
  for (const auto& more : target.more_seeds) files.push_back(SOURCE_DIR "/tests/" + more);
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(SOURCE_DIR "/tests/fuzz/corpus/" + target.name, none))
    files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

/// Counts what is wrong.
struct Replay {
  Options options;
  uint64_t inputs = 0, faults = 0;

  void fault(const FuzzTarget& target, const std::string& file, const std::string& what) {
    ++faults;
    std::cout << target.name << " " << file << ": " << what << std::endl;
  }

  /// Whether the parser accepts the bytes.
  bool give(const FuzzTarget& target, const std::string& file, const std::string& bytes) {
    ++inputs;
    std::ofstream("fuzz-input", std::ios::binary) << bytes;
    try {
      return target.accepts(bytes);
    } catch (const std::exception& e) {
      const auto kept = concat("fuzz-", target.name, "-", faults);
      std::ofstream(kept, std::ios::binary) << bytes;
      fault(target, file, concat(e.what(), " (the bytes are in ", kept, ")"));
      return false;
    }
  }

  void replay(const FuzzTarget& target, const std::string& file) {
    const auto bytes = read_text(file);
    const auto name = fs::path(file).filename().string();
    std::cout << target.name << " " << name << std::endl;
    const bool accepted = give(target, file, bytes);
    if (name.starts_with("good") && !accepted) fault(target, file, "is refused");
    if (name.starts_with("bad") && accepted) fault(target, file, "is accepted");
    auto random = Stream(options.seed, name_hash(target.name), name_hash(name));
    for (uint64_t i = 0; i < options.mutations; ++i) give(target, file, mutated(bytes, random));
  }
};

Options options_of(int count, char** words_of) {
  Options options;
  std::vector<std::string> rest;
  for (int i = 1; i < count; ++i) {
    const std::string word = words_of[i];
    if (word == "--mutations" && i + 1 < count)
      options.mutations = std::stoull(words_of[++i]);
    else if (word == "--seed" && i + 1 < count)
      options.seed = std::stoull(words_of[++i]);
    else
      rest.push_back(word);
  }
  if (!rest.empty()) {
    options.target = rest[0];
    options.files.assign(rest.begin() + 1, rest.end());
  }
  return options;
}

}  // namespace

int main(int count, char** arguments) {
  stderr = std::fopen("/dev/null", "w");  // the log; reports of sanitizers go to the descriptor
  Replay replay{.options = options_of(count, arguments)};
  bool known = false;
  for (const auto& target : fuzz_targets()) {
    if (!replay.options.target.empty() && replay.options.target != target.name) continue;
    known = true;
    const auto files = replay.options.files.empty() ? seeds_of(target) : replay.options.files;
    if (files.empty()) replay.fault(target, "", "has no seeds");
    for (const auto& file : files) replay.replay(target, file);
  }
  if (!known) std::cout << "no driver is called " << replay.options.target << std::endl;
  std::cout << replay.inputs << " inputs, " << replay.faults << " faults" << std::endl;
  return known && replay.faults == 0 ? 0 : 1;
}
