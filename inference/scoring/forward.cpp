#include "inference/scoring/forward.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/tensor/ops.h"
#include "core/tensor/parallel.h"
#include "inference/scoring/counted_flops.h"
#include "run/device.h"

namespace cloze {

namespace {

/// While one exists, a network computes in this precision, without dropout.
class InEvaluation {
 public:
  InEvaluation(Network& network, Precision precision) : network_(network), trained_(network.is_training()) {
    const bool bf16 = computes_in_bf16(network, precision);
    for (auto& [name, param] : collect_params(network)) {
      shadows_.emplace_back(param, param.compute().is_same(param.value()) ? Tensor() : param.compute());
      param.set_shadow(bf16 ? param.value().detach().to(at::kBFloat16) : Tensor());
    }
    network_.eval();
  }
  InEvaluation(const InEvaluation&) = delete;
  InEvaluation& operator=(const InEvaluation&) = delete;
  ~InEvaluation() {
    for (auto& [param, shadow] : shadows_) param.set_shadow(shadow);
    network_.train(trained_);
  }

 private:
  Network& network_;
  bool trained_;
  std::vector<std::pair<Param, Tensor>> shadows_;
};

constexpr int64_t rows_of_weights = 256;  ///< that weights are packed for

/// Tokens of a forward pass: the widest activations of a layer, of which two exist at a time, take about 16 MB, so that
/// they stay in the third-level cache; at most 8192, beyond which matrix multiplications are no faster.
int64_t default_batch_tokens(const BackboneConfig& model) {
  constexpr int64_t numbers = 2 << 20;
  return std::clamp<int64_t>(numbers / std::max<int64_t>(model.widest_activation(), 1), 512, 8192);
}

using Lengths = std::pair<size_t, size_t>;
Lengths lengths_of(const ScoringRow& row) { return {row.ids.size(), row.decoder.size()}; }

/// Tokens before the first that predicts; 0 where a pass of their own is not worth it. `row`: its predictions are
/// sorted.
int32_t context_length(const ScoringRow& row) {
  constexpr int32_t fewest = 16;
  const auto before = row.predictions.front().position;
  return row.prefix > 0 || before < fewest ? 0 : before;
}

std::span<const int32_t> context_of(const ScoringRow& row) {
  return std::span(row.ids).first(static_cast<size_t>(row.context));
}

/// An order in which rows that can be computed together follow each other, and among them those that begin alike.
bool comes_before(const ScoringRow& a, const ScoringRow& b) {
  if (a.context != b.context) return a.context < b.context;
  const auto x = context_of(a), y = context_of(b);
  const auto order = std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(), y.end());
  if (order != 0) return order < 0;
  if (lengths_of(a) != lengths_of(b)) return lengths_of(a) < lengths_of(b);
  return !a.decoder.empty() && a.ids < b.ids;
}

/// The end of the rows from `begin` on that are computed together: of at most `tokens` tokens unless it is a single
/// row. Without contexts they have equal lengths; otherwise their contexts do, of which each counts once.
size_t batch_end(std::span<const ScoringRow> rows, size_t begin, size_t tokens) {
  const auto& first = rows[begin];
  size_t end = begin;
  for (size_t count = 0; end < rows.size(); ++end) {
    const auto& row = rows[end];
    if (row.context != first.context || (first.context == 0 && lengths_of(row) != lengths_of(first))) break;
    const bool same = end > begin && std::ranges::equal(context_of(row), context_of(rows[end - 1]));
    count += row.ids.size() + row.decoder.size() - (same ? context_of(row).size() : 0);
    if (end > begin && count > tokens) break;
  }
  return end;
}

/// Sorted rows in parts that are computed together.
std::vector<std::span<const ScoringRow>> batches_of(std::span<const ScoringRow> rows, int64_t tokens) {
  std::vector<std::span<const ScoringRow>> batches;
  for (size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    end = batch_end(rows, begin, static_cast<size_t>(tokens));
    batches.push_back(rows.subspan(begin, end - begin));
  }
  return batches;
}

/// The number of different positions of a row's predictions, which are sorted by them.
int64_t positions_of(const ScoringRow& row) {
  int64_t count = 0;
  for (size_t k = 0; k < row.predictions.size(); ++k)
    count += k == 0 || row.predictions[k].position != row.predictions[k - 1].position;
  return count;
}

/// The sizes of sorted rows, of which each context counts once.
std::vector<RowSizes> sizes_of(std::span<const ScoringRow> rows) {
  std::vector<RowSizes> sizes;
  for (size_t r = 0; r < rows.size(); ++r) {
    const auto& row = rows[r];
    const bool is_read = r > 0 && row.context > 0 && std::ranges::equal(context_of(row), context_of(rows[r - 1]));
    const auto predicted = static_cast<double>(positions_of(row));
    sizes.push_back({.length = static_cast<double>(row.ids.size() - (is_read ? context_of(row).size() : 0)),
                     .target_length = static_cast<double>(row.decoder.size()),
                     .prefix = static_cast<double>(row.prefix),
                     .read = predicted,
                     .predicted = predicted});
  }
  return sizes;
}

std::vector<const ScoringRow*> pointers_to(std::span<const ScoringRow> rows) {
  std::vector<const ScoringRow*> pointers;
  for (const auto& row : rows) pointers.push_back(&row);
  return pointers;
}

/// int64 [B, columns] of the ids that `ids` takes from each row.
template <class Ids>
Tensor table_of(std::span<const ScoringRow* const> rows, int64_t columns, const Ids& ids) {
  auto tensor = at::empty({static_cast<int64_t>(rows.size()), columns}, at::kLong);
  auto* at = tensor.data_ptr<int64_t>();
  for (const auto* row : rows) at = std::ranges::copy(ids(*row), at).out;
  return tensor;
}

}  // namespace

