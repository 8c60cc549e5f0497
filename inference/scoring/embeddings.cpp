#include "inference/scoring/embeddings.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/spelling.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "inference/scoring/counted_flops.h"
#include "inference/scoring/rows.h"

namespace cloze {

namespace {

bool is_encoder_decoder(const RunConfig& config) { return backbone_of(config.model).is_encoder_decoder(); }

/// States [B, T, D] of every layer, the embedding layer first.
std::vector<Tensor> states_of(const LoadedRun& run, const Tensor& ids) {
  const Inputs inputs{.input_ids = ids};
  if (is_encoder_decoder(run.config)) {
    Trace trace;
    run.network->backbone->encode(inputs, &trace);
    return trace.hidden_states;
  }
  Traces traces;
  run.network->backbone->hidden(inputs, &traces);
  return traces.encoder.hidden_states;
}

/// The position of [CLS] in a row, or -1.
int64_t cls_position(const LoadedRun& run, const std::vector<int64_t>& ids) {
  const auto cls = run.tokenizer.special().cls;
  if (cls < 0) return -1;
  if (ids.front() == cls) return 0;
  return ids.back() == cls ? static_cast<int64_t>(ids.size()) - 1 : -1;
}

/// Vectors fp64 [B, D] of rows of equal length.
Tensor pooled(const LoadedRun& run, const std::vector<std::vector<int64_t>>& rows, const EmbeddingOptions& options) {
  std::vector<Tensor> ids;
  for (const auto& row : rows) ids.push_back(at::tensor(row, at::kLong));
  const auto states = states_of(run, at::stack(ids).to(run.network->backbone->token_embedding().value().device()));
  const auto layer = static_cast<size_t>(options.layer.value_or(num_layers(run.config)));
  const auto state = [&](size_t i) { return states.at(i).to(at::kCPU).to(at::kDouble); };
  switch (options.pooling) {
    case Pooling::mean:
      return state(layer).mean(1);
    case Pooling::cls:
      return state(layer).select(1, cls_position(run, rows.front()));
    case Pooling::first_last:
      return (state(1).mean(1) + state(layer).mean(1)) / 2;
  }
  return {};
}

/// The indices of texts, those of equal length next to each other.
std::vector<size_t> by_length(const std::vector<std::vector<int64_t>>& rows) {
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a].size() < rows[b].size(); });
  return order;
}

}  // namespace

int64_t num_layers(const RunConfig& config) { return backbone_of(config.model).num_hidden_layers; }

std::string embedding_fault(const RunConfig& config, const EmbeddingOptions& options) {
  const auto layers = num_layers(config);
  if (options.layer && (*options.layer < 0 || *options.layer > layers))
    return concat("layer ", *options.layer, " does not exist; the model has layers 0 (its embeddings) to ", layers);
  const auto& model = backbone_of(config.model);
  if (options.pooling == Pooling::cls && (model.is_encoder_decoder() || (model.is_decoder() && !model.prepend_bos)))
    return "its texts have no [CLS] to pool; take --pooling mean or first-last";
  const auto layer = options.layer.value_or(layers);
  if (options.pooling == Pooling::first_last && layer < 2)
    return concat("first-last is the mean over layer 1 and a later one, and layer ", layer,
                  " is none; take --pooling mean", layers > 1 ? ", or a --layer from 2 on" : "");
  return "";
}

std::vector<int64_t> framed_text(const LoadedRun& run, std::string_view text) {
  const auto& model = backbone_of(run.config.model);
  const auto& special = run.tokenizer.special();
  std::vector<int64_t> ids;
  const auto add = [&](int64_t id) {
    if (id >= 0) ids.push_back(id);
  };
  const bool starts = model.is_encoder_decoder() || model.is_decoder() ? model.prepend_bos : !model.is_two_stream();
  if (starts) add(special.cls);
  for (const auto id : run.tokenizer.encode(text)) ids.push_back(id);
  if (model.is_encoder_decoder()) add(model.eos_token_id);
  if (!model.is_encoder_decoder() && !model.is_decoder()) add(special.sep);
  if (model.is_two_stream()) add(special.cls);
  return ids;
}

