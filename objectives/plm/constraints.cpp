#include <algorithm>

#include "models/layers/cost.h"
#include "models/two_stream_config.h"
#include "objectives/constraints.h"
#include "objectives/plm/plm.h"

namespace cloze {

namespace {

/// Rows of plm: mems, segment pairs, backward text.
void check_rows(const TwoStreamConfig& model, const ObjectiveSetting& in, Constraints& constraints) {
  const auto& data = in.data;
  const int64_t max_reuse = data.max_seq_length - 5;  // A [SEP] B [SEP] [CLS] follow the reused tokens
  const bool carries_mems = model.mem_len > 0, pairs = data.packing == RowPacking::segment_pair;
  constraints.forbid(model.bi_data && in.batch_size % 2 != 0,
                     "model.bi_data reverses half of the rows of a batch, and train.batch_size ", in.batch_size,
                     " is odd; make it even, or set bi_data to false");
  constraints.forbid(
      data.packing == RowPacking::sentence_pair,
      "objective plm does not support data.packing sentence_pair; choose segment_pair, or a packing of one "
      "segment");
  constraints.forbid(carries_mems && (model.reuse_len < 1 || model.reuse_len > max_reuse), "model.mem_len ",
                     model.mem_len, " carries the first model.reuse_len tokens of a row to the next one, and that is ",
                     model.reuse_len, "; give it 1 to ", max_reuse, " (data.max_seq_length - 5), or set mem_len to 0");
  constraints.forbid(carries_mems && data.packing != RowPacking::full && !pairs, "model.mem_len ", model.mem_len,
                     " needs rows that continue the rows of the step before, and data.packing is ", data.packing,
                     "; choose full or segment_pair, or set mem_len to 0");
  constraints.forbid((carries_mems || pairs) && data.short_seq_prob > 0,
                     "rows of plm with mems or with pairs have a fixed length, and data.short_seq_prob is ",
                     data.short_seq_prob, "; set it to 0");
}

}  // namespace

std::string PlmConfig::prediction() const {
  const auto amount =
      num_predict > 0 ? concat("up to ", num_predict, " tokens of a sequence") : "a sixth of the tokens";
  return amount + ", each from those that come before it in a random order";
}

void PlmConfig::check(const ObjectiveSetting& in, Constraints& constraints) const {
  if (const auto* streams = as<TwoStreamConfig>(in.model)) check_rows(*streams, in, constraints);
  forbid_prefix_lm(kind, in, constraints);
  constraints.forbid(!in.backbone().is_two_stream(), "objective plm needs a query stream, which ", kind_of(in.model),
                     " does not have; choose model kind: ", families_that(&BackboneConfig::is_two_stream));
  forbid_companions(kind, in, constraints);
}

void PlmConfig::expect(const ObjectiveSetting&, std::vector<RowSizes>& rows) const {
  for (auto& row : rows) {
    row.predicted = num_predict > 0 ? std::min(row.length, static_cast<double>(num_predict)) : row.length / 6;
    row.read = row.predicted;
  }
}

}  // namespace cloze