/// Rows of the same lengths, after contexts of the same length.
struct RowScorer::Batch {
  explicit Batch(std::vector<const ScoringRow*> all_rows) : rows(std::move(all_rows)), context(rows[0]->context) {
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto& all = rows[r]->predictions;
      width = std::max(width, positions_of(*rows[r]));
      for (size_t k = 0; k < all.size(); ++k) {
        if (k == 0 || all[k].position != all[k - 1].position) {
          row.push_back(static_cast<int64_t>(r));
          position.push_back(all[k].position - context);
        }
        state.push_back(static_cast<int64_t>(row.size()) - 1);
        label.push_back(all[k].label);
      }
    }
  }

  int64_t count() const { return static_cast<int64_t>(rows.size()); }
  int64_t length() const { return static_cast<int64_t>(rows[0]->ids.size()) - context; }
  int64_t decoder_length() const { return static_cast<int64_t>(rows[0]->decoder.size()); }
  bool has_prefix() const {
    return std::any_of(rows.begin(), rows.end(), [](const ScoringRow* one) { return one->prefix > 0; });
  }

  /// The tokens after the contexts, int64 [B, T].
  Tensor ids() const {
    return table_of(rows, length(),
                    [&](const ScoringRow& one) { return std::span(one.ids).subspan(static_cast<size_t>(context)); });
  }
  /// Int64 [B, U].
  Tensor decoder_ids() const {
    return table_of(rows, decoder_length(), [](const ScoringRow& one) { return std::span(one.decoder); });
  }

  /// Flat indices of the states that predict, int64 [N], into [B width].
  Tensor flat(int64_t columns) const {
    auto tensor = at::empty({static_cast<int64_t>(row.size())}, at::kLong);
    for (size_t k = 0; k < row.size(); ++k) tensor.data_ptr<int64_t>()[k] = row[k] * columns + position[k];
    return tensor;
  }

  std::vector<const ScoringRow*> rows;
  int32_t context;                     ///< tokens of each row that were read before
  std::vector<int64_t> row, position;  ///< of each state that predicts, in order; the position after the context
  std::vector<int64_t> state, label;   ///< of each prediction
  int64_t width = 0;                   ///< maximum number of states of a row
};

bool computes_in_bf16(const Network& network, Precision precision) {
  return precision == Precision::bf16 && has_fast_bf16(network.backbone->token_embedding().value().device());
}

RowScorer::RowScorer(Network& network, const std::string& head, bool detects, Precision precision, int64_t batch_tokens)
    : network_(network),
      detects_(detects),
      precision_(precision),
      batch_tokens_(batch_tokens > 0 ? batch_tokens : default_batch_tokens(backbone_of(network.model_config()))) {
  for (const auto& objective : network.objectives)
    if (objective->head_name() == head) objective_ = objective.get();
  require<ConfigError>(objective_ != nullptr, "the network has no head for '", head, "'");
}

