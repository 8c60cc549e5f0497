// Weights and models from elsewhere.
#include <ATen/ATen.h>
#include <caffe2/serialize/inline_container.h>

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "core/tensor/safetensors.h"
#include "interchange/huggingface_config.h"
#include "interchange/huggingface_weights.h"
#include "tests/fuzz/targets.h"

namespace cloze {

bool fuzz_safetensors(std::string_view bytes) {
  const auto path = scratch().write("weights.safetensors", std::string(bytes));
  return accepts([&] {
    const auto file = SafeTensors::open(path);
    for (const auto& name : file.names()) file.get(name).clone();
  });
}

/// Opcodes in an archive that is whole, next to 64 bytes of values.
bool fuzz_pickle(std::string_view bytes) {
  const auto path = scratch() / "opcodes.bin";
  {
    caffe2::serialize::PyTorchStreamWriter archive(path);
    archive.writeRecord("data.pkl", bytes.data(), bytes.size());
    const std::string values(64, '\1');
    archive.writeRecord("data/0", values.data(), values.size());
    archive.writeEndOfFile();
  }
  return accepts([&] { read_torch_pickle(path); });
}

bool fuzz_torch_file(std::string_view bytes) {
  const auto path = scratch().write("torch.bin", std::string(bytes));
  return accepts([&] { read_torch_pickle(path); });
}

bool fuzz_huggingface_config(std::string_view bytes) {
  const auto config = parse_json(bytes);
  return config.is_object() && accepts([&] { read_model(config, scratch() / "huggingface/config.json"); });
}

}  // namespace cloze
