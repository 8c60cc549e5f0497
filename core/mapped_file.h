#pragma once
// Files and memory: those that are mapped and may shrink there, and those without a name.
#include <atomic>
#include <cstddef>
#include <string>

namespace cloze {

/// While one exists, a process that reads a part of a mapped file which is no longer there, because another process cut
/// it, ends with a sentence and the exit code of an Error; the system would end it without a word. A thread with a
/// `LostPartsAsZeros` reads on instead.
class GuardedMapping {
 public:
  /// `remedy`: what to do then.
  GuardedMapping(const void* base, size_t bytes, const std::string& path, const std::string& remedy);
  GuardedMapping(const GuardedMapping&) = delete;
  GuardedMapping& operator=(const GuardedMapping&) = delete;
  ~GuardedMapping();
  /// A thread has read zeros where the file was cut.
  bool has_lost_parts() const;

 private:
  std::string sentence_;
  size_t slot_ = 0;  ///< past the last one: there is none left
};

/// While one exists, its thread reads zeros where a guarded file was cut, so that it can leave its work in order. It
/// then asks `has_lost_parts`, and uses nothing that it has read if so.
class LostPartsAsZeros {
 public:
  LostPartsAsZeros();
  LostPartsAsZeros(const LostPartsAsZeros&) = delete;
  LostPartsAsZeros& operator=(const LostPartsAsZeros&) = delete;
  ~LostPartsAsZeros();
};

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
