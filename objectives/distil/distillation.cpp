#include "objectives/distil/distillation.h"

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/tensor/moved.h"
#include "core/tensor/plain.h"
#include "models/transformer_config.h"
#include "objectives/distil/soft_targets.h"
#include "objectives/task_heads/head_kind.h"
#include "objectives/task_heads/layer_probes.h"

namespace cloze {

namespace {

constexpr int64_t numbers_at_once = 1 << 25;  // of logits

double number(int64_t n) { return static_cast<double>(n); }

/// The head whose logits are compared: that of a task, or the first with a vocabulary; null: none.
Objective* head_with_logits(const Network& network) {
  at::NoGradGuard no_grad;
  const auto state = at::zeros({1, backbone_of(network.model_config()).hidden_size});
  for (const auto& objective : network.objectives) {
    const bool of_task = dynamic_cast<LabelledLoss*>(objective.get()) && !dynamic_cast<LayerProbes*>(objective.get());
    if (of_task || objective->projection(*network.backbone, state)) return objective.get();
  }
  return nullptr;
}

bool has_vocabulary(const Objective& head) { return dynamic_cast<const LabelledLoss*>(&head) == nullptr; }

/// What a network has of a batch.
struct Read {
  Tensor hidden;  ///< [B, T, D]
  const Trace& trace;
  int64_t layers;

  /// [B, T, D] after a layer, from 1 on; 0: after the embeddings.
  const Tensor& state(int64_t layer) const { return trace.hidden_states.at(block_of(layer)); }
  /// Queries, keys and values [B, T, 3 H C] of the last block of a layer.
  const Tensor& projections(int64_t layer) const { return trace.projections.at(block_of(layer) - 1); }

 private:
  /// Traces are by block.
  size_t block_of(int64_t layer) const {
    return static_cast<size_t>(layer * ((std::ssize(trace.hidden_states) - 1) / layers));
  }
};

/// The divergence of the logits that both have of a vocabulary, row by row: so many logits at a time.
Tensor divergence_over_vocabulary(const VocabularyProjection& student, const VocabularyProjection& teacher,
                                  double temperature) {
  const int64_t count = student.rows.size(0),
                block = std::max<int64_t>(1, numbers_at_once / student.table.value().size(0));
  std::vector<Tensor> all{at::empty({0}, student.rows.options().dtype(at::kFloat))};
  for (int64_t first = 0; first < count; first += block) {
    const auto logits = [&](const VocabularyProjection& of) {
      return linear(of.rows.narrow(0, first, std::min(block, count - first)), of.table, of.bias);
    };
    const auto wanted = [&] {
      const at::NoGradGuard no_grad;
      return logits(teacher);
    }();
    all.push_back(divergence(logits(student), wanted, temperature));
  }
  return at::cat(all);
}

struct Distillation final : Objective {
  Distillation(const DistilConfig& c, const Network& of, std::shared_ptr<Network> from)
      : Objective(ObjectiveTerms{}), config(c), student(of), teacher(std::move(from)), own_head(head_with_logits(of)) {
    const auto &model = backbone_of(student.model_config()), &taught = backbone_of(teacher->model_config());
    if (config.logits > 0) check_logits(model, taught);
    const bool same_width = model.hidden_size == taught.hidden_size;
    require<ConfigError>(same_width || (config.cosine == 0 && config.patient == 0), "distil.",
                         config.cosine > 0 ? "cosine" : "patient", " compares states of one width, and those of ",
                         config.teacher, " have ", taught.hidden_size, ", of this network ", model.hidden_size,
                         "; set it to 0, and compare them with distil.hidden");
    if (config.reads_layers()) check_layers();
    const auto fit = [&](const char* name) {
      return own(name, std::make_shared<Linear>(model.hidden_size, taught.hidden_size));
    };
    if (!same_width && config.hidden > 0) hidden_fit = fit("hidden");
    if (!same_width && config.embeddings > 0) embeddings_fit = fit("embeddings");
  }

