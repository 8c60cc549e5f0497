#include "objectives/rows.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "objectives/generative_rows.h"
#include "objectives/kinds.h"
#include "objectives/special_tokens.h"

namespace cloze {

double masking_rate(const Masking& masking, const StepRows& rows, uint64_t sequence, uint64_t epoch_size) {
  const int64_t steps = masking.decay_steps > 0 ? masking.decay_steps : rows.steps;
  const bool is_planned = steps > 0 || (rows.epochs > 0 && epoch_size > 0);
  if (masking.initial_mlm_probability == 0 || rows.batch_size == 0 || !is_planned) return masking.mlm_probability;
  const auto step_size = rows.batches().rows();
  const uint64_t steps_done = (sequence - rows.start.sequence) / step_size;  // since the start of these rows
  double done = 0, total = 0;
  if (steps > 0) {
    done = static_cast<double>(static_cast<uint64_t>(rows.start.step) + steps_done);
    total = static_cast<double>(steps);
  } else {
    done = rows.start.epochs + static_cast<double>(steps_done * step_size) / static_cast<double>(epoch_size);
    total = rows.epochs;
  }
  const double progress = std::min(1.0, done / total);
  return masking.initial_mlm_probability + (masking.mlm_probability - masking.initial_mlm_probability) * progress;
}

RowContext::RowContext(TokenStore tokens, const Objectives& wanted, const DataConfig& data_config,
                       const RowStreams& streams, const std::string& stage_name, const ModelConfig& model_config,
                       StepRows rows)
    : store(std::move(tokens)),
      objectives(wanted),
      data(data_config),
      model(model_config),
      step(rows),
      stage(stage_name),
      vocabulary(store.tokenizer(), store.train_counts()),
      order_rng(streams.order.key(stage_name)),
      mask_key(Rng(streams.masking.key(stage_name)).key("mask")),
      mixture_key(Rng(streams.masking.key(stage_name)).key("mixture")),
      pair_key(order_rng.key("pair")) {}

MixedSampler RowContext::sampler(SamplerOptions options) const {
  if (step.batch_size > 0) options.versions = static_cast<uint64_t>(dupe_factor_of(objectives));
  return {store, options, order_rng};
}

std::vector<uint64_t> RowContext::sequences(const MixedSampler& sampler, uint64_t first, int64_t count) const {
  if (step.batch_size > 0) return sampler.by_length(first, static_cast<uint64_t>(count), step.batches());
  std::vector<uint64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void RowContext::check_ids(const int64_t* ids, uint64_t count) const {
  const int64_t largest = count ? *std::max_element(ids, ids + count) : 0;
  require<DataError>(
      largest < vocabulary.size, "the token store holds id ", largest, ", its tokenizer has ", vocabulary.size,
      " tokens; the files are damaged: check them with `cloze verify data`, then prepare the text again");
}

std::unique_ptr<RowMaker> make_rows(const RowContext& context) {
  const auto& objectives = context.objectives;
  require_special_tokens(objectives, backbone_of(context.model), context.store.tokenizer(), context.data.tokens);
  const auto* own = row_objective_of(objectives);
  if (!own) return make_masked_rows(context);
  return std::visit([&](const auto& kind) { return make_rows(kind, context); }, **own);
}

Packing packing_of(RowPacking packing) {
  switch (packing) {
    case RowPacking::full:
      return Packing::full;
    case RowPacking::doc_sentences:
      return Packing::doc_sentences;
    case RowPacking::full_sentences:
      return Packing::full_sentences;
    case RowPacking::document:
    case RowPacking::segment_pair:
    case RowPacking::sentence_pair:
      return Packing::document;
  }
  return Packing::document;
}

namespace {

/// Appends a span of text and [SEP] to a row of `length` ids.
void append_span(const RowContext& context, Span span, int64_t* ids, int64_t& length) {
  context.store.read(span.first, span.count, ids + length);
  context.check_ids(ids + length, span.count);
  length += static_cast<int64_t>(span.count);
  ids[length++] = context.vocabulary.special.sep;
}

}  // namespace

RowLayout fill_text_row(const RowContext& context, const Example& example, int64_t* ids) {
  RowLayout row;
  ids[row.length++] = context.vocabulary.special.cls;
  uint64_t left = example.target_length;
  for (const auto& span : example.spans) {
    if (left == 0) break;
    const uint64_t count = std::min(span.count, left);
    append_span(context, {span.first, count}, ids, row.length);
    row.used_tokens += static_cast<int64_t>(count);
    left -= std::min(left, count + 1);  // a separator takes the position that the sampler left free
  }
  row.second = row.length;
  return row;
}

RowLayout fill_pair_row(const RowContext& context, const SegmentPairRule& rule, const Example& example, uint64_t budget,
                        int64_t* ids) {
  RowLayout row;
  ids[row.length++] = context.vocabulary.special.cls;
  const Stream stream(context.pair_key, example.epoch, example.item);
  const SegmentPair pair = make_segment_pair(rule, context.store, example, budget, stream);
  row.label = pair.label;
  row.forced = pair.forced;
  row.used_tokens = static_cast<int64_t>(pair.a.count + (example.random_next ? 0 : pair.b.count));
  append_span(context, pair.a, ids, row.length);
  row.second = row.length;
  append_span(context, pair.b, ids, row.length);
  return row;
}

void record_text_usage(const Example& example, const RowLayout& row, RowDraws& draws) {
  for (const auto& span : example.spans) draws.example_tokens += static_cast<int64_t>(span.count);
  draws.used_tokens = row.used_tokens;
  draws.document = example.document;
}

}  // namespace cloze
