#include "objectives/permutation.h"

#include <algorithm>

namespace cloze {

namespace {

constexpr int64_t cls_segment = 2, pad_segment = 3;   // as in the published code

}  // namespace

Batch permutation_batch(const std::vector<std::vector<int64_t>>& texts, std::vector<Stream>& streams, const PlmConfig& config, const Vocabulary& vocabulary) {
  const auto rows = static_cast<int64_t>(texts.size());
  int64_t width = 0;
  for (const auto& text : texts) width = std::max(width, static_cast<int64_t>(text.size()) + 2);
  Batch batch;
  batch.input_ids = at::full({rows, width}, vocabulary.special.pad, at::kLong);
  batch.token_type_ids = at::full({rows, width}, pad_segment, at::kLong);
  batch.visible = at::zeros({rows, width, width}, at::kBool);
  auto mask = at::zeros({rows, width}, at::kBool);
  std::vector<std::vector<int64_t>> targets(texts.size());
  std::vector<uint8_t> functional, word_starts;
  PlmExample example;
  size_t most = 1;
  for (size_t r = 0; r < texts.size(); ++r) {
    const auto& text = texts[r];
    const auto n = static_cast<int64_t>(text.size()) + 2, from = width - n;
    auto* ids = batch.input_ids.data_ptr<int64_t>() + static_cast<int64_t>(r) * width + from;
    auto* types = batch.token_type_ids.data_ptr<int64_t>() + static_cast<int64_t>(r) * width + from;
    std::copy(text.begin(), text.end(), ids);
    ids[n - 2] = vocabulary.special.sep, ids[n - 1] = vocabulary.special.cls;
    std::fill_n(types, n - 1, 0), types[n - 1] = cls_segment;
    std::fill_n(mask.data_ptr<bool>() + static_cast<int64_t>(r) * width + from, n, true);
    functional.assign(static_cast<size_t>(n), 0), word_starts.assign(static_cast<size_t>(n), 1);
    for (int64_t i = 0; i < n; ++i) functional[static_cast<size_t>(i)] = ids[i] == vocabulary.special.sep || ids[i] == vocabulary.special.cls, word_starts[static_cast<size_t>(i)] = vocabulary.starts_word[static_cast<size_t>(ids[i])];
    const PlmRules rules{.num_predict = config.num_predict > 0 ? config.num_predict : std::max<int64_t>(1, n / 6), .reuse_len = 0, .perm_size = config.perm_size,
                         .mask_alpha = config.mask_alpha, .mask_beta = config.mask_beta, .max_ngram = config.max_ngram};
    plm(functional, word_starts, rules, streams[r], example);
    auto* seen = batch.visible.data_ptr<bool>() + static_cast<int64_t>(r) * width * width;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) seen[(from + i) * width + from + j] = !example.blocked(static_cast<size_t>(i), static_cast<size_t>(j));
    for (const auto place : example.targets) targets[r].push_back(from + place);
    most = std::max(most, targets[r].size());
    batch.tokens += n;
  }
  if (batch.tokens < rows * width) batch.attention_mask = mask;
  const auto columns = static_cast<int64_t>(most);
  batch.target_places = at::full({rows, columns}, -1, at::kLong);
  std::vector<int64_t> positions, labels;
  for (size_t r = 0; r < texts.size(); ++r)
    for (size_t k = 0; k < targets[r].size(); ++k) {
      batch.target_places.data_ptr<int64_t>()[static_cast<int64_t>(r) * columns + static_cast<int64_t>(k)] = targets[r][k];
      positions.push_back(static_cast<int64_t>(r) * columns + static_cast<int64_t>(k));
      labels.push_back(batch.input_ids.data_ptr<int64_t>()[static_cast<int64_t>(r) * width + targets[r][k]]);
    }
  batch.positions = at::tensor(positions, at::kLong);
  batch.labels = at::tensor(labels, at::kLong);
  return batch;
}

}  // namespace cloze
