#include "objectives/span_corruption/noise.h"

#include "objectives/draws.h"

namespace cloze {

namespace {

/// An empty source, and the text as target.
SourceTarget with_text(std::span<const int64_t> tokens, int64_t eos) {
  SourceTarget out;
  out.source.reserve(tokens.size() + 1);
  out.target.reserve(tokens.size() + 1);
  out.target.assign(tokens.begin(), tokens.end());
  out.target.push_back(eos);
  return out;
}

}  // namespace

std::vector<bool> random_spans(int64_t length, double density, double mean_length, Stream& stream) {
  std::vector<bool> mask(static_cast<size_t>(std::max<int64_t>(length, 0)));
  if (length < 2) return mask;
  const auto [noise, spans] = noise_count(length, density, mean_length);
  const int64_t kept = length - noise;
  // Marks are ends of runs: spans - 1 of the gaps between two tokens of a kind.
  std::vector<uint8_t> kept_ends, noise_ends;
  mark_subset(noise_ends, noise - 1, spans - 1, stream);
  mark_subset(kept_ends, kept - 1, spans - 1, stream);
  noise_ends.push_back(1);
  kept_ends.push_back(1);
  size_t at = 0, k = 0, n = 0;
  while (at < mask.size()) {
    for (bool end = false; !end; ++at) end = kept_ends[k++] != 0;
    for (bool end = false; !end; ++at) {
      mask[at] = true;
      end = noise_ends[n++] != 0;
    }
  }
  return mask;
}

std::vector<bool> iid_mask(int64_t length, double density, Stream& stream) {
  std::vector<bool> mask(static_cast<size_t>(std::max<int64_t>(length, 0)));
  for (size_t i = 0; i < mask.size(); ++i) mask[i] = stream.bernoulli(density);
  return mask;
}

void limit_runs(std::vector<bool>& noise, size_t max_runs) {
  size_t runs[2] = {0, 0};  // of kept tokens, of noise
  for (size_t i = 0; i < noise.size(); ++i) {
    if (i > 0 && noise[i] == noise[i - 1]) continue;
    if (noise[i] && (runs[1] >= max_runs || runs[0] >= max_runs))
      noise[i] = false;  // the kept run after it would need one too
    if (i == 0 || noise[i] != noise[i - 1]) ++runs[noise[i] ? 1 : 0];
  }
}

SourceTarget span_corruption(std::span<const int64_t> tokens, const std::vector<bool>& noise,
                             std::span<const int64_t> sentinels, int64_t eos) {
  require_one_per_token(tokens.size(), noise.size(), "noise");
  SourceTarget out;
  out.source.reserve(tokens.size() + 1);
  out.target.reserve(tokens.size() + 1);
  size_t used[2] = {0, 0};  // number of sentinels in the target, in the source
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_noise = noise[i];
    (is_noise ? out.target : out.source).push_back(tokens[i]);
    if (i > 0 && noise[i - 1] == is_noise) continue;
    const size_t k = used[is_noise]++;
    if (k >= sentinels.size()) {
      size_t runs = noise[0] == is_noise;
      for (size_t j = 1; j < noise.size(); ++j) runs += noise[j] == is_noise && noise[j - 1] != is_noise;
      fail<DataError>("A text of ", tokens.size(), " tokens has ", runs,
                      is_noise ? " noise spans" : " spans between noise", " but the vocabulary has ", sentinels.size(),
                      " sentinels (<extra_id_0>, ...); add sentinels to the tokenizer, shorten the sequences, lower "
                      "the noise density or lengthen the spans.");
    }
    (is_noise ? out.source : out.target).push_back(sentinels[k]);
  }
  end_both(out, eos);
  return out;
}

SourceTarget drop_tokens(std::span<const int64_t> tokens, const std::vector<bool>& noise, int64_t eos) {
  require_one_per_token(tokens.size(), noise.size(), "noise");
  SourceTarget out;
  out.source.reserve(tokens.size() + 1);
  for (size_t i = 0; i < tokens.size(); ++i) (noise[i] ? out.target : out.source).push_back(tokens[i]);
  end_both(out, eos);
  return out;
}

SourceTarget mass(std::span<const int64_t> tokens, const std::vector<bool>& noise, const NoiseIds& ids, int64_t eos) {
  require_one_per_token(tokens.size(), noise.size(), "noise");
  auto out = with_text(tokens, eos);
  for (size_t i = 0; i < tokens.size(); ++i) out.source.push_back(noise[i] ? ids.mask : tokens[i]);
  out.source.push_back(eos);
  return out;
}

SourceTarget bert_style(std::span<const int64_t> tokens, const std::vector<bool>& noise, double random_ratio,
                        const NoiseIds& ids, int64_t eos, Stream& stream) {
  require_one_per_token(tokens.size(), noise.size(), "noise");
  require_vocabulary(ids);
  auto out = with_text(tokens, eos);
  for (size_t i = 0; i < tokens.size(); ++i)
    out.source.push_back(!noise[i] ? tokens[i] : stream.bernoulli(random_ratio) ? random_id(ids, stream) : ids.mask);
  out.source.push_back(eos);
  return out;
}

SourceTarget deshuffle(std::span<const int64_t> tokens, int64_t eos, Stream& stream) {
  auto out = with_text(tokens, eos);
  out.source.assign(tokens.begin(), tokens.end());
  partial_shuffle(out.source, out.source.size(), stream);
  out.source.push_back(eos);
  return out;
}

SourceTarget prefix_lm(std::span<const int64_t> tokens, int64_t eos, Stream& stream) {
  const auto cut =
      tokens.begin() + static_cast<std::ptrdiff_t>(tokens.size() < 2 ? 0 : 1 + stream.below(tokens.size() - 1));
  SourceTarget out{{tokens.begin(), cut}, {cut, tokens.end()}};
  end_both(out, eos);
  return out;
}

}  // namespace cloze
