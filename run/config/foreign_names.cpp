#include "run/config/foreign_names.h"

#include <algorithm>

#include "run/config/load_config.h"

namespace cloze {

namespace {

constexpr size_t few = 3;
constexpr const char* one_device =
    "a run trains on one device; `cloze study run STUDY --jobs N` trains several runs side by side";

/// A key or an option without its value, in the spelling of the table.
std::string spelled(const std::string& name) {
  auto key = name.substr(0, name.find('='));
  key.erase(0, key.find_first_not_of('-'));
  for (auto& character : key) {
    if (character == '-') character = '_';
    if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
  }
  return key;
}

/// The last part of a key.
std::string last_part(const std::string& key) { return key.substr(key.find_last_of('.') + 1); }  // npos + 1 is 0

const ForeignName* find_foreign(const std::string& name) {
  auto key = spelled(name);
  constexpr std::string_view part = "data.mixture.";
  if (key.starts_with(part) && key.find_first_not_of("0123456789", part.size()) == key.npos)
    key = concat(part, 0);  // which stands for all
  for (const auto& word : {key, last_part(key)})
    for (const auto& foreign : foreign_names())
      if (word == foreign.name) return &foreign;
  return nullptr;
}

}  // namespace

const std::vector<ForeignName>& foreign_names() {
  static const std::vector<ForeignName> names{
      {"model", "model.kind"},
      {"model_type", "model.kind"},
      {"model.type", "model.kind"},
      {"model.name", "model.kind"},
      {"arch", "model.kind"},
      {"init", "init.from"},
      {"init_from", "init.from"},
      // a number where a section belongs
      {"data.number", "data.max_seq_length"},
      {"optimizer.number", "optimizer.learning_rate"},
      {"schedule.number", "schedule.warmup"},
      {"train.number", "train.budget.steps"},
      {"train.budget.number", "train.budget.steps"},
      {"evaluation.number", "evaluation.every"},
      {"checkpoint.number", "checkpoint.every"},
      {"objectives.0", "objectives.0.kind"},
      {"data.mixture.0", "", "a part is a map: {tokens: FOLDER, weight: 1}"},
      {"objectives", "", "they are a list: --set 'objectives=[{kind: mlm}]', or one by its number, objectives.0.kind"},
      {"task", "objectives.0.kind", "tasks with labels are learned by `cloze finetune RUN TASK.yaml`"},
      {"criterion", "objectives.0.kind"},
      {"objective", "objectives.0.kind", "a family, such as bert, is model.kind"},
      {"data", "data.tokens"},
      {"data.path", "data.tokens"},
      {"dataset", "data.tokens", "no data set is downloaded; prepare its text with `cloze prepare`"},
      {"optimizer", "optimizer.kind"},
      {"schedule", "schedule.shape"},
      {"schedule.kind", "schedule.shape"},
      {"schedule.type", "schedule.shape"},
      {"schedule.name", "schedule.shape"},
      {"scheduler", "schedule.shape"},
      {"lr", "optimizer.learning_rate"},
      {"peak_lr", "optimizer.learning_rate"},
      {"optim", "optimizer.kind"},
      {"adam_beta1", "optimizer.beta1"},
      {"adam_beta2", "optimizer.beta2"},
      {"adam_epsilon", "optimizer.epsilon"},
      {"adam_eps", "optimizer.epsilon"},
      {"eps", "optimizer.epsilon"},
      {"betas", "optimizer.beta1", "the second is optimizer.beta2"},
      {"adam_betas", "optimizer.beta1", "the second is optimizer.beta2"},
      {"wd", "optimizer.weight_decay"},
      {"clip_norm", "optimizer.max_grad_norm"},
      {"grad_clip", "optimizer.max_grad_norm"},
      {"lr_scheduler_type", "schedule.shape"},
      {"lr_scheduler", "schedule.shape"},
      {"warmup_steps", "schedule.warmup"},
      {"warmup_ratio", "schedule.warmup"},
      {"warmup_updates", "schedule.warmup"},
      {"num_warmup_steps", "schedule.warmup"},
      {"warmup_iters", "schedule.warmup"},
      {"min_lr", "schedule.end_factor", "it is a share of the learning rate"},
      {"lr_decay_iters", "train.budget.steps", "the schedule ends with the budget"},
      {"total_num_update", "train.budget.steps", "the schedule ends with the budget"},
      {"max_iters", "train.budget.steps"},
      {"max_steps", "train.budget.steps"},
      {"budget", "train.budget.steps"},
      {"num_steps", "train.budget.steps"},
      {"num_train_steps", "train.budget.steps"},
      {"total_steps", "train.budget.steps"},
      {"max_update", "train.budget.steps"},
      {"num_train_epochs", "train.budget.epochs"},
      {"num_epochs", "train.budget.epochs"},
      {"max_epoch", "train.budget.epochs"},
      {"per_device_train_batch_size", "train.batch_size"},
      {"train_batch_size", "train.batch_size"},
      {"bs", "train.batch_size"},
      {"max_tokens", "train.batch_size", "it counts sequences of at most data.max_seq_length tokens"},
      {"per_device_eval_batch_size", "train.batch_size", "held-out sequences are read in batches of that size too"},
      {"gradient_accumulation_steps", "train.accumulation"},
      {"gradient_accumulation", "train.accumulation"},
      {"grad_accum_steps", "train.accumulation"},
      {"update_freq", "train.accumulation"},
      {"dataloader_num_workers", "train.workers"},
      {"num_workers", "train.workers"},
      {"random_seed", "train.seed"},
      {"data_seed", "train.seeds.order"},
      {"mixed_precision", "train.precision"},
      {"amp", "train.precision", "its value is bf16 or fp32"},
      {"torch_dtype", "train.precision"},
      {"use_cpu", "train.device"},
      {"no_cuda", "train.device"},
      {"gpu", "train.device", "its value is cpu, cuda or cuda:N"},
      {"gpus", "train.device", one_device},
      {"devices", "train.device", one_device},
      {"n_gpu", "", one_device},
      {"num_gpus", "", one_device},
      {"nproc_per_node", "", one_device},
      {"nnodes", "", one_device},
      {"world_size", "", one_device},
      {"local_rank", "", one_device},
      {"distributed", "", one_device},
      {"multi_gpu", "", one_device},
      {"ddp", "", one_device},
      {"fsdp", "", one_device},
      {"deepspeed", "", one_device},
      {"dtype", "train.precision"},
      {"logging_steps", "checkpoint.log_every"},
      {"log_interval", "checkpoint.log_every"},
      {"save_steps", "checkpoint.every"},
      {"save_checkpoints_steps", "checkpoint.every"},
      {"save_interval_updates", "checkpoint.every"},
      {"save_every", "checkpoint.every"},
      {"save_interval", "checkpoint.every"},
      {"checkpoint.steps", "checkpoint.every"},
      {"save_total_limit", "checkpoint.keep"},
      {"keep_interval_updates", "checkpoint.keep"},
      {"eval_steps", "evaluation.every"},
      {"eval_every", "evaluation.every"},
      {"evaluation.steps", "evaluation.every"},
      {"evaluation.interval", "evaluation.every"},
      {"evaluation_strategy", "evaluation.every", "it counts steps"},
      {"eval_interval", "evaluation.every"},
      {"eval_iters", "evaluation.sequences", "it counts sequences, not batches"},
      {"validate_interval_updates", "evaluation.every"},
      {"early_stopping_patience", "evaluation.patience"},
      {"max_length", "data.max_seq_length"},
      {"max_len", "data.max_seq_length"},
      {"seq_len", "data.max_seq_length"},
      {"seq_length", "data.max_seq_length"},
      {"block_size", "data.max_seq_length"},
      {"tokens_per_sample", "data.max_seq_length"},
      {"context_length", "data.max_seq_length"},
      {"train_file", "data.tokens"},
      {"input_file", "data.tokens"},
      {"data_dir", "data.tokens"},
      {"dataset_name", "data.tokens", "no data set is downloaded; prepare its text with `cloze prepare`"},
      {"init_checkpoint", "init.from"},
      {"restore_file", "init.from"},
      {"model_name_or_path", "init.from", "a Hugging Face folder becomes a run by `cloze import`"},
      {"resume_from_checkpoint", "", "a run is continued by `cloze pretrain --run DIR --resume`"},
      {"resume_from", "", "a run is continued by `cloze pretrain --run DIR --resume`"},
      {"output_dir", "", "the folder of a run is named with --run"},
      {"out_dir", "", "the folder of a run is named with --run"},
      {"overwrite_output_dir", "", "no run is overwritten; name another folder with --run"},
      {"save_dir", "", "the folder of a run is named with --run"},
      {"run_name", "", "the folder of a run is named with --run"},
      {"fp16", "train.precision", "there is no fp16; bf16 needs no loss scaling"},
      {"bf16", "train.precision", "its value is bf16 or fp32"},
      {"report_to", "",
       "TensorBoard reads the folder of a run, and --hook runs a command at each event, for W&B or MLflow"},
      {"wandb", "",
       "TensorBoard reads the folder of a run, and --hook runs a command at each event, for W&B or MLflow"},
      {"hook", "", "a command is named with --hook for each process, so that no config of others runs one"},
      {"hooks", "", "a command is named with --hook for each process, so that no config of others runs one"},
      {"callbacks", "", "a command that is told what happens is named with --hook"},
      {"compile", "", "nothing is compiled at run time; fused operators are used by default"},
      {"masked_lm_prob", "objectives.0.mlm_probability"},
      {"mask_prob", "objectives.0.mlm_probability",
       "mask_prob of an objective is the share of these that become [MASK]"},
      {"masking", "objectives.0.mlm_probability", "the seed of the masks is train.seeds.masking"},
      {"masking.rate", "objectives.0.mlm_probability"},
      {"masking_rate", "objectives.0.mlm_probability"},
      {"masking_ratio", "objectives.0.mlm_probability"},
      {"mask_rate", "objectives.0.mlm_probability"},
      {"mask_ratio", "objectives.0.mlm_probability"},
      {"whole_word_mask", "objectives.0.unit", "its value is word"},
      {"mlm_prob", "objectives.0.mlm_probability"},
      {"d_model", "model.hidden_size"},
      {"n_embd", "model.hidden_size"},
      {"embed_dim", "model.hidden_size"},
      {"hidden_dim", "model.hidden_size"},
      {"encoder_embed_dim", "model.hidden_size"},
      {"d_ff", "model.intermediate_size"},
      {"n_inner", "model.intermediate_size"},
      {"ffn_dim", "model.intermediate_size"},
      {"encoder_ffn_embed_dim", "model.intermediate_size"},
      {"n_layer", "model.num_hidden_layers"},
      {"n_layers", "model.num_hidden_layers"},
      {"num_layers", "model.num_hidden_layers"},
      {"layers", "model.num_hidden_layers"},
      {"encoder_layers", "model.num_hidden_layers"},
      {"n_head", "model.num_attention_heads"},
      {"n_heads", "model.num_attention_heads"},
      {"nhead", "model.num_attention_heads"},
      {"num_heads", "model.num_attention_heads"},
      {"heads", "model.num_attention_heads"},
      {"encoder_attention_heads", "model.num_attention_heads"},
      {"activation", "model.hidden_act"},
      {"activation_function", "model.hidden_act"},
      {"activation_fn", "model.hidden_act"},
      {"n_positions", "model.max_position_embeddings"},
      {"max_positions", "model.max_position_embeddings"},
      {"dropout", "model.hidden_dropout_prob"},
      {"attention_dropout", "model.attention_probs_dropout_prob"}};
  return names;
}

std::vector<std::string> keys_meant_by(const RunConfig& config, const std::string& name) {
  const auto all = entries(config);
  const auto has = [&](const std::string& path) {
    return std::any_of(all.begin(), all.end(), [&](const auto& entry) { return entry.leaf && entry.path == path; });
  };
  if (has(spelled(name))) return {spelled(name)};  // in other letter case
  const auto is_section = [&](const auto& entry) { return !entry.leaf && entry.path == spelled(name); };
  if (name != spelled(name) && !name.starts_with("-") && std::ranges::any_of(all, is_section)) return {spelled(name)};
  const auto* foreign = find_foreign(name);
  if (foreign && has(foreign->key)) return {foreign->key};
  if (foreign && std::string(foreign->key).empty()) return {};
  const auto end = "." + last_part(spelled(name));
  std::vector<std::string> found;
  for (const auto& entry : all)
    if (entry.leaf && entry.path.ends_with(end)) found.push_back(entry.path);
  return found.size() <= few ? found : std::vector<std::string>{};
}

std::string advice_on(const std::string& name) {
  const auto* foreign = find_foreign(name);
  return foreign ? foreign->advice : "";
}

std::string meaning_of_unknown(const RunConfig& config, const std::string& key) {
  std::string text;
  for (const auto& meant : keys_meant_by(config, key)) {
    if (meant == key) return "";
    text += (text.empty() ? "; did you mean '" : " or '") + meant + "'";
  }
  const auto* foreign = find_foreign(key);
  const bool is_of_key = foreign && !std::string(foreign->key).empty();
  const auto advice = text.empty() && is_of_key ? "" : advice_on(key);  // of a key that this config does not have
  return text + (text.empty() ? "" : "?") + (advice.empty() ? "" : (text.empty() ? "; " : " ") + advice);
}

}  // namespace cloze
