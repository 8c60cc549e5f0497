#pragma once
// One plain struct per verb: the parsed command line, as the program passes it to the engine.
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "distributed/meeting.h"
#include "evaluation/babylm/collate.h"
#include "evaluation/babylm/finetune.h"
#include "run/config/config.h"
#include "evaluation/request.h"
#include "inference/generation/search.h"
#include "evaluation/suites/request.h"
#include "evaluation/attribution/attribute.h"
#include "evaluation/tasks/predict.h"

namespace cloze {

struct PretrainCommand {
  RunConfig config;
  std::string run, command_line, branch_from, hook;
  bool resume = false, allow_config_change = false, json = false;
};
/// How the first process of a run, or the only one, trains.
struct Trainer {
  std::function<int(const PretrainCommand&)> train;  ///< by all; returns the exit code
  bool is_shared = false;                            ///< several processes train
  bool goes_on = false;  ///< a launcher has started all of them again after a failure: what exists is continued
};
/// What it does from the command line on. Returns the exit code.
using Lead = std::function<int(const Trainer&)>;
/// Of one of several processes, whichever it is.
struct TogetherCommand {
  Meeting meeting;
  std::string arguments;  ///< in which all agree
  Lead lead;              ///< of the first process
};
struct EvaluateCommand : EvaluationRequest {};  ///< held-out losses, or of fine-tuned runs their scores
struct EvaluateTasksCommand : RunSelection {};
struct EvaluateSuitesCommand : RunSelection {
  SuiteRequest suites{};
  bool of_babylm = false;  ///< whatever their names are
};
struct PredictCommand : PredictRequest {};
struct AttributeCommand : AttributeRequest {};
struct GenerateCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run;
  std::vector<std::string> texts;
  SearchConfig search{};
  int64_t batch_size = 16;
  bool json = false;
};
struct FillCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run;
  std::vector<std::string> texts;
  std::vector<std::string> locations;  ///< `FILE:LINE: ` of each text, for messages; empty for an argument
  int64_t top = 5;
  bool json = false;
};
struct ScoreCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run, file, cache;
  std::optional<ScoringForm> form{};
  Normalisation normalise = Normalisation::sum;
  Precision precision = Precision::fp32;
  int64_t stride = 0;
  bool tokens = false, json = false;
};
struct ViewCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run, file, out, sentence;
  bool json = false;
};
struct ImportCommand {
  std::string folder, out, generator, base;
};
struct ExportCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run, to, out, dtype = "float32", part, program;
  bool revisions = false, force = false, json = false;
};
struct VerifyParityCommand {
  std::string folder;
  bool json = false;
};
struct VerifyRunCommand {
  std::string run;
};
struct RunTorchScriptCommand {
  std::string script, cases, out;
};
struct DescribeCommand {
  RunConfig config;
  int64_t processes = 0;  ///< 0: they are no matter
  int64_t hosts = 1;
  bool json = false;
};
struct InspectCommand {
  std::vector<RunConfig> configs;  ///< one; with a page up to four
  std::vector<std::string> names;  ///< of the configs: their files
  int64_t examples = 3, sequences = 2000;
  std::string picture, page;  ///< files; empty: none
  bool json = false;
};
struct BenchmarkCommand {
  RunConfig config;
  int64_t steps = 20;
  double seconds = 60;
  bool json = false, plain = false, steps_only = false;
};

struct CollateCommand : CollateRequest {};
struct BabylmFinetuneCommand : BabylmFinetuneRequest {
  bool json = false;
};

using Command =
    std::variant<PretrainCommand, TogetherCommand, PredictCommand, AttributeCommand, EvaluateCommand,
                 EvaluateTasksCommand, EvaluateSuitesCommand, GenerateCommand, FillCommand, ScoreCommand, ViewCommand,
                 ImportCommand, ExportCommand, VerifyParityCommand, VerifyRunCommand, RunTorchScriptCommand,
                 DescribeCommand, InspectCommand, BenchmarkCommand, CollateCommand, BabylmFinetuneCommand>;

/// Runs a command by the part of the program that needs LibTorch, which is loaded on demand, so that help and errors
/// appear without delay. Returns the exit code. Throws the errors of the verb.
int run_engine(const Command& command);

}  // namespace cloze