  void check_logits(const BackboneConfig& model, const BackboneConfig& taught) {
    teachers_head = head_with_logits(*teacher);
    const bool of_task = own_head && !has_vocabulary(*own_head);
    const bool have_same = own_head && teachers_head && own_head->head_name() == teachers_head->head_name();
    require<ConfigError>(have_same, "distil.logits: ", config.teacher, " has no head for ",
                         own_head ? own_head->name() : "tokens", ", so that it has no logits to learn; ",
                         of_task ? "fine-tune it on the task first" : "name a run that has", ", or set it to 0");
    require<ConfigError>(of_task || model.vocab_size == taught.vocab_size, "distil.logits: ", config.teacher, " has ",
                         taught.vocab_size, " logits, and this network ", model.vocab_size,
                         "; set model.vocab_size=", taught.vocab_size);
  }

  void check_layers() {
    const auto &model = backbone_of(student.model_config()), &taught = backbone_of(teacher->model_config());
    require<ConfigError>(!taught.is_encoder_decoder() && !taught.is_two_stream(), "distil.teacher: ", config.teacher,
                         " has two stacks or streams, and distil compares the layers of one; compare distil.logits");
    const int64_t least = config.patient > 0 ? 2 : 1;
    require<ConfigError>(model.num_hidden_layers >= least, "distil compares ",
                         config.patient > 0 ? "layers below the last" : "layers", ", and this network has ",
                         model.num_hidden_layers, "; set ", config.patient > 0 ? "distil.patient" : "their factors",
                         " to 0");
    layers = mapped_layers(config.layers, model.num_hidden_layers, taught.num_hidden_layers, "distil.layers",
                           config.teacher);
    if (!config.reads_attention()) return;
    const auto heads = [&](const Network& network, const std::string& owner) {
      const auto* sizes = as<TransformerConfig>(network.model_config());
      require<ConfigError>(sizes && has_plain_scores(*sizes),
                           "distil compares attention of all tokens to all, whose scores are products of queries and "
                           "keys, and that of ",
                           owner, " is another; set distil.scores, distil.attention and distil.values to 0");
      return sizes->num_attention_heads;
    };
    own_heads = heads(student, "this network");
    require<ConfigError>(heads(*teacher, config.teacher) == own_heads, "distil compares attention head by head, and ",
                         config.teacher, " has ", heads(*teacher, config.teacher), " heads, this network ", own_heads,
                         "; set model.num_attention_heads=", heads(*teacher, config.teacher));
  }

  /// Scores are products of queries and keys, whose positions at most turn them.
  static bool has_plain_scores(const TransformerConfig& c) {
    const auto& relative = c.positions.relative;
    const bool adds_nothing =
        std::holds_alternative<NoRelativePositions>(relative) || std::holds_alternative<Rotary>(relative);
    return c.is_encoder() && is_full(c.attention) && c.scale_scores && adds_nothing;
  }

  std::string name() const override { return "distil"; }
  bool reads_layers() const override { return config.reads_layers(); }
  bool reads_projections() const override { return config.reads_attention(); }

  /// The states of all tokens are compared, or their logits.
  bool reads_all() const {
    const bool compares_all_logits = has_vocabulary_logits() && config.tokens == TaughtTokens::all;
    return config.cosine > 0 || config.reads_layers() || compares_all_logits;
  }
  Tensor read_positions(const Batch& batch) const override {
    if (reads_all() || of_decoder(batch)) return {};
    return has_vocabulary_logits() ? batch.positions : own_head->read_positions(batch);
  }
  static bool of_decoder(const Batch& batch) { return batch.decoder_input_ids.defined(); }

