#include "cli/processes.h"

#include "core/interrupt.h"
#include "core/log.h"
#include "core/text.h"
#include "distributed/launch.h"

namespace cloze {

namespace {

constexpr double usual_timeout = 120;  ///< [s]

bool is_started_here(const std::optional<Meeting>& meeting) { return meeting && meeting->launcher == "--processes"; }

void check_process_options(const ProcessOptions& options, const std::optional<Meeting>& meeting) {
  const auto cores = std::ssize(usable_cores_in_order());
  const bool by_launcher = meeting && !is_started_here(meeting);
  require<ConfigError>(options.processes == 0 || !by_launcher, "--processes ", options.processes,
                       ": starts processes on this machine, and ", meeting ? meeting->launcher : "",
                       " has started this one as rank ", meeting ? meeting->rank : 0, " of ",
                       meeting ? meeting->size : 0, "; leave it out, or start the run without a launcher");
  require<ConfigError>(is_started_here(meeting) || options.processes <= cores, "--processes is ", options.processes,
                       ", and this process may use ", cores, cores == 1 ? " core" : " cores",
                       "; give each process a core at least");
  require<ConfigError>(options.rendezvous.empty() || by_launcher, "--rendezvous ", options.rendezvous,
                       ": is where processes of a launcher meet (torchrun, srun, mpirun), and no launcher has started "
                       "this one; leave it out");
  require<ConfigError>(options.timeout == 0 || meeting || options.processes > 1, "--timeout ", options.timeout,
                       ": is how long the processes of a run wait for each other, and this run has one; leave it out");
}

/// Other processes of the run speak on no terminal: the first one says what is to be said.
void be_silent_on_signals() {
  interrupts().on_terminal = false;
  save_when_interrupted("\n");
}

}  // namespace

void add_process_options(CLI::App& verb, ProcessOptions& options) {
  constexpr const char* several = "Several processes, one result";
  verb.add_option("--processes", options.processes,
                  "train by that many processes on this machine, each on its share of the cores")
      ->check(CLI::Range(1, 1024))
      ->group(several);
  verb.add_option("--rendezvous", options.rendezvous,
                  "HOST or HOST:PORT of the first process, where torchrun, srun or mpirun has started this one")
      ->group(several);
  verb.add_option("--timeout", options.timeout,
                  "seconds without an answer after which a process is lost, and the run ends (default: 120)")
      ->check(CLI::Range(1.0, 86400.0))
      ->group(several);
}

int train_by_processes(const ProcessOptions& options, const Globals& globals, const Lead& lead) {
  auto meeting = launched_meeting(environment, options.rendezvous);
  check_process_options(options, meeting);
  if (!meeting && options.processes > 1) return launch(options.processes, globals.arguments);
  if (!meeting) return lead({.train = [](const PretrainCommand& command) { return run_engine(command); }});
  meeting->timeout = options.timeout > 0 ? options.timeout : usual_timeout;
  forget_launcher();
  if (meeting->rank > 0) be_silent_on_signals();
  const std::vector<std::string> words(globals.arguments.begin() + 1, globals.arguments.end());
  return run_engine(TogetherCommand{.meeting = *meeting, .arguments = listed(words), .lead = lead});
}

void take_as_one_process(const std::string& verb) {
  std::optional<Meeting> meeting;
  try {
    meeting = launched_rank(environment);
  } catch (const ConfigError&) {  // variables that mean something else
  }
  forget_launcher();
  require<ConfigError>(!meeting || meeting->rank == 0 || verb.starts_with("study"), "cloze ", verb,
                       " is a matter of one process, and this is rank ", meeting ? meeting->rank : 0, " of ",
                       meeting ? meeting->size : 0, "; start it without ", meeting ? meeting->launcher : "",
                       ", or, where each process has work of its own, unset the variables of ",
                       meeting ? meeting->launcher : "", " first");
}

}  // namespace cloze
