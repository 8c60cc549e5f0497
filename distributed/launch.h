#pragma once
// Several processes of this program on this machine. Without LibTorch.
#include <cstdint>
#include <string>
#include <vector>

namespace cloze {

/// The cores that this process may use, so that near ones stand beside each other: by NUMA domain, then by core, whose
/// threads follow each other. `system`: where the kernel describes them.
std::vector<int> usable_cores_in_order(const std::string& system = "/sys/devices/system/cpu");

/// Lets this process run on the cores of part `index` of `count` parts alone, with all threads that it starts from now
/// on: consecutive ones of those that it may use, at least one.
void take_share_of_cores(int64_t index, int64_t count);

/// Starts a command so many times, each with its rank in the variables of torchrun and with its share of the cores, and
/// waits for their ends. SIGINT, SIGTERM and SIGHUP are passed on, each once; without this process they get SIGTERM.
/// When one fails, or the first one has ended, those that do not end in some seconds are killed.
///
/// Answers with the exit code of the first that failed, 4 for one that a signal ended; else 130 where one was
/// interrupted. Throws Error where the system starts no process.
int launch(int64_t processes, const std::vector<std::string>& command);

}  // namespace cloze
