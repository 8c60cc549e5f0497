// Sums of the published BabyLM program against rows of the plain network, one at a time.

#include "evaluation/suites/babylm.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;
using Catch::Contains;

namespace {

const std::vector<BabylmCandidate> candidates{
    {.sentence = "the cats see a dog", .completion = "the cats see a dog"},
    {.sentence = "the cats see a dogling", .completion = "a dogling", .prefix = "the cats see "},
    {.sentence = "the old river sings", .completion = " sings", .prefix = "a bird"},
    {.sentence = "birds", .completion = "s"},
};

/// The tokens of a candidate, and whether each is scored: it ends after the completion begins.
struct Text {
  Ids ids;
  std::vector<bool> scored;
};
Text text_of(const LoadedRun& run, const BabylmCandidate& candidate) {
  Text text;
  for (const auto& token : run.tokenizer.encode_with_offsets(candidate.sentence)) {
    text.ids.push_back(token.id);
    text.scored.push_back(token.end > candidate.sentence.size() - candidate.completion.size());
  }
  return text;
}

/// The sum over scored tokens of `slow(ids, i)`.
template <class Slow>
void check_sums(const LoadedRun& run, BabylmBackend backend, const Slow& slow) {
  const auto sums = babylm_sums(run, candidates, backend, {});
  REQUIRE(sums.size() == candidates.size());
  for (size_t c = 0; c < candidates.size(); ++c) {
    INFO(candidates[c].sentence);
    const auto [ids, scored] = text_of(run, candidates[c]);
    double sum = 0;
    for (size_t i = 0; i < ids.size(); ++i)
      if (scored[i]) sum += slow(ids, i);
    CHECK(sums[c] == Approx(sum).margin(1e-4));
  }
}

/// A BART whose tokenizer has <s> and </s> beside BERT's tokens.
LoadedRun bart(const TempDir& dir) {
  return random_run(small_tokenizer(dir, "<s>\n</s>\n"), family("bart").model, {default_objective<DenoisingConfig>()});
}

}  // namespace

TEST_CASE("backends mlm and mntp mask one token of a framed text at a time", "[suites][babylm]") {
  const bool shifted = GENERATE(false, true);
  const TempDir dir;
  const auto run = random_run(dir, family("bert").model,
                              shifted ? Objectives{default_objective<MntpConfig>()}
                                      : Objectives{default_objective<MlmConfig>(), default_objective<NspConfig>()});
  const auto& special = run.tokenizer.special();
  CHECK(babylm_frame(run).before == Ids{special.cls});
  CHECK(babylm_frame(run).after == Ids{special.sep});
  check_sums(run, shifted ? BabylmBackend::mntp : BabylmBackend::mlm, [&](Ids ids, size_t i) {
    const auto target = std::exchange(ids[i], special.mask);
    const auto logits = logits_of(run, {.input_ids = row_of(joined({{special.cls}, ids, {special.sep}}))});
    return log_probability(logits[static_cast<int64_t>(i) + (shifted ? 0 : 1)], target);
  });
}

TEST_CASE("backend causal does not score the first token of a text that nothing precedes", "[suites][babylm]") {
  const TempDir dir;
  const auto run = random_run(dir, "gpt2");
  CHECK(babylm_frame(run).before.empty());
  check_sums(run, BabylmBackend::causal, [&](const Ids& ids, size_t i) {
    if (i == 0) return 0.0;
    const Ids before(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i));
    return log_probability(logits_of(run, {.input_ids = row_of(before)})[-1], ids[i]);
  });
}

TEST_CASE("backend enc_dec_mask replaces one token in the encoder, and its decoder reads bos and mask",
          "[suites][babylm]") {
  const TempDir dir;
  const auto run = bart(dir);
  const auto& special = run.tokenizer.special();
  REQUIRE(special.bos >= 0);
  const auto frame = babylm_frame(run);
  check_sums(run, BabylmBackend::enc_dec_mask, [&](Ids ids, size_t i) {
    const auto target = std::exchange(ids[i], special.mask);
    const auto logits = logits_of(run, {.input_ids = row_of(joined({frame.before, ids, frame.after})),
                                        .decoder_input_ids = row_of({special.bos, special.mask})});
    return log_probability(logits[1], target);
  });
}

