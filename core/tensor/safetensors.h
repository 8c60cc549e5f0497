#pragma once
// The safetensors format: a bounded, checked, memory-mapped reader and an atomic writer.
// Source: the format description of the safetensors project.
#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace cloze {

/// An open file. Tensors are views of the mapping, which lives as long as any of them.
class SafeTensors {
 public:
  /// Throws CheckpointError with the path and the defect: a header that is too long or not JSON, a duplicate key,
  /// an unknown dtype, offsets that overlap, leave holes, pass the end or do not fit the shape.
  static SafeTensors open(const std::string& path);
  std::vector<std::string> names() const;
  bool contains(const std::string& name) const;
  /// A view of the mapping; writing to it is an error. Throws CheckpointError if absent, with the most similar name.
  at::Tensor get(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;

 private:
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// Writes `path` atomically (temporary file, fsync, rename). Tensors are made contiguous on the CPU as they are
/// written. Order in the file: descending alignment of the dtype, then name, as in the reference implementation.
/// `metadata` gets `format: pt` unless it has one. Throws CheckpointError with the system's reason (a full disk, a
/// read-only folder).
void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      std::map<std::string, std::string> metadata = {});

}  // namespace cloze
