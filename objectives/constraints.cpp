#include "objectives/constraints.h"

#include <algorithm>
#include <set>

#include "core/text.h"
#include "models/backbone_config.h"
#include "models/families/families.h"
#include "models/stack_parts.h"

namespace cloze {

namespace {

/// A decoder of a family of decoders. An encoder that was made causal may still predict its masks.
bool is_decoder_family(const ModelConfig& model) {
  return std::visit([](const auto& m) { return m.is_decoder() && std::decay_t<decltype(m)>{}.is_decoder(); }, *model);
}

std::set<std::string> kinds_of(const Objectives& objectives) {
  std::set<std::string> kinds;
  for (const auto& objective : objectives) kinds.insert(kind_of(objective));
  return kinds;
}

void check_steps(const ObjectiveConfig& objective, Constraints& constraints) {
  const ObjectiveTerms& terms = as_kind(objective);
  constraints.forbid(terms.until_step > 0 && terms.until_step <= terms.from_step, "objective ", kind_of(objective),
                     ": until_step ", terms.until_step, " is not after from_step ", terms.from_step,
                     "; raise it, or set it to 0");
}

void forbid_doubles(const Objectives& objectives, Constraints& constraints) {
  for (const auto& kind : kinds_of(objectives)) {
    const auto count = std::count_if(objectives.begin(), objectives.end(),
                                     [&](const auto& objective) { return kind_of(objective) == kind; });
    constraints.forbid(count > 1, "objective ", kind, " is given twice; keep one of them");
  }
}

/// Some loss must be active in every step; the active losses change only at from_step and until_step.
void require_active_loss(const Objectives& objectives, Constraints& constraints) {
  std::set<int64_t> changes{0};
  for (const auto& objective : objectives) {
    changes.insert(as_kind(objective).from_step);
    changes.insert(as_kind(objective).until_step);
  }
  const auto idle = std::find_if(changes.begin(), changes.end(), [&](int64_t step) {
    return std::none_of(objectives.begin(), objectives.end(),
                        [&](const auto& objective) { return as_kind(objective).active(step); });
  });
  constraints.forbid(!objectives.empty() && idle != changes.end(), "no objective is active at step ",
                     idle == changes.end() ? 0 : *idle, "; let one begin earlier or end later (from_step, until_step)");
}

}  // namespace

void check_constraints(const ObjectiveSetting& in, Constraints& constraints) {
  constraints.forbid(in.objectives.empty(), "objectives is empty; name at least one, for instance `- kind: mlm`");
  forbid_doubles(in.objectives, constraints);
  for (const auto& objective : in.objectives) {
    check_steps(objective, constraints);
    as_kind(objective).check(in, constraints);
  }
  require_active_loss(in.objectives, constraints);
  if (is_pair(in.data.packing) && !pairs_of(in.objectives))
    require_segments(concat("data.packing ", in.data.packing), "choose another packing", in, constraints);
}

void require_bidirectional(const char* kind, const ObjectiveSetting& in, Constraints& constraints) {
  forbid_prefix_lm(kind, in, constraints);
  forbid_two_streams(kind, in, constraints);
  const auto family = kind_of(in.model);
  constraints.forbid(in.backbone().is_encoder_decoder(), "objective ", kind, " needs an encoder-only model, ", family,
                     " has a decoder; choose span_corruption, denoising, gap_sentences or pairs, or another model");
  constraints.forbid(is_decoder_family(in.model), "objective ", kind, " needs bidirectional attention, and ", family,
                     " is causal; choose clm, or another model");
}

void require_generative(const char* kind, const NextTokenTerms& terms, const ObjectiveSetting& in,
                        Constraints& constraints) {
  require_lm_head(kind, terms, "clm", in, constraints);
  forbid_two_streams(kind, in, constraints);
  constraints.forbid(in.backbone().is_encoder(), "objective ", kind, " needs a generative model, ", kind_of(in.model),
                     " is bidirectional; choose ", families_that(&BackboneConfig::is_generative),
                     ", or set model.architecture: decoder");
  const double shorter = in.data.short_seq_prob;
  constraints.forbid(shorter != 0 && shorter != DataConfig{}.short_seq_prob, "objective ", kind,
                     " makes rows of full length, and data.short_seq_prob is ", shorter, "; set it to 0");
  forbid_companions(kind, in, constraints);
}

void require_lm_head(const char* kind, const NextTokenTerms& terms, const char* remedy, const ObjectiveSetting& in,
                     Constraints& constraints) {
  const auto& model = in.backbone();
  constraints.forbid(!terms.transform && model.tie_word_embeddings && model.embedding_width() != model.hidden_size,
                     "objective ", kind, " multiplies hidden states of width ", model.hidden_size,
                     " by the token embeddings of width ", model.embedding_width(),
                     "; set model.embedding_size to 0, tie_word_embeddings to false, or give ", remedy, " a transform");
}

void forbid_prefix_lm(const char* kind, const ObjectiveSetting& in, Constraints& constraints) {
  constraints.forbid(
      part_of<PrefixAttention>(in.model).prefix_lm, "objective ", kind,
      " has no input prefix, which model.prefix_lm needs; choose pairs, or span_corruption with corruption: "
      "prefix_lm, or set prefix_lm to false");
}

void forbid_two_streams(const char* kind, const ObjectiveSetting& in, Constraints& constraints) {
  constraints.forbid(in.backbone().is_two_stream(), "objective ", kind, " does not support ", kind_of(in.model),
                     ", which predicts from its query stream; choose objective kind: plm");
}

void forbid_companions(const char* kind, const ObjectiveSetting& in, Constraints& constraints) {
  auto others = kinds_of(in.objectives);
  others.erase(kind);
  constraints.forbid(!others.empty(), "objective ", kind, " makes its own rows and cannot be combined with ",
                     listed(others), "; keep one of them");
}

void require_segments(const std::string& subject, const std::string& remedy, const ObjectiveSetting& in,
                      Constraints& constraints) {
  const auto& model = in.backbone();
  const auto reason = model.token_types ? concat("model.type_vocab_size is ", model.type_vocab_size, "; raise it to 2")
                                        : concat(kind_of(in.model), " has none; choose another model");
  constraints.forbid(!model.token_types || model.type_vocab_size < 2, subject, " needs two segment types, ", reason,
                     ", or ", remedy);
  constraints.forbid(in.data.max_seq_length < 5, subject, " needs room for two segments, data.max_seq_length is ",
                     in.data.max_seq_length, "; raise it to at least 5");
}

std::vector<RowSizes> expected_rows(const ObjectiveSetting& in) {
  std::vector<RowSizes> rows{
      {.count = static_cast<double>(in.batch_size), .length = static_cast<double>(in.data.max_seq_length)}};
  if (in.objectives.empty()) rows[0].read = rows[0].length;
  for (const auto& objective : in.objectives) as_kind(objective).expect(in, rows);
  for (auto& row : rows) row.read = std::min(row.length, row.read);
  return rows;
}

void expect_source_target(double fraction, const ObjectiveSetting& in, std::vector<RowSizes>& rows) {
  const auto& model = in.backbone();
  for (auto& row : rows) {
    row.read = row.length;
    if (model.is_encoder_decoder()) {
      row.target_length = row.predicted = fraction * row.length;
      continue;
    }
    row.predicted = row.length * fraction / (1 + fraction);
    if (part_of<PrefixAttention>(in.model).prefix_lm) row.prefix = row.length - row.predicted;
  }
}

}  // namespace cloze
