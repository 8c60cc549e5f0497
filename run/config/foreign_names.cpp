#include "run/config/foreign_names.h"

#include <algorithm>
#include <cctype>

#include "core/text.h"
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
  std::ranges::transform(key, key.begin(), [](unsigned char c) { return c == '-' ? '_' : std::tolower(c); });
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

namespace {

/// Names that mean the same, separated by spaces.
struct ForeignRow {
  const char *names, *key, *advice = "";
};

constexpr ForeignRow foreign_rows[] = {
    {"model model_type model.type model.name arch", "model.kind"},
    {"init init_from init_checkpoint restore_file", "init.from"},
    {"data.number max_length max_len seq_len seq_length block_size tokens_per_sample context_length",
     "data.max_seq_length"},
    {"optimizer.number lr peak_lr", "optimizer.learning_rate"},
    {"schedule.number warmup_steps warmup_ratio warmup_updates num_warmup_steps warmup_iters", "schedule.warmup"},
    {"train.number train.budget.number max_iters max_steps budget num_steps num_train_steps total_steps max_update",
     "train.budget.steps"},
    {"evaluation.number eval_steps eval_every evaluation.steps evaluation.interval eval_interval "
     "validate_interval_updates",
     "evaluation.every"},
    {"checkpoint.number save_steps save_checkpoints_steps save_interval_updates save_every save_interval "
     "checkpoint.steps",
     "checkpoint.every"},
    {"objectives.0 criterion", "objectives.0.kind"},
    {"data.mixture.0", "", "a part is a map: {tokens: FOLDER, weight: 1}"},
    {"objectives", "", "they are a list: --set 'objectives=[{kind: mlm}]', or one by its number, objectives.0.kind"},
    {"task", "objectives.0.kind", "tasks with labels are learned by `cloze finetune RUN TASK.yaml`"},
    {"objective", "objectives.0.kind", "a family, such as bert, is model.kind"},
    {"data data.path train_file input_file data_dir", "data.tokens"},
    {"dataset dataset_name", "data.tokens", "no data set is downloaded; prepare its text with `cloze prepare`"},
    {"optimizer optim", "optimizer.kind"},
    {"schedule schedule.kind schedule.type schedule.name scheduler lr_scheduler_type lr_scheduler", "schedule.shape"},
    {"adam_beta1", "optimizer.beta1"},
    {"adam_beta2", "optimizer.beta2"},
    {"adam_epsilon adam_eps eps", "optimizer.epsilon"},
    {"betas adam_betas", "optimizer.beta1", "the second is optimizer.beta2"},
    {"wd", "optimizer.weight_decay"},
    {"clip_norm grad_clip", "optimizer.max_grad_norm"},
    {"min_lr", "schedule.end_factor", "it is a share of the learning rate"},
    {"lr_decay_iters total_num_update", "train.budget.steps", "the schedule ends with the budget"},
    {"num_train_epochs num_epochs max_epoch", "train.budget.epochs"},
    {"per_device_train_batch_size train_batch_size bs", "train.batch_size"},
    {"max_tokens", "train.batch_size", "it counts sequences of at most data.max_seq_length tokens"},
    {"per_device_eval_batch_size", "train.batch_size", "held-out sequences are read in batches of that size too"},
    {"gradient_accumulation_steps gradient_accumulation grad_accum_steps update_freq", "train.accumulation"},
    {"dataloader_num_workers num_workers", "train.workers"},
    {"random_seed", "train.seed"},
    {"data_seed", "train.seeds.order"},
    {"mixed_precision torch_dtype dtype", "train.precision"},
    {"amp bf16", "train.precision", "its value is bf16 or fp32"},
    {"use_cpu no_cuda", "train.device"},
    {"gpu", "train.device", "its value is cpu, cuda or cuda:N"},
    {"gpus devices", "train.device", one_device},
    {"n_gpu num_gpus nproc_per_node nnodes world_size local_rank distributed multi_gpu ddp fsdp deepspeed", "",
     one_device},
    {"logging_steps log_interval", "checkpoint.log_every"},
    {"save_total_limit keep_interval_updates", "checkpoint.keep"},
    {"evaluation_strategy", "evaluation.every", "it counts steps"},
    {"eval_iters", "evaluation.sequences", "it counts sequences, not batches"},
    {"early_stopping_patience", "evaluation.patience"},
    {"model_name_or_path", "init.from", "a Hugging Face folder becomes a run by `cloze import`"},
    {"resume_from_checkpoint resume_from", "", "a run is continued by `cloze pretrain --run DIR --resume`"},
    {"output_dir out_dir save_dir run_name", "", "the folder of a run is named with --run"},
    {"overwrite_output_dir", "", "no run is overwritten; name another folder with --run"},
    {"fp16", "train.precision", "there is no fp16; bf16 needs no loss scaling"},
    {"report_to wandb", "",
     "TensorBoard reads the folder of a run, and --hook runs a command at each event, for W&B or MLflow"},
    {"hook hooks", "", "a command is named with --hook for each process, so that no config of others runs one"},
    {"callbacks", "", "a command that is told what happens is named with --hook"},
    {"compile", "", "nothing is compiled at run time; fused operators are used by default"},
    {"masked_lm_prob masking.rate masking_rate masking_ratio mask_rate mask_ratio mlm_prob",
     "objectives.0.mlm_probability"},
    {"mask_prob", "objectives.0.mlm_probability", "mask_prob of an objective is the share of these that become [MASK]"},
    {"masking", "objectives.0.mlm_probability", "the seed of the masks is train.seeds.masking"},
    {"whole_word_mask", "objectives.0.unit", "its value is word"},
    {"d_model n_embd embed_dim hidden_dim encoder_embed_dim", "model.hidden_size"},
    {"d_ff n_inner ffn_dim encoder_ffn_embed_dim", "model.intermediate_size"},
    {"n_layer n_layers num_layers layers encoder_layers", "model.num_hidden_layers"},
    {"n_head n_heads nhead num_heads heads encoder_attention_heads", "model.num_attention_heads"},
    {"activation activation_function activation_fn", "model.hidden_act"},
    {"n_positions max_positions", "model.max_position_embeddings"},
    {"dropout", "model.hidden_dropout_prob"},
    {"attention_dropout", "model.attention_probs_dropout_prob"}};

}  // namespace

const std::vector<ForeignName>& foreign_names() {
  static const auto names = [] {
    std::vector<ForeignName> all;
    for (const auto& row : foreign_rows)
      for (const auto& name : separated(row.names, " ")) all.push_back({name, row.key, row.advice});
    return all;
  }();
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
  std::vector<std::string> paths;
  for (const auto& entry : all)
    if (entry.leaf && entry.path.ends_with(end)) paths.push_back(entry.path);
  return paths.size() <= few ? paths : std::vector<std::string>{};
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
