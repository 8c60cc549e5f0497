#include "interchange/interchange.h"

#include "models/families/families.h"
#include "objectives/task_heads/task_heads.h"

namespace cloze {

namespace {

/// The padding id of the tokenizer, else that of the model, else the end of a text: with any other token, a text that
/// ends with it would lose it. Source: transformers, models/gpt2, GPT2ForSequenceClassification.
int64_t padding_of(const LoadedRun& run) {
  const auto of_model = backbone_of(run.config.model).pad_token_id;
  if (!run.has_tokenizer) return of_model;
  const auto& special = run.tokenizer.special();
  if (special.pad >= 0) return special.pad;
  return of_model > 0 || special.eos < 0 ? of_model : special.eos;  // 0 may stand for none
}

}  // namespace

TextReader reader_of(const LoadedRun& run) {
  const auto& model = run.config.model;
  const auto& c = backbone_of(model);
  const auto usual = default_architecture(model);
  const bool ends = usual == Architecture::decoder || usual == Architecture::encoder_decoder;
  TaskKind task{};
  const bool is_head = run.config.objectives.size() == 1 && task_head_of(run.config.objectives[0], &task);
  const bool finds_end = is_head && reads_texts(task) && kind_of(model) == Gpt2Config::kind;
  return {.kind = kind_of(model),
          .segments = c.token_types && c.type_vocab_size > 1,
          .max_length = c.max_input_length() < BackboneConfig::unlimited_length ? c.max_input_length() : 0,
          .end = ends ? c.eos_token_id : -1,
          .words = is_head && task == TaskKind::tagging,
          .pad = finds_end ? padding_of(run) : -1};
}

}  // namespace cloze
