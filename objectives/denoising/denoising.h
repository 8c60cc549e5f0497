#pragma once
// Denoising.
#include "objectives/kind.h"

namespace cloze {

/// The unit of masking.
enum class MaskLength { subword, word, span_poisson };
constexpr auto choices(MaskLength) {
  return std::array{Choice{MaskLength::subword, "subword"}, Choice{MaskLength::word, "word"},
                    Choice{MaskLength::span_poisson, "span-poisson",
                           "a number of words drawn from a Poisson distribution, 0 included"}};
}

/// BART's noise. The defaults are those quoted for bart.large (facebookresearch/fairseq#1899), not those of fairseq's
/// task, which mask nothing; the paper has lambda = 3. Token masking is mask_length subword; token
/// deletion is that with replace_length 0.
struct BartNoise {
  double permute_sentences = 1;
  double mask_ratio = 0.3;
  double poisson_lambda = 3.5;
  double random_ratio = 0.1;
  double insert_ratio = 0;
  double rotate_prob = 0;
  MaskLength mask_length = MaskLength::span_poisson;
  int64_t replace_length = 1;
};

/// Denoising: the encoder reads a corrupted text, the decoder reconstructs the original.
/// Source: Lewis et al. 2020, section 2.2 (arXiv 1910.13461); fairseq, denoising_dataset.py.
struct DenoisingConfig final : GenerativeKind<DenoisingConfig>, BartNoise {
  static constexpr const char* kind = "denoising";
  std::string like;

  void check(const ObjectiveSetting& in, Constraints& constraints) const override;
  std::string prediction() const override;
  void expect(const ObjectiveSetting& in, std::vector<RowSizes>& rows) const override;
  bool draws_lengths() const override { return mask_length == MaskLength::span_poisson; }
  bool uses_mask() const override { return true; }
  bool uses_cls() const override { return true; }
  Placeholder blank() const override { return Placeholder::mask; }
  std::optional<SourceTargetLayout> layout() const override;
  std::vector<ScoringForm> forms(const BackboneConfig& model) const override;
  const char* rate_key() const override { return "mask_ratio"; }
};
template <class V>
void describe(V& v, DenoisingConfig& c) {
  v.like(c, "the noise of a published implementation",
         {{"bart",
           {{"permute_sentences", "1"},
            {"mask_ratio", "0.3"},
            {"mask_length", "span-poisson"},
            {"poisson_lambda", "3.5"},
            {"replace_length", "1"},
            {"random_ratio", "0.1"},
            {"insert_ratio", "0"},
            {"rotate_prob", "0"}}}});
  describe_next_token(v, c);
  v("permute_sentences", c.permute_sentences, "share of the sentences that are permuted among themselves",
    in_range(0, 1));
  v("mask_ratio", c.mask_ratio, "share of the words that are masked or deleted", in_range(0, 1));
  v("mask_length", c.mask_length, "unit of masking");
  v("poisson_lambda", c.poisson_lambda, "mask_length span-poisson: mean span length [words]", in_range(0.1, 100));
  v("replace_length", c.replace_length,
    "replacement of a span: 1 = one [MASK], 0 = nothing, -1 = one [MASK] for each token", in_range(-1, 1));
  v("random_ratio", c.random_ratio, "share of the [MASK]s that are random tokens instead", in_range(0, 1));
  v("insert_ratio", c.insert_ratio, "number of inserted tokens, as a share of the length", in_range(0, 1));
  v("rotate_prob", c.rotate_prob, "share of the texts that are rotated to start at a random token", in_range(0, 1));
}

std::unique_ptr<SourceTargetBuilder> make_builder(const DenoisingConfig& config, const RowContext& context);

}  // namespace cloze