namespace {

/// framed_text. Throws DataError for a text without tokens, and for one that is too long.
std::vector<int64_t> checked_row(const LoadedRun& run, const std::string& text) {
  auto row = framed_text(run, text);
  const auto room = row_length(run, 0);
  require<DataError>(!row.empty(), "'", shortened(text), "' has no tokens, so it has no embedding");
  require<DataError>(static_cast<int64_t>(row.size()) <= room, "'", shortened(text), "' has ", row.size(),
                     " tokens, the model reads at most ", room, "; shorten it");
  return row;
}

/// Cosines of states that are not finite have no order, so that no score of them means anything.
void check_finite(const LoadedRun& run, const Tensor& vector, const std::string& text) {
  require<DataError>(at::isfinite(vector).all().item<bool>(), run.folder, ": its states for the text '",
                     shortened(text),
                     "' are not finite; the training diverged or the weights are damaged: take an earlier checkpoint, "
                     "or import it again");
}

}  // namespace

void check_fit(const LoadedRun& run, std::span<const std::string> texts) {
  for (const auto& text : texts) checked_row(run, text);
}

Tensor embed_texts(const LoadedRun& run, std::span<const std::string> texts, const EmbeddingOptions& options) {
  const auto fault = embedding_fault(run.config, options);
  require<ConfigError>(fault.empty(), run.folder, ": ", fault);
  require_tokenizer(run);
  const at::NoGradGuard no_grad;
  std::map<std::string, size_t> known;
  std::vector<std::vector<int64_t>> rows;
  std::vector<std::string> row_texts;  // of each row
  std::vector<int64_t> row_of;
  for (const auto& text : texts) {
    const auto [found, is_new] = known.emplace(text, rows.size());
    row_of.push_back(static_cast<int64_t>(found->second));
    if (!is_new) continue;
    rows.push_back(checked_row(run, text));
    row_texts.push_back(text);
  }
  const auto order = by_length(rows);
  std::vector<Tensor> tensors(rows.size());
  for (size_t first = 0; first < order.size();) {
    if (interrupted) throw Interrupted("stopped while texts were embedded");
    std::vector<std::vector<int64_t>> batch;
    size_t last = first;
    while (last < order.size() && static_cast<int64_t>(batch.size()) < options.batch_size &&
           rows[order[last]].size() == rows[order[first]].size())
      batch.push_back(rows[order[last++]]);
    const auto length = static_cast<double>(batch.front().size());
    CountedFlops::add(*run.network, nullptr,
                      {{.count = static_cast<double>(batch.size()), .length = length, .read = length}});
    const auto vectors = pooled(run, batch, options);
    for (size_t i = first; i < last; ++i) {
      tensors[order[i]] = vectors[static_cast<int64_t>(i - first)];
      check_finite(run, tensors[order[i]], row_texts[order[i]]);
    }
    first = last;
  }
  return at::stack(tensors).index_select(0, at::tensor(row_of, at::kLong));
}

Tensor cosines(const Tensor& a, const Tensor& b) {
  const auto unit = [](const Tensor& x) {
    const auto norm = x.norm(2, -1, /*keepdim=*/true);
    return x / at::where(norm > 0, norm, at::ones_like(norm));
  };
  return at::matmul(unit(a), unit(b).t());
}

double mean_cosine(const Tensor& embeddings) {
  const auto n = embeddings.size(0);
  if (n < 2) return 0;
  // The sum over all pairs is the square of the sum of unit vectors.
  const auto norm = embeddings.norm(2, -1, true);
  const auto sum = (embeddings / at::where(norm > 0, norm, at::ones_like(norm))).sum(0);
  const double all = sum.dot(sum).item<double>();
  const double itself = (norm > 0).sum().item<double>();
  return (all - itself) / static_cast<double>(n * (n - 1));
}

}  // namespace cloze
