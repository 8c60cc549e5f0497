#pragma once
// The test of an exported TorchScript file against its network, at other shapes than in tracing.
#include <map>

#include "core/tensor/safetensors.h"
#include "objectives/network.h"

namespace cloze {

/// A network, and what its exported file is tested on.
struct ExportTrial {
  Network& network;
  std::vector<Inputs> cases;
  bool generates;  ///< searches are tested too
  bool bf16;

  const BackboneConfig& model() const { return backbone_of(network.model_config()); }
};
ExportTrial make_trial(Network& network, bool bf16);

/// The inputs of all cases, as `run_torchscript` reads them.
std::vector<NamedTensor> stored_inputs(const ExportTrial& trial);
/// The shape of each case: `1x1`, `3x11`, ...
std::vector<std::string> case_shapes(const ExportTrial& trial);
/// The largest error of each output over all cases, and 0 for each search. Throws CheckpointError if one is beyond the
/// tolerance, and if the file generates other ids than the network.
std::map<std::string, double> errors_of(const ExportTrial& trial, const SafeTensors& results, double tolerance);

/// What the network computes of each case now, and the largest differences from that in the outputs of a file.
std::vector<NetworkOutputs> outputs_now(const ExportTrial& trial);
std::map<std::string, double> differences(const std::vector<NetworkOutputs>& outputs, const SafeTensors& results);

}  // namespace cloze