  /// Flat indices of the tokens that are no padding, of the decoder where there is one.
  Tensor tokens_of(const Batch& batch) const {
    if (of_decoder(batch)) return batch.positions;
    const auto& mask = batch.host().attention_mask;
    const auto all = mask.defined() ? mask : at::ones_like(batch.host().input_ids, at::kBool);
    return moved_to(all.flatten().nonzero().flatten(), batch.input_ids.device());
  }
  int64_t count_tokens(const Batch& batch) const {
    if (of_decoder(batch)) return batch.positions.numel();
    const auto& mask = batch.host().attention_mask;
    return mask.defined() ? mask.sum().item<int64_t>() : batch.input_ids.numel();
  }
  Tensor tokens_with_logits(const Batch& batch) const {
    return config.tokens == TaughtTokens::predicted ? batch.positions : tokens_of(batch);
  }
  int64_t count_logits(const Batch& batch) const {
    if (!has_vocabulary(*own_head)) return own_head->parts(batch)[0].count;
    return config.tokens == TaughtTokens::predicted ? batch.positions.numel() : count_tokens(batch);
  }

  std::vector<LossPart> parts(const Batch& batch) const override {
    std::vector<LossPart> all;
    const auto add = [&](const char* what, double weight, int64_t count) {
      if (weight > 0) all.push_back({.name = what, .weight = weight, .count = count, .has_accuracy = false});
    };
    const auto tokens = count_tokens(batch);
    if (config.logits > 0) add("distil", config.logits, count_logits(batch));
    add("distil_cosine", config.cosine, tokens);
    add("distil_hidden", config.hidden, tokens);
    add("distil_embeddings", config.embeddings, tokens);
    add("distil_scores", config.scores, tokens);
    add("distil_attention", config.attention, tokens);
    add("distil_values", config.values, tokens);
    add("distil_patient", config.patient, batch.input_ids.size(0));
    return all;
  }

  Cost cost(const Backbone& backbone, const std::vector<RowSizes>& given) const override {
    Cost sum;
    auto rows = given;
    for (auto& row : rows) {
      if (reads_all()) row.read = row.length;
      if (config.tokens == TaughtTokens::all && row.target_length == 0 && has_vocabulary_logits())
        row.predicted = row.length;
    }
    sum.frozen += teacher->backbone->multiply_adds(rows);
    if (config.logits > 0) {
      sum.trained += own_head->cost(backbone, rows).trained;
      sum.frozen += teachers_head->cost(*teacher->backbone, rows).trained;
    }
    const double tokens = total(rows, &RowSizes::length);
    if (hidden_fit) sum.trained += tokens * number(std::ssize(layers)) * hidden_fit->multiply_adds();
    if (embeddings_fit) sum.trained += tokens * embeddings_fit->multiply_adds();
    return sum;
  }
  bool has_vocabulary_logits() const { return config.logits > 0 && has_vocabulary(*own_head); }

  std::vector<LossPart> losses(Backbone& backbone, const Tensor& hidden, const Batch& batch) override {
    return layer_losses(backbone, hidden, batch, {});
  }
  std::vector<LossPart> layer_losses(Backbone& backbone, const Tensor& hidden, const Batch& batch,
                                     const Traces& layers_of_student) override {
    auto all = parts(batch);
    size_t next = 0;
    const auto fill = [&](double weight, const auto& rows) {
      if (weight > 0) all[next++].sum = rows().sum(at::kDouble).to(at::kFloat);
    };
    Traces of_teacher;
    const Read own{hidden, layers_of_student.encoder, layers_in(student)},
        taught{teachers_states(batch, of_teacher), of_teacher.encoder, layers_in(*teacher)};
    const auto tokens = config.cosine > 0 || config.reads_layers() ? tokens_of(batch) : Tensor();
    const auto both = [&](int64_t m) { return std::pair{own.state(m), taught.state(teachers_layer(m))}; };
    fill(config.logits, [&] { return logits_losses(backbone, own, taught, batch); });
    fill(config.cosine, [&] {
      return cosine_distance(take_rows(own.hidden.flatten(0, 1), tokens),
                             take_rows(taught.hidden.flatten(0, 1), tokens));
    });
    fill(config.hidden, [&] {
      return over_layers(1, layers_in(student), [&](int64_t m) { return squares(both(m), tokens, hidden_fit); });
    });
    fill(config.embeddings, [&] { return squares(both(0), tokens, embeddings_fit); });
    fill(config.scores, [&] {
      return over_layers(1, layers_in(student),
                         [&](int64_t m) { return score_squares(own, taught, m, batch, tokens); });
    });
    fill(config.attention, [&] { return relation_losses(own, taught, {0, 1}, batch, tokens); });
    fill(config.values, [&] { return relation_losses(own, taught, {2, 2}, batch, tokens); });
    fill(config.patient,
         [&] { return over_layers(1, layers_in(student) - 1, [&](int64_t m) { return first_squares(both(m)); }); });
    return all;
  }

