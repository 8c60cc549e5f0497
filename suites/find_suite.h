#pragma once
// Suites by name.
#include <string>

namespace cloze {

/// The folder of suites that are called by name: $CLOZE_SUITES, else `suites`.
std::string suites_folder();

/// The file or folder of a suite: `name` itself if there is one, else the entry of suites_folder() of that name, with
/// or without endings such as `.jsonl.xz`. Throws ConfigError with the nearest name for a suite that is not there.
/// `option`: where it is named, for the message.
std::string find_suite(const std::string& name, const std::string& option = "--suite");

/// Whether a folder is laid out as BabyLM's evaluation data, which is no suite but holds many: it has `full_eval` or
/// `fast_eval`.
bool is_babylm_data(const std::string& folder);

}  // namespace cloze
