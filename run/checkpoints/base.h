#pragma once
// What a run keeps of the network that it begins with, which its checkpoints name instead of holding it.
#include "run/checkpoints/init.h"

namespace cloze {

/// Makes base what the config keeps (init.probe, freeze.layers, adaptation), and adds what is trained beside it.
void keep_base(const RunConfig& config, Network& network);

/// Where the checkpoint of `record` is now: at its path, or another one of its run with the same weights. Throws
/// CheckpointError, which ends with `remedy`, where it is gone or has other weights by now.
///
/// use  what `run` does with it: `keeps weights of`
std::string located_checkpoint(const std::string& run, const BaseRecord& record, const char* use, const char* remedy);

/// What checkpoints say of the base; empty where nothing is base. Throws ConfigError for a base parameter that `report`
/// did not take from the other run.
BaseRecord recorded_base(const InitReport& report, const Network& network);

/// The parameters that a checkpoint holds: all, or those that are not base.
std::vector<NamedParam> params_in(const TrainState& state, const Network& network);

/// Takes the base of a checkpoint of `run` from where it is now; others get the weights that the run began with. Throws
/// CheckpointError where it is gone, or has other weights by now.
void load_base(const std::string& run, const TrainState& state, const RunConfig& config, Network& network,
               const Tokenizer& tokenizer);

}  // namespace cloze
