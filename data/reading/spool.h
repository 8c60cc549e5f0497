#pragma once
// Copies of standard input and of pipes, which can be read only once.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace cloze {

struct Spooled {
  std::string path;  ///< of the copy
  uint64_t bytes = 0;
  std::string xxh3{};  ///< of its content
};

/// An input as messages name it.
inline std::string input_name(const std::string& input) { return input == "-" ? "standard input" : input; }

/// Throws DataError for a descriptor of a device, which is closed then unless it is standard input: a device has no
/// text and may have no end. A terminal has a user who ends it.
void require_stream(int in, const std::string& name);

/// False for standard input (`-`) and pipes.
bool can_be_read_again(const std::string& input);

/// Replaces inputs that can be read only once by copies in `folder`; returns the copies by the names of these inputs.
/// Throws ConfigError for one that is named twice, DataError for one that cannot be read, Interrupted.
std::map<std::string, Spooled> spool(std::span<std::vector<std::string>* const> inputs, const std::string& folder);

}  // namespace cloze
