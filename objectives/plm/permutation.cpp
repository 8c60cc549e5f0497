#include "objectives/plm/permutation.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "objectives/draws.h"
#include "objectives/plm/plm.h"
#include "objectives/source_target.h"

namespace cloze {

namespace {

constexpr int64_t cls_segment = 2, pad_segment = 3;  // as in the published code

}  // namespace

std::vector<uint8_t> plm_spans(std::span<const uint8_t> word_starts, int64_t goal, const PlmRules& rules,
                               Stream& stream, std::vector<int64_t>* drawn) {
  require<ConfigError>(rules.max_ngram > 0 && rules.mask_alpha > 0 && rules.mask_beta > 0,
                       "Permutation language modelling got max_ngram ", rules.max_ngram, ", mask_alpha ",
                       rules.mask_alpha, " and mask_beta ", rules.mask_beta, "; all must be at least 1.");
  const auto length = static_cast<int64_t>(word_starts.size());
  std::vector<uint8_t> masked(word_starts.size());
  goal = std::min(goal, length);
  int64_t left = std::max<int64_t>(goal, 0);
  double sum = 0;
  for (int64_t k = 1; k <= rules.max_ngram; ++k) sum += 1 / static_cast<double>(k);
  for (int64_t at = 0; at < length && left > 0;) {
    int64_t n = 1;
    for (double draw = stream.uniform() * sum - 1; draw >= 0 && n < rules.max_ngram; draw -= 1 / static_cast<double>(n))
      ++n;
    if (drawn) drawn->push_back(n);
    n = std::min(n, left);
    const int64_t context = std::max<int64_t>(1, n * rules.mask_alpha / rules.mask_beta);
    const auto before = static_cast<int64_t>(stream.below(static_cast<uint64_t>(context)));
    int64_t start = at + before;
    while (start < length && !word_starts[static_cast<size_t>(start)]) ++start;
    // A span that would reach the end is dropped, and the search ends, as there.
    if (start + n >= length) break;
    std::fill_n(masked.begin() + start, n, uint8_t{1});
    left -= n;
    at = start + n + context - before;
  }
  if (left == 0) return masked;
  std::vector<uint32_t> others;
  for (size_t i = 0; i < masked.size(); ++i)
    if (!masked[i]) others.push_back(static_cast<uint32_t>(i));
  partial_shuffle(others, static_cast<size_t>(left), stream);
  for (int64_t k = 0; k < left; ++k) masked[others[static_cast<size_t>(k)]] = 1;
  return masked;
}

void local_permutation(std::span<const uint8_t> masked, std::span<const uint8_t> functional, int64_t perm_size,
                       Stream& stream, PlmExample& example) {
  require_one_per_token(masked.size(), functional.size(), "functional");
  const size_t first = example.key_rank.size(), n = masked.size();
  // The ranks of a part are above all ranks of earlier parts: its queries attend to their keys, and its keys are masked
  // for their queries.
  const int32_t base = first == 0 ? 0 : 1 + *std::max_element(example.query_rank.begin(), example.query_rank.end());
  const size_t chunk = perm_size <= 0 ? n : std::min(n, static_cast<size_t>(perm_size));
  std::vector<int32_t> order(chunk);
  std::iota(order.begin(), order.end(), 0);
  partial_shuffle(order, chunk, stream);
  for (size_t i = 0; i < n; ++i) {
    const bool plain = !masked[i] && !functional[i], target = masked[i] && !functional[i];
    const int32_t rank = plain ? -1 : static_cast<int32_t>(i - i % chunk) + order[i % chunk];
    example.key_rank.push_back(base + rank);
    example.query_rank.push_back(base + rank + !target);  // a target does not attend to itself, any other token does
    if (target) example.targets.push_back(static_cast<int64_t>(first + i));
  }
}

void plm(std::span<const uint8_t> functional, std::span<const uint8_t> word_starts, const PlmRules& rules,
         Stream& stream, PlmExample& example) {
  require_one_per_token(functional.size(), word_starts.size(), "word_starts");
  example.query_rank.clear();
  example.key_rank.clear();
  example.targets.clear();
  example.drawn.clear();
  const auto n = static_cast<int64_t>(functional.size()), split = std::clamp<int64_t>(rules.reuse_len, 0, n);
  if (n == 0) return;
  const int64_t second = rules.num_predict * (n - split) / n;  // of 85, halves get 43 and 42
  const auto part = [&](int64_t from, int64_t to, int64_t goal) {
    if (from == to) return;
    const auto at = static_cast<size_t>(from), count = static_cast<size_t>(to - from);
    std::vector<uint8_t> starts(word_starts.begin() + from, word_starts.begin() + to);
    if (rules.backward) std::reverse(starts.begin(), starts.end());
    auto masked = plm_spans(starts, goal, rules, stream, &example.drawn);
    if (rules.backward) std::reverse(masked.begin(), masked.end());
    local_permutation(masked, functional.subspan(at, count), rules.perm_size, stream, example);
  };
  part(0, split, rules.num_predict - second);
  part(split, n, second);
}

PlmRow plm_row(std::vector<int64_t> text, bool backward, const SpecialIds& special) {
  if (backward) std::reverse(text.begin(), text.end());
  PlmRow row{.ids = std::move(text), .backward = backward};
  row.segments.assign(row.ids.size() + 1, 0);
  row.segments.push_back(cls_segment);
  row.ids.insert(row.ids.end(), {special.sep, special.cls});
  return row;
}

SegmentPair running_pair(const RunningText& text, uint64_t first, uint64_t budget, Stream& stream) {
  std::vector<uint64_t> cuts;
  uint64_t end = first;
  for (;;) {
    const auto sentence = text.sentence(end);
    end = sentence.first + sentence.count;
    if (end - first >= budget) break;
    cuts.push_back(end);
  }
  SegmentPair pair{.a = {first, end - first}, .b = {}};
  if (!cuts.empty()) pair.a.count = cuts[stream.below(cuts.size())] - first;
  if (cuts.empty() || stream.bernoulli(0.5)) {
    const uint64_t wanted = std::max<uint64_t>(1, budget - std::min(budget, pair.a.count));
    const uint64_t offset = stream.below(text.size() - wanted + 1);
    const auto begin = text.sentence(offset).first;
    const auto last = text.sentence(offset + wanted - 1);
    pair.b = {begin, last.first + last.count - begin};
    pair.label = 1;
    pair.forced = cuts.empty();
  } else {
    pair.b = {first + pair.a.count, end - first - pair.a.count};
  }
  // Truncates the longer segment, on ties B, until they fit.
  pair.a.count = std::min(pair.a.count, std::max(budget - std::min(budget, pair.b.count), (budget + 1) / 2));
  pair.b.count = budget - pair.a.count;
  return pair;
}

PlmRow running_row(const RunningText& text, uint64_t first, int64_t length, int64_t reuse_len, bool pair,
                   const SpecialIds& special, Stream stream) {
  PlmRow row{.backward = text.backward()};
  const auto put = [&](Span span, int64_t segment) {
    const auto at = row.ids.size();
    row.ids.resize(at + span.count);
    text.read(span.first, span.count, row.ids.data() + at);
    row.segments.resize(row.ids.size(), segment);
  };
  const auto end = [&](int64_t id, int64_t segment) {
    row.ids.push_back(id);
    row.segments.push_back(segment);
  };
  if (pair) {
    const auto reused = static_cast<uint64_t>(reuse_len);
    const auto segments = running_pair(text, first + reused, static_cast<uint64_t>(length - reuse_len - 3), stream);
    put({first, reused}, 0);
    put(segments.a, 0);
    end(special.sep, 0);
    put(segments.b, 1);
    end(special.sep, 1);
  } else {
    put({first, static_cast<uint64_t>(length - 2)}, 0);
    end(special.sep, 0);
  }
  end(special.cls, cls_segment);
  return row;
}

namespace {

/// The rows, padded on the left.
Batch left_padded(const std::vector<PlmRow>& plm_rows, const TokenProperties& vocabulary) {
  const auto rows = static_cast<int64_t>(plm_rows.size());
  int64_t width = 0;
  for (const auto& row : plm_rows) width = std::max(width, static_cast<int64_t>(row.ids.size()));
  Batch batch;
  batch.input_ids = at::full({rows, width}, vocabulary.special.filler(), at::kLong);
  batch.token_type_ids = at::full({rows, width}, pad_segment, at::kLong);
  auto mask = at::zeros({rows, width}, at::kBool);
  for (int64_t r = 0; r < rows; ++r) {
    const auto& row = plm_rows[static_cast<size_t>(r)];
    const auto n = static_cast<int64_t>(row.ids.size());
    const int64_t begin = (r + 1) * width - n;
    std::copy(row.ids.begin(), row.ids.end(), batch.input_ids.data_ptr<int64_t>() + begin);
    std::copy(row.segments.begin(), row.segments.end(), batch.token_type_ids.data_ptr<int64_t>() + begin);
    std::fill_n(mask.data_ptr<bool>() + begin, n, true);
    batch.tokens += n;
  }
  if (batch.tokens < rows * width) batch.attention_mask = mask;
  return batch;
}

/// The rules for a row of `length` tokens.
PlmRules rules_of(const PlmConfig& config, int64_t length, int64_t reuse_len, bool backward) {
  return {.num_predict = wanted_predictions(config, length),
          .reuse_len = reuse_len,
          .perm_size = config.perm_size,
          .mask_alpha = config.mask_alpha,
          .mask_beta = config.mask_beta,
          .max_ngram = config.max_ngram,
          .backward = backward};
}

/// The targets and the attention mask of a row.
void draw_example(const PlmRow& row, const PlmRules& rules, const TokenProperties& vocabulary, Stream& stream,
                  PlmExample& example) {
  std::vector<uint8_t> functional;
  for (const auto id : row.ids) functional.push_back(id == vocabulary.special.sep || id == vocabulary.special.cls);
  auto word_starts = vocabulary.words.of(row.ids);
  if (row.backward) {  // the bytes of a character are in order in the text alone
    word_starts = vocabulary.words.of(std::vector<int64_t>(row.ids.rbegin(), row.ids.rend()));
    std::reverse(word_starts.begin(), word_starts.end());
  }
  plm(functional, word_starts, rules, stream, example);
}

/// Writes the attention mask of a row of `length` tokens that ends at `width` to `visible` [width, width].
void mark_visible(const PlmExample& example, int64_t length, int64_t width, bool* visible) {
  const int64_t from = width - length;
  for (int64_t i = 0; i < length; ++i)
    for (int64_t j = 0; j < length; ++j)
      visible[(from + i) * width + from + j] = example.sees(static_cast<size_t>(i), static_cast<size_t>(j));
}

void mark_backward(const std::vector<PlmRow>& rows, Batch& batch) {
  if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.backward; })) return;
  batch.backward = at::empty({static_cast<int64_t>(rows.size())}, at::kBool);
  for (size_t r = 0; r < rows.size(); ++r) batch.backward.data_ptr<bool>()[r] = rows[r].backward;
}