  NetworkOutputs outputs(Backbone&, const Tensor&) override { return {}; }

  /// The last states, and with `traces` those of all layers, without gradients.
  Tensor teachers_states(const Batch& batch, Traces& traces) const {
    const at::NoGradGuard no_grad;
    Inputs inputs = batch;
    inputs.read_positions = read_positions(batch);
    inputs.padding_is_unread = true;
    inputs.mems.clear();
    inputs.new_mems = nullptr;
    traces.encoder.keeps_attentions = false;
    traces.encoder.keeps_projections = config.reads_attention();
    return teacher->backbone->hidden(inputs, config.reads_layers() ? &traces : nullptr);
  }

  Tensor logits_losses(Backbone& backbone, const Read& own, const Read& taught, const Batch& batch) const {
    if (!has_vocabulary(*own_head)) return task_losses(backbone, own, taught, batch);
    const auto at = tokens_with_logits(batch);
    const auto projected = [&](const Objective& head, const Backbone& of, const Tensor& hidden) {
      return *head.projection(of, take_rows(hidden.flatten(0, 1), at));
    };
    const auto wanted = [&] {
      const at::NoGradGuard no_grad;
      return projected(*teachers_head, *teacher->backbone, taught.hidden);
    }();
    return divergence_over_vocabulary(projected(*own_head, backbone, own.hidden), wanted, config.temperature);
  }

  /// Of the logits of a task, by each of its outputs: the first and the last token of an answer are two.
  Tensor task_losses(Backbone& backbone, const Read& own, const Read& taught, const Batch& batch) const {
    const auto given = own_head->batch_outputs(backbone, own.hidden, batch);
    const auto wanted = [&] {
      const at::NoGradGuard no_grad;
      return teachers_head->batch_outputs(*teacher->backbone, taught.hidden, batch);
    }();
    Tensor sum;
    for (size_t k = 0; k < given.size(); ++k) {
      const auto rows = divergence(counted_rows(given[k], batch), counted_rows(wanted[k], batch), config.temperature);
      sum = sum.defined() ? sum + rows : rows;
    }
    return sum / number(std::ssize(given));
  }
  /// The logits [N, K] that the loss of a task counts.
  static Tensor counted_rows(const std::pair<std::string, Tensor>& output, const Batch& batch) {
    const auto& [name, logits] = output;
    if (name != "logits")  // of spans [B, T]
      return batch.attention_mask.defined()
                 ? logits.masked_fill(batch.attention_mask.logical_not(), -std::numeric_limits<float>::infinity())
                 : logits;
    const auto rows = logits.dim() > 2 ? take_rows(logits.flatten(0, 1), batch.positions) : logits;
    const auto counted = moved_to(batch.host().labels.ne(uncounted_label).nonzero().flatten(), rows.device());
    return take_rows(rows, counted);
  }

  static int64_t layers_in(const Network& network) { return backbone_of(network.model_config()).num_hidden_layers; }
  int64_t teachers_layer(int64_t m) const { return m == 0 ? 0 : layers.at(static_cast<size_t>(m - 1)); }

  /// The sum of what f(m) gives for layers `first` to `last`.
  template <class F>
  static Tensor over_layers(int64_t first, int64_t last, const F& f) {
    auto sum = f(first);
    for (int64_t m = first + 1; m <= last; ++m) sum = sum + f(m);
    return sum;
  }

