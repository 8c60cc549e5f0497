#include "run/config/config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/contains.h"
#include "core/text.h"
#include "models/encoder_decoder_config.h"
#include "models/families/model_config.h"
#include "models/stack_parts.h"
#include "objectives/constraints.h"
#include "objectives/task_heads/task_heads.h"
#include "run/config/evaluation_protocol.h"

namespace cloze {

namespace {

/// How often a forward pass is divided, so that each part of a step has as many.
int64_t divisor_of_batches(const TrainConfig& train) {
  return train.parts <= train.accumulation ? 1 : train.parts / std::gcd(train.parts, train.accumulation);
}

/// With forward passes that every part of a step has as many of.
RunConfig in_parts(RunConfig config) {
  auto& train = config.train;
  const auto divisor = divisor_of_batches(train);
  if (train.batch_size % divisor != 0) return config;  // check_parts refuses it
  train.batch_size /= divisor;
  train.accumulation *= divisor;
  return config;
}

/// Parts of a step have whole forward passes.
void check_parts(const TrainConfig& train, Constraints& constraints) {
  const auto divisor = divisor_of_batches(train), below = train.batch_size / divisor * divisor;
  constraints.forbid(train.batch_size % divisor != 0, "train.parts ", train.parts, " divide each forward pass by ",
                     divisor, ", and train.batch_size is ", train.batch_size,
                     "; set train.batch_size=", below > 0 ? concat(below, " or ") : "", below + divisor);
}

/// A mixture of texts to train on. What the texts are is read later (data/store/read_mixture.h).
void check_mixture(const RunConfig& c, Constraints& constraints) {
  constexpr double most_weight = 1e9;  // sums of much larger ones are no numbers
  const auto& mixture = c.data.mixture;
  if (mixture.empty()) return;
  constraints.forbid(c.data.tokens.empty(),
                     "data.mixture says what is trained on, and data.tokens is not given, whose "
                     "held-out text the run is scored on; name it too");
  for (size_t i = 0; i < mixture.size(); ++i) {
    const auto& [tokens, weight] = mixture[i];
    constraints.forbid(tokens.empty(), "data.mixture.", i,
                       " names no tokens; give it a folder made by `cloze prepare`");
    constraints.forbid(!(weight > 0), "data.mixture.", i, ".weight is ", weight,
                       ", and a text needs a share above 0; raise it, or leave the text out");
    constraints.forbid(weight > most_weight, "data.mixture.", i, ".weight is ", weight, ", more than ", most_weight,
                       "; weights are relative, so divide all by the same number");
  }
  constraints.forbid(
      std::ranges::any_of(c.objectives, [](const auto& objective) { return task_head_of(objective) != nullptr; }),
      "data.mixture mixes texts, and the rows of a task are as they were prepared; leave it out");
}

/// Mems continue a text from step to step.
void check_mems(const RunConfig& c, Constraints& constraints) {
  if (!carries_mems(c.model)) return;
  constraints.forbid(
      c.data.mixture.size() > 1,
      "data.mixture takes every row from another text, and the mems of model.mem_len and model.reuse_len "
      "continue one text from step to step; name one text, or set model.mem_len to 0");
  constraints.forbid(
      !c.train.phases.empty(),
      "train.phases cut the text anew, and the mems of model.mem_len and model.reuse_len continue it from "
      "step to step; remove the phases, or set model.mem_len to 0");
}

/// Rows that fit the model.
void check_data(const RunConfig& c, Constraints& constraints) {
  if (const auto* model = as<TransformerConfig>(c.model))
    constraints.forbid(c.data.max_seq_length > model->max_input_length(), "data.max_seq_length ", c.data.max_seq_length,
                       " is longer than model.max_position_embeddings ", model->max_position_embeddings,
                       model->positions_after_padding
                           ? concat(" allows: ", model->max_input_length(), " (positions start at pad_token_id + 1)")
                           : "",
                       "; shorten the sequences or give the model more positions");
}

void check_budget(const TrainConfig& train, const ScheduleConfig& schedule, Constraints& constraints) {
  const auto& budget = train.budget;
  constraints.forbid(
      !budget.limited(),
      "train.budget has no limit; give steps, tokens, predicted_tokens, words, epochs, flops or minutes");
  constraints.forbid(schedule.warmup >= 1 && budget.steps > 0 && schedule.warmup >= static_cast<double>(budget.steps),
                     "schedule.warmup ", schedule.warmup, " is not shorter than train.budget.steps ", budget.steps,
                     "; shorten it");
}

/// The rules of the rows, which the first phase may keep and another break.
void check_rows_of_phase(const RunConfig& c, int64_t phase, const std::string& name, Constraints& constraints) {
  const auto own = config_of_phase(c, phase);
  Constraints broken;
  check_constraints(objective_setting(own), broken);
  check_data(own, broken);
  check_parts(own.train, broken);
  const auto known = constraints.broken();
  for (const auto& sentence : broken.broken()) constraints.forbid(!contains(known, sentence), name, ": ", sentence);
}

/// Heads on a backbone that stays as it is.
void check_probe(const RunConfig& c, Constraints& constraints) {
  constraints.forbid(c.init.probe && c.init.from.empty(),
                     "init.probe trains heads on the backbone of another run; name it with init.from");
  const auto* head = c.objectives.empty() ? nullptr : task_head_of(c.objectives[0]);
  constraints.forbid(
      head && !head->layer.empty() && !c.init.probe,
      "objectives.0.layer has the probe of a layer, and init.probe is false, so that the layers would be "
      "trained; set init.probe=true, or leave layer out");
}

/// What is trained beside weights that stay.
void check_adaptation(const RunConfig& c, Constraints& constraints) {
  if (c.adaptation.kind.is_full()) return;
  const auto kind = concat("adaptation.kind ", kind_in(c.adaptation.kind));
  constraints.forbid(c.init.from.empty(), kind, " trains beside the weights of another run; name it with init.from");
  constraints.forbid(c.init.probe || c.freeze.layers >= 0, kind,
                     " says what is trained, and so do init.probe and freeze.layers; leave one of them out");
  const auto* lora = std::get_if<LoraAdaptation>(&c.adaptation.kind);
  constraints.forbid(lora && lora->targets.empty(),
                     "adaptation.targets is empty, so that nothing of the network is trained; "
                     "name layers, or train heads alone with init.probe");
}

/// A teacher, and layers of a deeper network to begin with.
void check_teaching(const RunConfig& c, Constraints& constraints) {
  check_distil(c.distil, objective_setting(c), constraints);
  constraints.forbid(c.distil.is_on() && c.init.probe,
                     "distil trains a network, and init.probe keeps it as it is; leave one of them out");
  constraints.forbid(
      c.distil.is_on() && c.distil.reads_attention() && c.train.gradient_checkpointing,
      "distil.scores, distil.attention and distil.values read what train.gradient_checkpointing does not "
      "keep; set it to false, or them to 0");
  constraints.forbid(!c.init.layers.empty() && c.init.from.empty(),
                     "init.layers are those of another run; name it with init.from");
  const auto* sharing = as<LayerSharing>(c.model);
  const auto depth = backbone_of(c.model).num_hidden_layers;
  const bool has_others = sharing && (sharing->groups_of(depth) < depth || sharing->inner_group_num > 1);
  constraints.forbid(!c.init.layers.empty() && (!as<TransformerConfig>(c.model) || has_others),
                     "init.layers chooses among layers of one stack that have weights of their own, and those of ",
                     kind_of(c.model), " are others; leave it out");
}

/// A run is fine-tuned on one task, with one head of it, and its rows are those of the task whatever its phases.
void check_task(const RunConfig& c, Constraints& constraints) {
  const auto& task = c.task;
  const bool has_rows = !task.name.empty() ||
                        std::ranges::any_of(c.objectives, [](const auto& one) { return task_head_of(one) != nullptr; });
  constraints.forbid(
      c.data.drop_last && !has_rows,
      "data.drop_last is of the items of a task, and the rows of a text go on over its epochs; leave it out");
  if (task.name.empty()) {
    constraints.forbid(
        !(task.file + task.like + task.metric + task.fingerprint).empty(),
        "the section task is of a fine-tuned run, and task.name is empty; leave it out, or fine-tune with "
        "`cloze finetune`");
    return;
  }
  const bool has_head = !c.objectives.empty() && learns_task(c.objectives[0]);
  constraints.forbid(!has_head, "task.name is ", c.task.name,
                     ", and objectives have no head of a task; leave them as `cloze finetune` makes them");
  constraints.forbid(
      !c.train.phases.empty(),
      "train.phases cut the text anew, and the rows of a task are as they were prepared; remove the phases");
}

void check_phases(const RunConfig& c, Constraints& constraints) {
  const auto& phases = c.train.phases;
  double before = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const auto name = concat("train.phases.", i);
    const int64_t length = phases[i].max_seq_length;
    constraints.forbid(phases[i].from <= before, name, ".from ", phases[i].from, " is not after ", before,
                       ", where the phase before it begins; list phases in their order");
    constraints.forbid(length > 0 && length < 4, name, ".max_seq_length ", length,
                       " leaves no room for text; give at least 4, or 0 for data.max_seq_length");
    check_rows_of_phase(c, static_cast<int64_t>(i) + 1, name, constraints);
    before = phases[i].from;
  }
}

void check_device(const std::string& device, Constraints& constraints) {
  constraints.forbid(device != "cpu" && device != "cuda" && !device.starts_with("cuda:"), "train.device '", device,
                     "' is unknown; use cpu, cuda or cuda:N");
}

/// Held-out rows, where they differ from those of training.
void check_evaluation(const RunConfig& c, Constraints& constraints) {
  const auto& evaluation = c.evaluation;
  const bool differs = !evaluation.objectives.empty() || evaluation.max_seq_length > 0 ||
                       evaluation.packing != EvaluationConfig{}.packing;
  if (!differs) return;
  for (const auto& error : evaluation_errors(c)) constraints.forbid(true, error);
}

void check_optimizer(const OptimizerConfig& optimizer, Constraints& constraints) {
  constraints.forbid(updates_matrices_alone(optimizer.rule), "optimizer.kind ", optimizer.rule,
                     " updates matrices alone; give it a group of them (optimizer.groups, with kind: ", optimizer.rule,
                     " and role: weight), and another kind the rest");
  constraints.forbid(optimizer.learning_rate == 0 && !optimizer.groups.empty(),
                     "optimizer.learning_rate is 0, so that the schedule gives optimizer.groups no rate; raise it");
  constraints.forbid(
      optimizer.learning_rate == 0 && optimizer.head_rate > 0,
      "optimizer.learning_rate is 0, so that the schedule gives optimizer.head_rate no rate; raise it, or train "
      "the heads alone with init.probe");
}

/// The layers of a network: of its stack, or of its encoder and its decoder.
int64_t layers_of(const ModelConfig& model) {
  const auto& base = backbone_of(model);
  const auto* both = base.is_encoder_decoder() ? as<EncoderDecoderConfig>(model) : nullptr;
  return base.num_hidden_layers + (both ? both->decoder_layers() : 0);
}

/// What counts layers from the embeddings on. Layers that share weights are at several depths at once.
void check_depths(const RunConfig& c, Constraints& constraints) {
  const auto frozen = c.freeze.layers;
  const auto* sharing = as<LayerSharing>(c.model);
  const bool shares =
      sharing && sharing->groups_of(backbone_of(c.model).num_hidden_layers) < backbone_of(c.model).num_hidden_layers;
  constraints.forbid(shares && c.optimizer.layer_decay != 1, "optimizer.layer_decay is ", c.optimizer.layer_decay,
                     ", and layers of ", kind_of(c.model),
                     " share weights, which have no depth of their own; set it to 1");
  constraints.forbid(shares && frozen > 0, "freeze.layers is ", frozen, ", and layers of ", kind_of(c.model),
                     " share weights with layers above them; set it to 0 for the embeddings alone, or use init.probe");
  constraints.forbid(frozen >= 0 && c.init.from.empty(),
                     "freeze.layers keeps the weights of another run; name it with init.from");
  constraints.forbid(frozen >= 0 && c.init.probe,
                     "freeze.layers is given, and init.probe keeps all layers as they are; leave one of them out");
  constraints.forbid(shares && c.freeze.gradual, "freeze.gradual trains layer by layer, and layers of ",
                     kind_of(c.model), " share weights, which have no depth of their own; leave it out");
  constraints.forbid(
      c.freeze.gradual && (frozen >= 0 || c.init.probe || !c.adaptation.kind.is_full()),
      "freeze.gradual trains all layers in the end, and freeze.layers, init.probe and adaptation keep some; leave "
      "one of them out");
  const auto layers = layers_of(c.model);
  constraints.forbid(frozen > layers, "freeze.layers is ", frozen, ", and the network has ",
                     counted(static_cast<uint64_t>(layers), "layer"), "; lower it");
}

void check_schedule(const ScheduleConfig& s, int64_t steps, Constraints& constraints) {
  constraints.forbid(part_in<TransformerSchedule>(s.shape) && s.warmup < 1,
                     "schedule.shape transformer counts its warm-up in steps, and schedule.warmup is ", s.warmup,
                     "; give 1 or more (4000 in the paper)");
  const auto* decays = part_in<FinalDecay>(s.shape);
  if (!decays) return;
  constraints.forbid(decays->decay == 0, "schedule.shape ", s.shape,
                     " decays, and schedule.decay is 0; raise it, or choose constant");
  const double warmup = s.warmup < 1 ? s.warmup : steps > 0 ? s.warmup / static_cast<double>(steps) : 0;
  constraints.forbid(warmup > stable_fraction(s), "schedule.warmup ", s.warmup,
                     " lasts into the decay of schedule.shape ", s.shape, ", which begins after ", stable_fraction(s),
                     " of the budget; shorten the warm-up or schedule.decay");
}

}  // namespace

