#include "inference/scoring/rows.h"

#include <xxhash.h>

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "inference/scoring/form_rules.h"
#include "inference/scoring/scorer.h"

namespace cloze {

bool is_unlimited(const RunConfig& config) {
  return backbone_of(config.model).max_input_length() >= BackboneConfig::unlimited_length;
}

int64_t row_length(const LoadedRun& run, size_t stride) {
  const auto& model = backbone_of(run.config.model);
  if (!is_unlimited(run.config)) return model.max_input_length();
  if (stride > 0) return run.config.data.max_seq_length;
  constexpr double most_numbers = (1 << 30) / sizeof(float);
  return model.longest_row(most_numbers);
}

void require_token(const LoadedRun& run, int64_t id, const char* name, const char* use) {
  require<ConfigError>(id >= 0, run.folder, ": its tokenizer has no ", name, ", ", use,
                       "; score a model whose tokenizer has one");
}

std::vector<Window> windows_of(const EncodedPassage& passage, size_t room, size_t stride, ScoringForm form) {
  auto windows = windows_of(passage, room, stride);
  if (form == ScoringForm::pll_span && windows.size() > 1) windows.clear();
  return windows;
}

size_t masked_end(const EncodedPassage& passage, size_t at, size_t end, ScoringForm form) {
  size_t last = at + 1;
  while (form == ScoringForm::pll_word_l2r && last < end && passage.tokens[last].word == passage.tokens[at].word)
    ++last;
  return last;
}

namespace {

/// Hash of what makes rows equal.
uint64_t hash_of(const ScoringRow& row) {
  const auto seed = static_cast<uint64_t>(row.ids.size()) << 32 | static_cast<uint32_t>(row.prefix);
  const auto hash = XXH3_64bits_withSeed(row.ids.data(), row.ids.size() * sizeof(int32_t), seed);
  if (row.decoder.empty()) return hash;
  return XXH3_64bits_withSeed(row.decoder.data(), row.decoder.size() * sizeof(int32_t), hash);
}

bool equal(const ScoringRow& a, const ScoringRow& b) {
  return a.prefix == b.prefix && a.ids == b.ids && a.decoder == b.decoder;
}

}  // namespace

std::unique_ptr<RowsOfPassages> make_scoring_rows(const LoadedRun& run, ScoringForm form) {
  const auto* objective = scored_objective(run.config.objectives, backbone_of(run.config.model), form);
  require<ConfigError>(objective != nullptr, run.folder, ": ", scoring_fault(run.config, form));
  if (form == ScoringForm::detection) return make_detection_scoring(run);
  if (as_kind(*objective).layout()) return make_source_target_scoring(run, *objective, form);
  if (form != ScoringForm::likelihood) return make_masked_scoring(run, form);
  return backbone_of(run.config.model).is_two_stream() ? make_permuted_scoring(run) : make_causal_scoring(run);
}

std::vector<ScoringRow> next_rows(const RowsOfPassages& rows, std::span<EncodedPassage> passages, size_t stride,
                                  size_t tokens, WindowPlace& next) {
  std::vector<ScoringRow> made;
  for (size_t count = 0; next.passage < passages.size() && count < tokens;) {
    auto& passage = passages[next.passage];
    const auto windows = passage.begin == passage.end ? std::vector<Window>{} : rows.windows(passage, stride);
    for (; next.window < windows.size() && count < tokens; ++next.window) {
      const size_t before = made.size();
      rows.add(passage, windows[next.window], static_cast<uint32_t>(next.passage), made);
      for (size_t r = before; r < made.size(); ++r) count += made[r].ids.size() + made[r].decoder.size();
    }
    if (next.window < windows.size()) break;
    passage = {};
    next = {.passage = next.passage + 1};
  }
  return made;
}

std::vector<ScoringRow> distinct(std::vector<ScoringRow> rows) {
  std::vector<ScoringRow> kept;
  std::unordered_multimap<uint64_t, size_t> known;
  known.reserve(rows.size());
  for (auto& row : rows) {
    const auto hash = hash_of(row);
    const auto [begin, end] = known.equal_range(hash);
    const auto same = std::find_if(begin, end, [&](const auto& entry) { return equal(kept[entry.second], row); });
    if (same == end) {
      known.emplace(hash, kept.size());
      kept.push_back(std::move(row));
      continue;
    }
    auto& all = kept[same->second].predictions;
    all.insert(all.end(), row.predictions.begin(), row.predictions.end());
  }
  return kept;
}

}  // namespace cloze
