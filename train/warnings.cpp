#include "train/warnings.h"

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "core/spelling.h"
#include "core/text.h"
#include "objectives/config.h"
#include "objectives/masking_config.h"
#include "run/config/evaluation_protocol.h"

namespace cloze {

namespace {

std::string percent(double fraction) { return fixed(100 * fraction, 0) + " %"; }

}  // namespace

std::string pair_warning(const Objectives& objectives, const Collator& collator) {
  constexpr int64_t sequences = 1000;
  constexpr double tolerance = 0.1;
  for (const auto& objective : objectives) {
    const auto shares = as_kind(objective).pairs();
    if (!shares) continue;
    const auto batch = collator.batch(0, sequences);
    const double measured = batch.pair_label.to(at::kDouble).mean().item<double>();
    if (std::abs(measured - shares->label_1()) <= tolerance) continue;
    return concat(
        kind_of(objective), ": ", percent(measured), " of the pairs have label 1, ", as_kind(objective).rate_key(),
        " is ", percent(shares->label_1()),
        ": a segment of one sentence is always paired with text of another document, as in BERT's code; prepare "
        "longer documents, or compare the accuracy with the majority baseline");
  }
  return "";
}

std::string replaced_warning(const std::vector<HeldOut>& losses, const EvaluationConfig& evaluation) {
  for (const auto& objective : evaluation.objectives) {
    if (!as_kind(objective).replaces_tokens()) continue;
    const auto part = std::find_if(losses.begin(), losses.end(),
                                   [&](const auto& loss) { return loss.name == short_form(objective); });
    if (part == losses.end() || !part->baseline) continue;
    const double replaced = 1 - part->baseline->accuracy;
    const double masked = expected_masks(as_kind(objective).maskings(), 1);
    if (replaced >= masked / 4) continue;
    return concat("rtd: ", percent(replaced), " of the tokens are replaced, mlm_probability is ", percent(masked),
                  ": the generator mostly predicts the original token, which leaves few to detect; make it smaller "
                  "(generator_hidden_size), or mask more");
  }
  return "";
}

std::string few_masked_warning(const Objectives& objectives) {
  for (const auto& masking : maskings_of(objectives)) {
    if (masking.mask_prob >= 0.5) continue;
    return concat("mask_prob is ", shortest(masking.mask_prob), ": of the ", in_percent(masking.mlm_probability),
                  " of the tokens that are predicted (mlm_probability), ", in_percent(masking.mask_prob),
                  " become [MASK], and the others can be read where they stand or are random; fairseq's mask_prob is "
                  "the share of tokens that are chosen, which is mlm_probability here");
  }
  return "";
}

std::string long_decay_warning(const Objectives& objectives, int64_t steps) {
  for (const auto& masking : maskings_of(objectives)) {
    if (masking.initial_mlm_probability == 0 || steps == 0 || masking.decay_steps <= steps) continue;
    const auto change = masking.mlm_probability - masking.initial_mlm_probability;
    const auto fraction = static_cast<double>(steps) / static_cast<double>(masking.decay_steps);
    return concat("decay_steps is ", masking.decay_steps, ", and the run has ",
                  counted(static_cast<size_t>(steps), "step"), ": it ends with ",
                  in_percent(masking.initial_mlm_probability + fraction * change),
                  " of the tokens predicted, not with the ", in_percent(masking.mlm_probability),
                  " of mlm_probability; lower decay_steps, or leave it out");
  }
  return "";
}

std::string no_predictions_warning(int64_t step) {
  return concat(
      "step ", step,
      " has no predictions, so that nothing is learned from it and its loss is null in metrics.jsonl; look at "
      "the rows of the run with cloze inspect objective");
}

bool is_far_above_guessing(double loss, const Guessing& guessing) {
  const double most = guessing.of_task ? std::max(10 * guessing.loss, guessing.loss + 5) : 2 * guessing.loss;
  return std::isfinite(loss) && loss > most;
}

std::string divergence_warning(const std::string& which, double loss, int64_t step, const Guessing& guessing) {
  return concat("the ", which, " at step ", step, " is ", significant(loss, 6), ", far above ",
                guessing.of_task ? "" : "ln(vocab_size) = ", significant(guessing.loss, 4),
                ", that of guessing evenly: training has diverged",
                guessing.of_task ? "" : ", and such a step cannot be the best",
                "; start again with a lower optimizer.learning_rate or a longer schedule.warmup");
}

}  // namespace cloze
