#pragma once
// Adapters of the Python library peft: a folder with adapter_config.json and adapter_model.safetensors.
#include "interchange/interchange.h"

namespace cloze {

/// Writes what a run with adaptation.kind lora has trained, its head included, as `PeftModel.from_pretrained` loads it
/// beside the exported base. The file of tensors has the fingerprint of that base. Throws ConfigError for a run without
/// factors, for a layer that is no linear layer of transformers, and for an existing folder without `replace`.
void export_peft(const std::string& run, const std::string& out, bool replace = false);

/// Creates a run directory from such a folder, whose base is the run or checkpoint `base`. Throws ConfigError for
/// another kind of adapter, CheckpointError for one of another base, by its fingerprint where it has one, and by shape.
ImportReport import_peft(const std::string& folder, const std::string& base, const std::string& run);

}  // namespace cloze
