#pragma once
// One plain struct per verb: the parsed command line, as the program passes it to the engine.
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "babylm/track.h"
#include "run/config.h"
#include "generation/search.h"
#include "objectives/scoring_form.h"
#include "scoring/passage.h"
#include "scoring/pooling.h"
#include "suites/babylm_backend.h"

namespace cloze {

/// The checkpoint of a run that a verb takes.
enum class CheckpointChoice { best, newest };
constexpr auto choices(CheckpointChoice) {
  return std::array{Choice{CheckpointChoice::best, "best", "of the lowest held-out loss, else the newest"},
                    Choice{CheckpointChoice::newest, "newest", "of the last step that was saved"}};
}

struct PretrainCommand {
  RunConfig config;
  std::string run, command_line, branch_from, hook;
  bool resume = false, allow_config_change = false, json = false;
};
/// The suites of `evaluate`; without any it computes losses.
struct SuitesCommand {
  std::vector<std::string> names;              ///< of suites, or their files and folders
  std::optional<ScoringForm> form;             ///< none: the run's own
  std::optional<Normalisation> normalisation;  ///< none: sum
  std::optional<int64_t> layer;                ///< of embeddings
  std::optional<Pooling> pooling;              ///< of embeddings; none: mean
  int64_t limit = 0;                           ///< items of each paradigm; 0: all
  std::string keep;                            ///< table of the items to keep; empty: all
  std::optional<Precision> precision{};        ///< of scores; none: fp32
  std::optional<int64_t> stride{};             ///< of scores; none: a text longer than the model is refused
  std::string cache, out;                      ///< folders; empty: none
  bool paradigms = false;
  bool all_checkpoints = false;            ///< of the losses as of the suites: every checkpoint of the only run
  bool fast = false;                       ///< of BabyLM: the fast evaluation
  std::optional<BabylmBackend> backend{};  ///< of BabyLM; none: the run's own
  std::string results;                     ///< of BabyLM: the folder for its files; empty: `results`
};
struct EvaluateCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::vector<std::string> runs;
  std::string tokens;
  std::vector<std::string> text, target;
  std::vector<std::string> objectives;   ///< in short form; empty: those of the runs' own evaluation
  std::vector<std::string> set;          ///< evaluation.KEY=VALUE
  std::string format = "auto", columns;  ///< of the text, as in `prepare`
  std::optional<std::string> field{};    ///< of the text, as in `prepare`
  int64_t sequences = 0;                 ///< 0: evaluation.sequences
  int64_t batch_size = 32;
  bool generate = false;  ///< of pairs: generate the targets and compare
  SearchConfig search{};
  SuitesCommand suites{};
  bool json = false;
};
/// Of a fine-tuned run.
struct PredictCommand {
  CheckpointChoice checkpoint = CheckpointChoice::best;
  std::string run, file, out;  ///< out: a file; empty: standard output
  bool json = false;
};
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
  std::string normalise = "sum";
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
  std::string folder, out, generator;
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

struct CollateCommand {
  std::string results, model, revision = "main";
  std::string data;                        ///< evaluation data; empty: `babylm` of the suites
  std::optional<BabylmBackend> backend{};  ///< none: the only one of the results
  BabylmTrack track = BabylmTrack::strict;
  bool fast = false, partial = false;
};

using Command =
    std::variant<PretrainCommand, PredictCommand, EvaluateCommand, GenerateCommand, FillCommand, ScoreCommand,
                 ViewCommand, ImportCommand, ExportCommand, VerifyParityCommand, VerifyRunCommand,
                 RunTorchScriptCommand, DescribeCommand, InspectCommand, BenchmarkCommand, CollateCommand>;

}  // namespace cloze
