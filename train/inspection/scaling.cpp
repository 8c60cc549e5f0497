#include "train/inspection/scaling.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/text.h"
#include "run/config/load_config.h"

namespace cloze {

namespace {

constexpr double flops_per_second = 400e12;
constexpr double within_host = 450e9, between_hosts = 50e9;  ///< [bytes/s]
constexpr double message = 10e-6;                            ///< [s]
constexpr double small_exchanges = 8;  ///< of a step: order, facts, losses, norms, with their lengths

}  // namespace

RunConfig config_on(const Cluster& cluster, RunConfig config) {
  require<ConfigError>(cluster.hosts <= cluster.processes && cluster.processes % cluster.hosts == 0, "--processes ",
                       cluster.processes, " do not fill --hosts ", cluster.hosts, " evenly; give a multiple");
  config.train.parts = std::max(config.train.parts, cluster.processes);
  validate(config);
  return config_of_phase(config, 0);
}

Scaling scaling_of(const RunConfig& config, const Description& d, const Cluster& cluster) {
  const auto processes = static_cast<double>(cluster.processes), hosts = static_cast<double>(cluster.hosts);
  const double numbers = 4 * static_cast<double>(d.parameters);  // bytes of weights, or of gradients
  const double others = (processes - processes / hosts) / processes, own = (processes / hosts - 1) / processes;
  const double way = std::max(numbers * others / between_hosts, numbers * own / within_host);
  Scaling s{.cluster = cluster};
  s.sequences = static_cast<double>(config.train.batch_size * config.train.accumulation) / processes;
  s.moments = d.optimizer_bytes / processes;
  s.bytes = d.weight_bytes + d.gradient_bytes + d.shadow_bytes + d.activation_bytes + s.moments;
  s.sent = 2 * numbers * (processes - 1) / processes;
  s.passes = d.flops_per_step / processes / flops_per_second;
  s.exchange = 2 * way + small_exchanges * std::ceil(std::log2(processes)) * message;
  return s;
}

std::string to_text(const Scaling& s) {
  const auto milliseconds = [](double seconds) { return significant(1000 * seconds, 3) + " ms"; };
  constexpr int64_t columns = 100;
  constexpr size_t indent = 11;
  const auto processes =
      concat(thousands(static_cast<uint64_t>(s.cluster.processes)), " on ",
             counted(static_cast<uint64_t>(s.cluster.hosts), "host"), ", each with ", significant(s.sequences, 3),
             s.sequences == 1 ? " sequence" : " sequences", " of a step and ", bytes(s.bytes), " of memory, ",
             bytes(s.moments), " of them moments");
  const auto step = concat("passes ", milliseconds(s.passes), " at 400 TFLOP/s, then ", bytes(s.sent), " from each in ",
                           milliseconds(s.exchange), " at 450 GB/s within a host and 50 GB/s between hosts: ",
                           significant(100 * s.passes / (s.passes + s.exchange), 3),
                           " % of it computes (worked out, not measured: docs/scaling.md)");
  return wrapped("processes  ", processes, columns, indent) + wrapped("step       ", step, columns, indent);
}

nlohmann::json to_json(const Scaling& s) {
  return {{"processes", s.cluster.processes},
          {"hosts", s.cluster.hosts},
          {"sequences", s.sequences},
          {"memory_bytes", s.bytes},
          {"moments_bytes", s.moments},
          {"sent_bytes", s.sent},
          {"passes_seconds", s.passes},
          {"exchange_seconds", s.exchange},
          {"compute_share", s.passes / (s.passes + s.exchange)}};
}

}  // namespace cloze
