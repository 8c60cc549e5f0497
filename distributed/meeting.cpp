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

// Source: torch/distributed/elastic/agent; srun(1), OUTPUT ENVIRONMENT VARIABLES; mpirun(1), ENVIRONMENT.
constexpr std::array launchers{Launcher{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
                               Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                               Launcher{"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", nullptr}};

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
  const auto of_nodes = variable("SLURM_STEP_TASKS_PER_NODE").value_or(variable("SLURM_TASKS_PER_NODE").value_or(""));
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
  std::vector<std::string> given, missing;
  for (const auto* name : {launcher.rank, launcher.size, launcher.local_rank, launcher.local_size})
    if (name != nullptr) (variable(name) ? given : missing).emplace_back(name);
  if (given.empty()) return std::nullopt;
  // Slurm sets its variables in a batch script, too, where LOCALID is one of a single task.
  require<ConfigError>(missing.empty(), given[0], " is set as by ", launcher.name, ", and ", listed(missing),
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

/// Where all meet: as the option says, by torchrun's variables, or on this machine.
void set_place(Meeting& meeting, const Variable& variable, const std::string& rendezvous) {
  meeting.interface_name = variable("GLOO_SOCKET_IFNAME").value_or("");
  if (!rendezvous.empty()) {
    const auto colon = rendezvous.rfind(':');
    meeting.host = rendezvous.substr(0, colon);
    if (colon != rendezvous.npos) set_port(meeting, rendezvous.substr(colon + 1), "--rendezvous " + rendezvous);
  } else {
    meeting.host = variable("MASTER_ADDR").value_or(meeting.local_size == meeting.size ? "127.0.0.1" : "");
    if (const auto port = variable("MASTER_PORT")) set_port(meeting, *port, "MASTER_PORT");
  }
  const bool by_slurm = meeting.launcher == std::string("srun");
  require<ConfigError>(!meeting.host.empty(), "nothing says on which machine rank 0 is; ",
                       by_slurm ? "put `export MASTER_ADDR=$(scontrol show hostnames | head -1)` before srun"
                                : "name it with --rendezvous HOST:PORT",
                       ", which all ranks must reach");
}

}  // namespace

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::optional<Meeting> launched_meeting(const Variable& variable, const std::string& rendezvous) {
  std::optional<Meeting> chosen;
  for (const auto& launcher : launchers) {
    const auto meeting = meeting_of(launcher, variable);
    if (!meeting) continue;
    // torchrun is itself started by the others, once a machine.
    const bool is_started_by = chosen && chosen->launcher == std::string("torchrun") && variable("TORCHELASTIC_RUN_ID");
    const bool agrees = !chosen || is_started_by || (chosen->rank == meeting->rank && chosen->size == meeting->size);
    require<ConfigError>(agrees, "the variables of ", chosen ? chosen->launcher : "", " say rank ",
                         chosen ? chosen->rank : 0, " of ", chosen ? chosen->size : 0, ", those of ", launcher.name,
                         " rank ", meeting->rank, " of ", meeting->size, "; unset those of one of them");
    if (!chosen) chosen = meeting;
  }
  if (!chosen || chosen->size == 1) return std::nullopt;
  set_place(*chosen, variable, rendezvous);
  return chosen;
}

}  // namespace cloze