namespace {

/// Segments int64 [B, T] and mask bool [B, T, T] of rows text [SEP] [CLS] whose text is read from left to right, after
/// the two.
void add_order(Inputs& inputs, int64_t count, int64_t length) {
  constexpr int64_t frame = 2, cls_segment = 2;
  const int64_t text = length - frame;
  inputs.token_type_ids = at::zeros({count, length}, at::kLong);
  inputs.token_type_ids.select(1, length - 1).fill_(cls_segment);
  auto visible = at::ones({length, length}, at::kBool).tril(-1);
  visible.narrow(1, text, frame).fill_(true);
  visible.narrow(0, text, frame).narrow(1, 0, text).fill_(false);
  inputs.visible = visible.unsqueeze(0).expand({count, length, length});
}

}  // namespace

/// The states that predict [N, D].
Tensor RowScorer::hidden(const Batch& batch) const {
  const auto& model = backbone_of(network_.model_config());
  const auto device = network_.backbone->token_embedding().value().device();
  Inputs inputs{.input_ids = batch.ids().to(device)};
  if (batch.has_prefix()) {
    inputs.prefix = at::empty({batch.count()}, at::kLong);
    for (int64_t r = 0; r < batch.count(); ++r)
      inputs.prefix.data_ptr<int64_t>()[r] = batch.rows[static_cast<size_t>(r)]->prefix;
    inputs.prefix = inputs.prefix.to(device);
  }
  if (model.is_encoder_decoder()) {
    inputs.decoder_input_ids = batch.decoder_ids().to(device);
    // Equal sources follow each other, and are encoded once.
    const auto [sources, source, counts] = at::unique_dim_consecutive(inputs.input_ids, 0, /*return_inverse=*/true);
    inputs.encoded = {network_.backbone->encode({.input_ids = sources}).states.index_select(0, source)};
    return take_rows(network_.backbone->hidden(inputs).flatten(0, 1), batch.flat(batch.decoder_length()).to(device));
  }
  if (model.is_two_stream()) {
    add_order(inputs, batch.count(), batch.length());
    auto targets = at::full({batch.count(), batch.width}, -1, at::kLong);
    auto flat = at::empty({static_cast<int64_t>(batch.row.size())}, at::kLong);
    for (size_t k = 0, first = 0; k < batch.row.size(); ++k) {
      if (k > 0 && batch.row[k] != batch.row[k - 1]) first = k;
      const int64_t at = batch.row[k] * batch.width + static_cast<int64_t>(k - first);
      targets.data_ptr<int64_t>()[at] = batch.position[k];
      flat.data_ptr<int64_t>()[k] = at;
    }
    inputs.token_type_ids = inputs.token_type_ids.to(device);
    inputs.visible = inputs.visible.to(device);
    inputs.target_positions = targets.to(device);
    return take_rows(network_.backbone->hidden(inputs).flatten(0, 1), flat.to(device));
  }
  const auto flat = batch.flat(batch.length()).to(device);
  if (flat.numel() < batch.count() * batch.length()) inputs.read_positions = flat;
  return take_rows(network_.backbone->hidden(inputs).flatten(0, 1), flat);
}

/// The log-probability of each prediction, fp64 [M].
Tensor RowScorer::log_probabilities(const Batch& batch, const Tensor& states) const {
  const auto as_tensor = [&](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).to(states.device());
  };
  const auto rows = as_tensor(batch.state);
  if (detects_) {
    const auto logits = objective_->outputs(*network_.backbone, states).back().second;  // [N], that a token is replaced
    return -at::softplus(logits.to(at::kFloat).to(at::kDouble)).index_select(0, rows).to(at::kCPU);
  }
  const auto projection = objective_->projection(*network_.backbone, states);
  require<ConfigError>(projection.has_value(), "the head '", objective_->head_name(), "' predicts no tokens");
  return token_log_probabilities(projection->rows, projection->table, projection->bias, rows, as_tensor(batch.label));
}

/// The rank of each prediction among all tokens; undefined for a head that judges tokens.
TokenRanks RowScorer::ranks_of(const Batch& batch, const Tensor& states) const {
  if (detects_) return {};
  const auto projection = objective_->projection(*network_.backbone, states);
  if (!projection) return {};
  return token_ranks(projection->rows, projection->table, projection->bias, at::tensor(batch.state, at::kLong),
                     at::tensor(batch.label, at::kLong));
}