/// Adds the targets of each row, positions in [0, T).
void add_targets(const std::vector<std::vector<int64_t>>& targets, Batch& batch) {
  const int64_t width = batch.input_ids.size(1);
  size_t longest = 1;
  for (const auto& of_row : targets) longest = std::max(longest, of_row.size());
  const auto columns = static_cast<int64_t>(longest);
  batch.target_positions = at::full({static_cast<int64_t>(targets.size()), columns}, -1, at::kLong);
  std::vector<int64_t> positions, labels;
  for (size_t r = 0; r < targets.size(); ++r)
    for (size_t k = 0; k < targets[r].size(); ++k) {
      const int64_t position = static_cast<int64_t>(r) * columns + static_cast<int64_t>(k);
      batch.target_positions.data_ptr<int64_t>()[position] = targets[r][k];
      positions.push_back(position);
      labels.push_back(batch.input_ids.data_ptr<int64_t>()[static_cast<int64_t>(r) * width + targets[r][k]]);
    }
  batch.positions = at::tensor(positions, at::kLong);
  batch.labels = at::tensor(labels, at::kLong);
}

}  // namespace

Batch permutation_batch(const std::vector<PlmRow>& plm_rows, std::vector<Stream>& streams, const PlmConfig& config,
                        int64_t reuse_len, const TokenProperties& vocabulary, std::vector<PlmExample>* drawn) {
  auto batch = left_padded(plm_rows, vocabulary);
  const auto rows = static_cast<int64_t>(plm_rows.size());
  const int64_t width = batch.input_ids.size(1);
  batch.visible = at::zeros({rows, width, width}, at::kBool);
  std::vector<std::vector<int64_t>> targets(plm_rows.size());
  PlmExample example;
  for (size_t r = 0; r < plm_rows.size(); ++r) {
    const auto length = static_cast<int64_t>(plm_rows[r].ids.size());
    draw_example(plm_rows[r], rules_of(config, length, reuse_len, plm_rows[r].backward), vocabulary, streams[r],
                 example);
    if (drawn) drawn->push_back(example);
    mark_visible(example, length, width, batch.visible.data_ptr<bool>() + static_cast<int64_t>(r) * width * width);
    for (const auto target : example.targets) targets[r].push_back(width - length + target);
  }
  mark_backward(plm_rows, batch);
  add_targets(targets, batch);
  return batch;
}

}  // namespace cloze
