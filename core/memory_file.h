#pragma once
// Files without a name.
#include <string>

namespace cloze {

/// A file in memory, which closes with its owner and with a program that a process becomes.
class MemoryFile {
 public:
  /// With a text that is read from its begin. Throws Error with the system's reason.
  explicit MemoryFile(const std::string& text = "");
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();
  int descriptor() const { return descriptor_; }
  /// All that it holds.
  std::string text() const;

 private:
  int descriptor_;
};

}  // namespace cloze