/// What the head says of each prediction of a batch, by their states [N, D].
std::vector<Answer> RowScorer::answers(const Batch& batch, const Tensor& states, bool ranks) const {
  const auto scores = log_probabilities(batch, states).contiguous();
  const auto ranked = ranks ? ranks_of(batch, states) : TokenRanks{};
  std::vector<Answer> answers(batch.label.size());
  for (size_t m = 0; m < answers.size(); ++m) {
    answers[m].log_probability = scores.data_ptr<double>()[m];
    if (!ranked.rank.defined()) continue;
    answers[m].rank = ranked.rank.data_ptr<int64_t>()[m];
    answers[m].best = answers[m].log_probability + ranked.gap_to_best.data_ptr<double>()[m];
  }
  return answers;
}

/// The states of rows after contexts of the same length: each context is read once, for all rows that have it. `take`
/// gets the rows in batches of equal lengths, with the states that predict [N, D].
void RowScorer::after_contexts(std::span<const ScoringRow> rows,
                               const std::function<void(const Batch&, const Tensor& states)>& take) const {
  const auto device = network_.backbone->token_embedding().value().device();
  std::vector<const ScoringRow*> heads;             // the first row of each context
  std::map<size_t, std::vector<size_t>> of_length;  // row indices
  std::vector<int64_t> head(rows.size());
  for (size_t r = 0; r < rows.size(); ++r) {
    if (heads.empty() || !std::ranges::equal(context_of(rows[r]), context_of(*heads.back()))) heads.push_back(&rows[r]);
    head[r] = static_cast<int64_t>(heads.size()) - 1;
    of_length[rows[r].ids.size()].push_back(r);
  }
  const int64_t context = rows[0].context;
  DecoderState read;
  const auto last = at::arange(1, static_cast<int64_t>(heads.size()) + 1, at::kLong) * context - 1;
  network_.backbone->decode(table_of(heads, context, context_of).to(device), {}, read, {}, last.to(device));
  for (const auto& [length, numbers] : of_length) {
    const size_t most = std::max<size_t>(1, static_cast<size_t>(batch_tokens_) / length);
    for (size_t begin = 0; begin < numbers.size(); begin += most) {
      std::vector<const ScoringRow*> some;
      std::vector<int64_t> of;
      for (size_t k = begin; k < std::min(numbers.size(), begin + most); ++k) {
        some.push_back(&rows[numbers[k]]);
        of.push_back(head[numbers[k]]);
      }
      const Batch batch(std::move(some));
      auto after = read.select(at::tensor(of, at::kLong).to(device));
      const auto states = network_.backbone->decode(batch.ids().to(device), {}, after);
      take(batch, take_rows(states.flatten(0, 1), batch.flat(batch.length()).to(device)));
    }
  }
}

void RowScorer::score(std::vector<ScoringRow> rows, const TakeScore& take, bool ranks) const {
  if (rows.empty()) return;
  const InEvaluation evaluation(network_, precision_);
  const PackedWeights packed(network_, rows_of_weights);
  const bool reads_contexts =
      !backbone_of(network_.model_config()).is_encoder_decoder() && network_.backbone->decodes();
  for (auto& row : rows) {
    std::ranges::stable_sort(row.predictions, {}, &Prediction::position);
    row.context = reads_contexts ? context_length(row) : 0;
  }
  std::ranges::stable_sort(rows, comes_before);
  CountedFlops::add(network_, objective_, sizes_of(rows));
  const auto batches = batches_of(rows, batch_tokens_);
  std::mutex taking;
  // Each batch is computed by one thread, so that the number of threads changes no bit.
  each_part(static_cast<int64_t>(batches.size()), [&](int64_t part) {
    if (interrupted) throw Interrupted("stopped while texts were scored");
    const at::AutoGradMode no_graph(false);
    const auto answer = [&](const Batch& batch, const Tensor& states) {
      const auto answered = answers(batch, states, ranks);
      const std::lock_guard lock(taking);
      size_t m = 0;
      for (const auto* row : batch.rows)
        for (const auto& prediction : row->predictions) take(prediction, answered[m++]);
    };
    const auto& of_part = batches[static_cast<size_t>(part)];
    if (of_part[0].context > 0) {
      after_contexts(of_part, answer);
    } else {
      const Batch batch(pointers_to(of_part));
      answer(batch, hidden(batch));
    }
  });
}

}  // namespace cloze
