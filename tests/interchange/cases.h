#pragma once
// The golden cases of tests/parity, as they are and with changes.
#include <filesystem>
#include <fstream>
#include <map>

#include "core/tensor/safetensors.h"
#include "interchange/interchange.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

/// Every row of this case passes.
inline void check_case(const std::string& folder) {
  const auto rows = cloze::verify_parity(folder);
  CHECK(rows.size() >
        (folder.find("t5-encoder") != std::string::npos ? 4 : 20));  // an encoder without decoder has no loss
  for (const auto& row : rows) {
    INFO(folder << " " << row.name << " error " << row.error << " " << row.note);
    CHECK(row.passed);
  }
}

/// A copy of a parity case whose weights have one more tensor, which differs from `like`.
inline std::string with_tensor(const TempDir& dir, const std::string& name, const std::string& tensor,
                               const std::string& like) {
  const auto folder = dir / (name + "-changed");
  std::filesystem::remove_all(folder);
  std::filesystem::copy(SOURCE_DIR "/tests/parity/" + name, folder);
  const auto stored = cloze::SafeTensors::open(folder + "/model.safetensors");
  std::vector<cloze::NamedTensor> tensors;
  for (const auto& key : stored.names()) tensors.push_back({key, stored.get(key).clone()});
  tensors.push_back({tensor, stored.get(like) + 1});
  cloze::save_safetensors(folder + "/model.safetensors", tensors);
  return folder;
}

/// A copy of a parity case, in `dir / "edited"`, with another text in one of its files.
inline std::string edited(const TempDir& dir, const std::string& name, const std::string& file, const std::string& from,
                          const std::string& to) {
  const auto folder = dir / "edited";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(SOURCE_DIR "/tests/parity/" + name, folder);
  auto text = read_file(folder + "/" + file);
  REQUIRE(text.find(from) != std::string::npos);
  std::ofstream(folder + "/" + file) << text.replace(text.find(from), from.size(), to);
  return folder;
}

/// Gives the file of a case these tensors; an undefined one is left out.
inline void set_tensors(const std::string& file, const std::map<std::string, at::Tensor>& tensors) {
  const auto stored = cloze::SafeTensors::open(file);
  std::vector<cloze::NamedTensor> all;
  for (const auto& name : stored.names())
    if (tensors.count(name) == 0) all.push_back({name, stored.get(name).clone()});
  for (const auto& [name, tensor] : tensors)
    if (tensor.defined()) all.push_back({name, tensor});
  cloze::save_safetensors(file, all);
}

/// A copy of a parity case, in `dir / "given"`, whose inputs are changed so.
inline std::string with_inputs(const TempDir& dir, const std::string& name,
                               const std::map<std::string, at::Tensor>& inputs) {
  const auto folder = dir / "given";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(SOURCE_DIR "/tests/parity/" + name, folder);
  set_tensors(folder + "/inputs.safetensors", inputs);
  return folder;
}

/// A tensor of the inputs or the expected tensors of a parity case.
inline at::Tensor input_of(const std::string& name, const std::string& tensor) {
  return cloze::SafeTensors::open(SOURCE_DIR "/tests/parity/" + name + "/inputs.safetensors").get(tensor).clone();
}
inline at::Tensor expected_of(const std::string& name, const std::string& tensor) {
  return cloze::SafeTensors::open(SOURCE_DIR "/tests/parity/" + name + "/expected.safetensors").get(tensor).clone();
}