ObjectiveSetting objective_setting(const RunConfig& config) {
  return {.model = config.model,
          .data = config.data,
          .objectives = config.objectives,
          .batch_size = config.train.batch_size,
          .accumulation = config.train.accumulation,
          .steps = config.train.budget.steps,
          .ema_decay = config.train.ema_decay,
          .ends_by_text =
              config.train.budget.words > 0 || config.train.budget.epochs > 0 || config.train.budget.tokens > 0};
}

RunConfig config_of_phase(const RunConfig& config, int64_t phase) {
  auto of_phase = config;
  of_phase.train.phases.clear();
  if (phase == 0) return in_parts(std::move(of_phase));
  const auto& own = config.train.phases.at(static_cast<size_t>(phase - 1));
  if (own.max_seq_length > 0) of_phase.data.max_seq_length = own.max_seq_length;
  if (own.batch_size > 0) of_phase.train.batch_size = own.batch_size;
  if (own.accumulation > 0) of_phase.train.accumulation = own.accumulation;
  return in_parts(std::move(of_phase));
}

namespace {

double stable_part(const LinearSchedule&) { return 0; }
double stable_part(const CosineSchedule&) { return 0; }
double stable_part(const OneCycleSchedule&) { return 0; }
double stable_part(const SlantedTriangleSchedule&) { return 0; }
double stable_part(const ConstantSchedule&) { return 1; }
double stable_part(const InverseSqrtSchedule&) { return 1; }
double stable_part(const TransformerSchedule&) { return 1; }
double stable_part(const WsdSchedule& s) { return 1 - s.decay; }
double stable_part(const WsdSSchedule& s) { return std::ldexp(1 - s.decay, static_cast<int>(1 - s.decays)); }

}  // namespace