TEST_CASE("backend enc_dec_prefix reads the prefix in the encoder and the completion after bos and mask",
          "[suites][babylm]") {
  const TempDir dir;
  const auto run = bart(dir);
  const auto& special = run.tokenizer.special();
  const auto sums = babylm_sums(run, candidates, BabylmBackend::enc_dec_prefix, {});
  for (size_t c = 0; c < candidates.size(); ++c) {
    const auto prefix = candidates[c].prefix ? ids_of(run, *candidates[c].prefix) : Ids{};
    const auto completion = ids_of(run, candidates[c].completion);
    const auto logits =
        logits_of(run, {.input_ids = row_of(joined({{special.cls}, prefix, {special.mask, special.eos}})),
                        .decoder_input_ids = row_of(joined({{special.bos, special.mask}, completion}))});
    double sum = 0;
    for (size_t i = 0; i < completion.size(); ++i)
      sum += log_probability(logits[static_cast<int64_t>(i) + 1], completion[i]);
    CHECK(sums[c] == Approx(sum).margin(1e-4));
  }
}

TEST_CASE("a backend that does not fit a run and a completion elsewhere in its sentence are refused",
          "[suites][babylm]") {
  const TempDir dir;
  const auto bert = random_run(dir, "bert"), gpt2 = random_run(dir, "gpt2"), no_bos = random_run(dir, "bart");
  const auto refused = [](const LoadedRun& run, BabylmBackend backend, const std::string& sentence) {
    CHECK_THAT(babylm_fault(run, backend), Contains(sentence));
    CHECK_THROWS_AS(babylm_sums(run, candidates, backend, {}), ConfigError);
  };
  refused(bert, BabylmBackend::causal,
          "backend causal scores runs of clm, and the run is one of mlm and nsp; choose mlm");
  refused(bert, BabylmBackend::mntp, "backend mntp scores runs of mntp, and the run is one of mlm and nsp; choose mlm");
  refused(bert, BabylmBackend::enc_dec_mask, "backend enc_dec_mask scores encoder-decoders, and the run is one of mlm");
  refused(gpt2, BabylmBackend::mlm, "backend mlm scores runs of mlm, and the run is one of clm; choose causal");
  refused(no_bos, BabylmBackend::causal, "backend causal scores decoders; use enc_dec_prefix or enc_dec_mask");
  refused(no_bos, BabylmBackend::enc_dec_prefix, "needs a tokenizer with a mask token and a bos token");
  CHECK(babylm_fault(gpt2, BabylmBackend::causal).empty());
  CHECK(official_backend(bert) == BabylmBackend::mlm);
  CHECK_FALSE(official_backend(no_bos));
  CHECK_THAT(no_official_backend(no_bos), Contains("needs a tokenizer with a mask token and a bos token"));
  const auto xlnet = random_run(dir, "xlnet");
  CHECK_FALSE(official_backend(xlnet));
  CHECK(no_official_backend(xlnet) == "the published program has no backend for runs of plm");
  CHECK_THROWS_WITH(babylm_sums(gpt2, {{.sentence = "a dog", .completion = "cat"}}, BabylmBackend::causal, {}),
                    Contains("the completion 'cat' is not the end of 'a dog'"));
}

TEST_CASE("a candidate whose row is longer than the model is reported without sums", "[suites][babylm]") {
  const TempDir dir;
  std::string text = "the cats";
  for (int i = 0; i < 40; ++i) text += " see";
  const std::vector<BabylmCandidate> longest{candidates[0], {.sentence = text, .completion = "see"}};
  const auto gpt2 = random_run(dir, "gpt2");
  CHECK_NOTHROW(check_babylm_fit(gpt2, candidates, BabylmBackend::causal));
  CHECK_THROWS_AS(check_babylm_fit(gpt2, longest, BabylmBackend::causal), DataError);
  CHECK_THROWS_WITH(check_babylm_fit(gpt2, longest, BabylmBackend::causal),
                    Contains("runs/random: reads at most 40 tokens; a text has 4"));
}
