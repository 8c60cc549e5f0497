#include "distributed/meeting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace cloze {

namespace {

/// The variables by which a launcher tells a process which one it is.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* local_rank;
  const char* local_size;  ///< null: it has none
};

// Source: torch/distributed/elastic/agent; srun(1), OUTPUT ENVIRONMENT VARIABLES; mpirun(1), ENVIRONMENT. Slurm sets
// PROCID and LOCALID in a batch script, too, where no step has begun.
constexpr std::array launchers{Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                               Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                               Launcher{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr}};

int64_t number_in(const Variable& variable, const std::string& name, int64_t least) {
  const auto text = variable(name).value_or("");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require<ConfigError>(error == std::errc() && end == text.data() + text.size() && number >= least, name, " is '", text,
                       "', which is no whole number from ", least, " on; unset it, or start the run by a launcher");
  return number;
}

/// The number at the beginning of a text, or 0.
int64_t leading_number(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// How many tasks srun has on this machine: `4(x2),3` are those of the machines in their order.
int64_t tasks_here(const Variable& variable) {
  const auto of_nodes = variable("SLURM_STEP_TASKS_PER_NODE").value_or("");
  int64_t node = leading_number(variable("SLURM_NODEID").value_or("0"));
  for (std::string_view rest = of_nodes; !rest.empty();) {
    const auto part = rest.substr(0, rest.find(','));
    const auto times = part.find("(x");
    node -= times == part.npos ? 1 : leading_number(part.substr(times + 2));
    if (node < 0) return leading_number(part);
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  }
  return 1;
}

std::optional<Meeting> meeting_of(const Launcher& launcher, const Variable& variable) {
  std::vector<std::string> present, missing;
  for (const auto* name : {launcher.rank, launcher.size, launcher.local_rank, launcher.local_size})
    if (name != nullptr) (variable(name) ? present : missing).emplace_back(name);
  const bool is_slurm = launcher.local_size == nullptr;
  if (present.empty() || (is_slurm && !variable(launcher.size))) return std::nullopt;
  require<ConfigError>(missing.empty(), present[0], " is set as by ", launcher.name, ", and ", listed(missing),
                       missing.size() == 1 ? " is" : " are", " not; start the run by ", launcher.name, ", or unset it");
  Meeting meeting{.rank = number_in(variable, launcher.rank, 0),
                  .size = number_in(variable, launcher.size, 1),
                  .local_rank = number_in(variable, launcher.local_rank, 0),
                  .launcher = launcher.name};
  require<ConfigError>(meeting.rank < meeting.size, launcher.rank, " is ", meeting.rank, ", and ", launcher.size, " ",
                       meeting.size, "; ranks are numbered from 0");
  meeting.local_size =
      launcher.local_size != nullptr ? number_in(variable, launcher.local_size, 1) : tasks_here(variable);
  require<ConfigError>(meeting.local_rank < meeting.local_size && meeting.local_size <= meeting.size,
                       launcher.local_rank, " is ", meeting.local_rank, " of ", meeting.local_size,
                       " processes of this machine, and all are ", meeting.size, "; start the run by ", launcher.name);
  return meeting;
}

void set_port(Meeting& meeting, const std::string& text, const std::string& named) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), meeting.port);
  require<ConfigError>(
      error == std::errc() && end == text.data() + text.size() && meeting.port > 0 && meeting.port < 65536, named,
      ": '", text, "' is no port; give one from 1 to 65535");
}

bool is_ours(const Variable& variable) { return variable(own_launcher).has_value(); }

/// What the launcher says besides ranks.
void set_launch(Meeting& meeting, const Variable& variable) {
  if (is_ours(variable)) {
    meeting.launcher = "--processes";
    meeting.listener = meeting.rank == 0 ? static_cast<int>(number_in(variable, own_launcher, 0)) : -1;
    return;
  }
  if (meeting.launcher == "torchrun") {
    meeting.id = variable("TORCHELASTIC_RUN_ID").value_or("");
    meeting.restarts = leading_number(variable("TORCHELASTIC_RESTART_COUNT").value_or("0"));
    meeting.has_store = variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  } else if (meeting.launcher == "srun") {
    meeting.id = concat(variable("SLURM_JOB_ID").value_or(""), ".", variable("SLURM_STEP_ID").value_or(""));
  } else {
    meeting.id = variable("PMIX_NAMESPACE").value_or("");
  }
}

/// Where all meet: as the option says, by torchrun's variables, or on this machine.
void set_place(Meeting& meeting, const Variable& variable, const std::string& rendezvous) {
  meeting.interface_name = variable("GLOO_SOCKET_IFNAME").value_or("");
  if (!rendezvous.empty()) {
    const auto colon = rendezvous.rfind(':');
    meeting.host = rendezvous.substr(0, colon);
    if (colon != rendezvous.npos) set_port(meeting, rendezvous.substr(colon + 1), "--rendezvous " + rendezvous);
  } else {
    meeting.host = variable("MASTER_ADDR").value_or(meeting.is_local() ? "127.0.0.1" : "");
    if (const auto port = variable("MASTER_PORT")) set_port(meeting, *port, "MASTER_PORT");
  }
  require<ConfigError>(!meeting.host.empty(), "nothing says on which machine rank 0 is; ",
                       meeting.launcher == "srun"
                           ? "put `export MASTER_ADDR=$(scontrol show hostnames | head -1)` before srun"
                           : "name it with --rendezvous HOST:PORT",
                       ", which all ranks must reach");
}

}  // namespace

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<Meeting> launched_rank(const Variable& variable) {
  std::optional<Meeting> chosen;
  for (const auto& launcher : launchers) {
    const auto meeting = meeting_of(launcher, variable);
    if (!meeting) continue;
    if (!chosen) {
      chosen = meeting;
      if (is_ours(variable)) break;
      continue;
    }
    // torchrun and mpirun are themselves started by others, once a machine.
    const bool is_started_by =
        chosen->launcher == "torchrun" ? variable("TORCHELASTIC_RUN_ID").has_value() : meeting->local_size == 1;
    const bool agrees = is_started_by || (chosen->rank == meeting->rank && chosen->size == meeting->size);
    require<ConfigError>(agrees, "the variables of ", chosen->launcher, " say rank ", chosen->rank, " of ",
                         chosen->size, ", those of ", launcher.name, " rank ", meeting->rank, " of ", meeting->size,
                         "; unset those of one of them");
  }
  if (!chosen || chosen->size == 1) return std::nullopt;
  set_launch(*chosen, variable);
  return chosen;
}

std::optional<Meeting> launched_meeting(const Variable& variable, const std::string& rendezvous) {
  auto meeting = launched_rank(variable);
  if (meeting) set_place(*meeting, variable, rendezvous);
  return meeting;
}

void forget_launcher() {
  for (const auto& launcher : launchers)
    for (const auto* name : {launcher.rank, launcher.size, launcher.local_rank, launcher.local_size})
      if (name != nullptr) unsetenv(name);
  unsetenv(own_launcher);
}

}  // namespace cloze