double stable_fraction(const ScheduleConfig& s) {
  return std::visit([](const auto& shape) { return stable_part(shape); }, s.shape);
}

bool same_losses(const RunConfig& config, int64_t a, int64_t b) {
  return std::all_of(config.objectives.begin(), config.objectives.end(),
                     [&](const ObjectiveConfig& objective) { return as_kind(objective).has_same_losses(a, b); });
}

void validate(const RunConfig& c) {
  Constraints constraints;
  check_constraints(c.model, constraints);
  check_constraints(objective_setting(in_parts(c)), constraints);
  check_data(c, constraints);
  check_parts(c.train, constraints);
  check_mixture(c, constraints);
  check_mems(c, constraints);
  check_budget(c.train, c.schedule, constraints);
  check_schedule(c.schedule, c.train.budget.steps, constraints);
  check_optimizer(c.optimizer, constraints);
  check_depths(c, constraints);
  check_probe(c, constraints);
  check_adaptation(c, constraints);
  check_teaching(c, constraints);
  check_task(c, constraints);
  check_phases(c, constraints);
  check_device(c.train.device, constraints);
  if (constraints.broken().empty()) check_evaluation(c, constraints);  // it validates configs of its own
  std::string text;
  for (const auto& sentence : constraints.broken()) text += (text.empty() ? "" : "\n") + sentence;
  if (!text.empty()) throw ConfigError(text);
}

}  // namespace cloze
