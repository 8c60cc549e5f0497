#include "study/commands.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "core/shell_word.h"
#include "core/text.h"

namespace cloze {

namespace {

/// The command that does one run of a study and no other.
std::string command_line(const Plan& plan, const std::string& program, const std::string& only) {
  return concat(shell_word(program), " study run ", shell_word(plan.file), " --out ", shell_word(plan.root),
                " --jobs 1 --only ", only);
}

/// Cores of a task: those that the runs ask for, 1 if they leave it open.
int64_t cores_of(const Plan& plan) {
  int64_t cores = 1;
  for (const auto& run : plan.runs) cores = std::max(cores, run.config.train.threads);
  return cores;
}

}  // namespace

std::string command_lines(const Plan& plan, const std::vector<std::string>& runs, const std::string& program) {
  std::string text;
  for (const auto& run : runs) text += command_line(plan, program, shell_word(run)) + "\n";
  return text;
}

std::string slurm_script(const Plan& plan, const std::vector<std::string>& runs, const std::string& program) {
  std::string text =
      concat("#!/bin/bash\n#SBATCH --job-name=", shell_word(in_one_line(plan.study.study)), "\n#SBATCH --array=0-",
             runs.size() - 1, "\n#SBATCH --cpus-per-task=", cores_of(plan), "\n#SBATCH --signal=B:TERM@120\n\ncd ",
             shell_word(std::filesystem::current_path().string()), "\nruns=(\n");
  for (const auto& run : runs) text += "  " + shell_word(run) + "\n";
  // exec: the signal before the time limit reaches the program, which saves and stops.
  text += ")\nexec " + command_line(plan, program, "\"${runs[$SLURM_ARRAY_TASK_ID]}\"") + "\n";
  return text;
}

}  // namespace cloze
