#pragma once
// The runs of a study as commands for other schedulers.
#include <string>
#include <vector>

#include "study/plan.h"

namespace cloze {

/// One command for each of `runs`, named ARM/SEED, a line each, for GNU parallel or a shell.
std::string command_lines(const Plan& plan, const std::vector<std::string>& runs, const std::string& program);

/// An array job for Slurm's sbatch, one task for each of `runs`.
std::string slurm_script(const Plan& plan, const std::vector<std::string>& runs, const std::string& program);

}  // namespace cloze
