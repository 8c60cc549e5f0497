#include "evaluation/tasks/generated_items.h"

#include <limits>

#include "inference/generation/generate.h"
#include "models/encoder_decoder_config.h"

namespace cloze {

namespace {

constexpr int64_t prompts_of_batch = 32;

SearchConfig search_of_task(const TaskConfig& task, const ModelConfig& model) {
  const auto& decoding = task.decoding;
  return search_of(model, {.search = {.max_new_tokens = most_new_tokens(task),
                                      .min_new_tokens = decoding.min_new_tokens,
                                      .num_beams = decoding.num_beams,
                                      .length_penalty = decoding.length_penalty,
                                      .no_repeat_ngram_size = decoding.no_repeat_ngram_size},
                           .truncate = true});
}

std::vector<Prompt> prompts_of_rows(const std::vector<TaskRow>& rows, const ModelConfig& model) {
  const bool has_encoder = backbone_of(model).is_encoder_decoder();
  std::vector<Prompt> prompts;
  for (const auto& row : rows) {
    auto& prompt = prompts.emplace_back();
    (has_encoder ? prompt.source : prompt.prefix).assign(row.ids.begin(), row.ids.end());
    if (has_encoder) prompt.prefix = {decoding_ids_of(model).decoder_start_token_id};
    prompt.number = prompts.size() - 1;
  }
  return prompts;
}

}  // namespace

std::vector<ItemPrediction> generate_items(Network& network, const JudgedTask& task, const std::vector<TaskItem>& items,
                                           const std::vector<TaskRow>& rows) {
  const InEvaluation evaluation(network);
  const auto losses = target_losses(network, task.objectives, rows);
  std::vector<ItemPrediction> predictions;
  for (size_t i = 0; i < items.size(); ++i) {
    const auto [sum, tokens] = losses[i];
    const double loss = tokens > 0 ? sum / static_cast<double>(tokens) : std::numeric_limits<double>::quiet_NaN();
    predictions.push_back({.prediction = {.id = items[i].id,
                                          .answer = texts_answer({""}),
                                          .loss = tokens > 0 ? loss : 0,
                                          .count = tokens},
                           .loss = loss,
                           .count = tokens});
  }
  if (!are_finite(predictions)) return predictions;
  const auto& model = network.model_config();
  const auto search = search_of_task(task.task.config, model);
  const auto prompts = prompts_of_rows(rows, model);
  const auto generated = generate_in_batches(network, prompts, search, prompts_of_batch);
  for (size_t i = 0; i < items.size(); ++i)
    predictions[i].prediction.answer.texts = {
        decoded(task.tokenizer, generated[i].front(), prompts[i].prefix, /*continues=*/false, search.eos_token_id)
            .text};
  return predictions;
}

}  // namespace cloze