  /// The mean squared difference of the states of each token, those of the student through a layer where there is one.
  static Tensor squares(const std::pair<Tensor, Tensor>& states, const Tensor& tokens,
                        const std::shared_ptr<Linear>& fit) {
    const auto own = take_rows(states.first.flatten(0, 1), tokens);
    const auto given = fit ? fit->forward(own) : own;
    return (given.to(at::kFloat) - take_rows(states.second.flatten(0, 1), tokens).to(at::kFloat)).square().mean(-1);
  }

  /// Source: Sun et al. 2019, equation 7.
  static Tensor first_squares(const std::pair<Tensor, Tensor>& states) {
    const auto unit = [](const Tensor& of_layer) {
      const auto first = of_layer.select(1, 0).to(at::kFloat);
      return first / (first.square().sum(-1, /*keepdim=*/true) + 1e-12).sqrt();
    };
    return (unit(states.first) - unit(states.second)).square().sum(-1);  // [B]
  }

  /// Products fp32 [B, H, T, T] of two of queries, keys and values, over the root of their width.
  Tensor relations(const Tensor& projections, std::pair<size_t, size_t> parts) const {
    const auto all = projections.chunk(3, -1);
    const auto a = plain::heads_of(all[parts.first], own_heads).contiguous(),
               b = plain::heads_of(all[parts.second], own_heads).transpose(-1, -2).contiguous();
    return cloze::matmul(a, b).to(at::kFloat) / std::sqrt(number(a.size(-1)));
  }

  /// The mean squared difference of the scores of each token. Source: Jiao et al. 2020, equation 7.
  Tensor score_squares(const Read& own, const Read& taught, int64_t m, const Batch& batch, const Tensor& tokens) const {
    auto squared = (relations(own.projections(m), {0, 1}) - relations(taught.projections(teachers_layer(m)), {0, 1}))
                       .square()
                       .mean(1);  // [B, T, T]
    if (!batch.attention_mask.defined()) return take_rows(squared.mean(-1).flatten().unsqueeze(1), tokens).squeeze(1);
    const auto keys = batch.attention_mask.to(at::kFloat).unsqueeze(1);  // [B, 1, T]
    const auto means = (squared * keys).sum(-1) / keys.sum(-1);
    return take_rows(means.flatten().unsqueeze(1), tokens).squeeze(1);
  }

  /// The divergence of softmaxes of products in the last layer, mean over heads, of each token.
  /// Source: Wang et al. 2020, equations 3 and 5 (arXiv 2002.10957).
  Tensor relation_losses(const Read& own, const Read& taught, std::pair<size_t, size_t> parts, const Batch& batch,
                         const Tensor& tokens) const {
    const auto of = [&](const Read& read, int64_t layer) {
      auto all = relations(read.projections(layer), parts);
      if (batch.attention_mask.defined())
        all = all.masked_fill(batch.attention_mask.logical_not().unsqueeze(1).unsqueeze(1),
                              -std::numeric_limits<float>::infinity());
      return all.flatten(0, 2);
    };
    const auto rows = divergence(of(own, layers_in(student)), of(taught, layers.back()), 1);
    const auto means = rows.view({batch.input_ids.size(0), own_heads, -1}).mean(1);  // [B, T]
    return take_rows(means.flatten().unsqueeze(1), tokens).squeeze(1);
  }

  DistilConfig config;
  const Network& student;
  std::shared_ptr<Network> teacher;
  Objective *own_head, *teachers_head = nullptr;
  std::vector<int64_t> layers{};  ///< of the teacher, for each of the student
  int64_t own_heads = 0;
  std::shared_ptr<Linear> hidden_fit{}, embeddings_fit{};
};

}  // namespace

std::shared_ptr<Objective> make_distillation(const DistilConfig& config, const Network& student,
                                             std::shared_ptr<Network> teacher) {
  return std::make_shared<Distillation>(config, student, std::move(teacher));
}

}  // namespace cloze
