#include "analysis/replacements.h"

#include "models/initialization.h"
#include "objectives/rtd/replacement_numbers.h"
#include "objectives/rtd/rtd.h"
#include "run/init.h"
#include "train/training.h"
#include "train/stepper.h"

namespace cloze {

Replacements::Replacements(const InspectedRun& run)
    : config_(resolved_config(run.config, run.store)),
      rng_(rng_of(config_.train, RandomStream::dropout)),
      network_(std::make_unique<Network>(config_.model, config_.objectives)) {
  const auto& model = backbone_of(config_.model);
  initialize(collect_params(*network_), model.initializer_range, is_truncated(model.initializer),
             rng_of(config_.train, RandomStream::init));
  if (!config_.init.from.empty()) init_from(config_.init.from, *network_, run.tokenizer(), config_.init.probe);
  network_->train();
}

void Replacements::add(const Batch& batch, uint64_t first, std::vector<InspectedExample>& rows) {
  const auto& rtd = *first_of<RtdConfig>(config_.objectives);
  const auto number = static_cast<int64_t>(first) / config_.train.batch_size;
  const int64_t step = number / config_.train.accumulation;
  if (!batch.positions.defined() || rtd.generator_only(step)) return;
  const auto key = pass_key(rng_, step, static_cast<size_t>(number % config_.train.accumulation));
  const bool generates = rtd.replace_by == ReplaceBy::generator;
  const auto numbers = replacement_numbers(batch.positions.numel(), key);
  Batch rewritten = batch;
  if (step == 0 || !generates) {
    network_->before_step(step, rng_);
    network_->objective_at(RtdConfig::kind)->rewrite(rewritten, key);
  }
  const int64_t width = batch.input_ids.size(1);
  const auto drawn = rewritten.input_ids.flatten().contiguous();
  for (int64_t i = 0; i < batch.positions.numel(); ++i) {
    const auto position = batch.positions.data_ptr<int64_t>()[i];
    auto& row = rows[static_cast<size_t>(position / width)];
    if (rewritten.replaced.defined()) row.replacements.push_back(drawn.data_ptr<int64_t>()[position]);
    if (generates) row.replacement_numbers.push_back(numbers.data_ptr<double>()[i]);
  }
}

}  // namespace cloze
