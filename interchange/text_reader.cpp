#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/json.h"
#include "objectives/task_heads/task_heads.h"
#include "interchange/exported_task.h"
#include "interchange/interchange.h"
#include "models/families/families.h"

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
  const auto* head = run.config.objectives.size() == 1 ? task_head_of(run.config.objectives[0]) : nullptr;
  const bool finds_end = head && reads_texts(head->use()) && kind_of(model) == Gpt2Config::kind;
  return {.kind = kind_of(model),
          .segments = c.token_types && c.type_vocab_size > 1,
          .max_length = c.max_input_length() < BackboneConfig::unlimited_length ? c.max_input_length() : 0,
          .end = ends ? c.eos_token_id : -1,
          .words = head && head->use() == HeadUse::tokens && run.state.step > 0,  // an imported one goes out as it came
          .pad = finds_end ? padding_of(run) : -1};
}

void save_tokenizer(const LoadedRun& run, const std::string& folder) {
  const auto reader = reader_of(run);
  run.tokenizer.save(folder, reader);
  const auto path = folder + "/tokenizer_config.json";
  auto config = parse_ordered_json(read_text(path, 16 << 20));
  if (!config.is_object()) return;  // it came in so
  const auto saved = config;
  const auto task = exported_task(run);
  const auto names = config.find("model_input_names");
  const bool has_names = names != config.end() && names->is_array();
  // The classes of ALBERT, BigBird and XLNet give no segments unless these are named.
  if (run.tokenizer.frame(reader).segments && (!has_names || task))
    config["model_input_names"] = {"input_ids", "token_type_ids", "attention_mask"};
  if (task)
    if (const auto length = row_length(run, task->task.config); length > 0) config["model_max_length"] = length;
  if (config != saved) write_atomic(path, json_text(config, 2) + "\n");
}

}  // namespace cloze
