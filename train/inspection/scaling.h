#pragma once
// What a step costs where many processes make it, worked out and not measured.
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/inspection/describe.h"

namespace cloze {

/// Processes, each with a processor of its own, on machines with as many each.
struct Cluster {
  int64_t processes = 1;
  int64_t hosts = 1;
};

/// The share of one process in a step, by the formulas of docs/scaling.md for GPUs of one kind: 400 TFLOP/s, two fifths
/// of the dense bf16 peak of an H200; 450 GB/s to those of the same host and 50 GB/s to others; 10 us a message.
struct Scaling {
  Cluster cluster{};
  double sequences = 0;  ///< of a step
  double bytes = 0;      ///< of memory
  double moments = 0;    ///< bytes of its slice, among them
  double sent = 0;       ///< bytes of gradients and weights
  double passes = 0;     ///< [s]
  double exchange = 0;   ///< [s]
};

/// The config in as many parts as the cluster has processes, or more where it has more. Throws ConfigError for a step
/// that does not divide, and for hosts that the processes do not fill evenly.
RunConfig config_on(const Cluster& cluster, RunConfig config);

/// `description` of `config`, which is that of config_on.
Scaling scaling_of(const RunConfig& config, const Description& description, const Cluster& cluster);

std::string to_text(const Scaling& scaling);
nlohmann::json to_json(const Scaling& scaling);

}  // namespace cloze
