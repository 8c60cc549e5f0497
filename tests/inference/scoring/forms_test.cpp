// Each form of a score against loops over single rows of the plain network.
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/tokenizers/byte_bpe.h"
#include "objectives/span_corruption/span_corruption.h"
#include "objectives/plm/permutation.h"
#include "tests/inference/scoring/random_run.h"

#include "tests/support/objective.h"

using namespace cloze;

namespace {

using Ends = std::vector<size_t>;

/// Of each token of a text of spaced words, the one after the last token of its word.
Ends word_ends(const LoadedRun& run, const Ids& ids) {
  Ends ends(ids.size());
  for (size_t i = ids.size(); i-- > 0;)
    ends[i] = i + 1 < ids.size() && !run.tokenizer.starts_word(ids[i + 1]) ? ends[i + 1] : i + 1;
  return ends;
}

/// Masked rows [CLS] text [SEP], each token masked with those before its end; `earlier`: the prediction stands one
/// position before the mask.
std::vector<double> scores_to(const Ends& ends, const LoadedRun& run, const Ids& ids, int64_t earlier = 0) {
  const auto& special = run.tokenizer.special();
  std::vector<double> scores;
  for (size_t i = 0; i < ids.size(); ++i) {
    auto masked = ids;
    for (size_t k = i; k < ends[i]; ++k) masked[k] = special.mask;
    const auto row = joined({{special.cls}, masked, {special.sep}});
    const auto logits = logits_of(run, {.input_ids = row_of(row)});
    scores.push_back(log_probability(logits[static_cast<int64_t>(i) + 1 - earlier], ids[i]));
  }
  return scores;
}

std::vector<double> masked_scores(const LoadedRun& run, const std::string& text, bool whole_words,
                                  int64_t earlier = 0) {
  const auto ids = ids_of(run, text);
  Ends next(ids.size());
  std::iota(next.begin(), next.end(), 1);
  return scores_to(whole_words ? word_ends(run, ids) : next, run, ids, earlier);
}

ScoringOptions by(ScoringForm form) { return {.form = form}; }

/// Scores of each text, for its own sake, against `slow`.
template <class Slow>
void check_texts(const LoadedRun& run, ScoringForm form, const Slow& slow) {
  const auto scores = Scorer(run, by(form)).score(whole(some_texts));
  for (size_t i = 0; i < some_texts.size(); ++i) {
    INFO(some_texts[i]);
    check_values(values_of(scores[i]), slow(some_texts[i]));
    double sum = 0;
    for (const double value : values_of(scores[i])) sum += value;
    CHECK(scores[i].sum == Approx(sum));
    CHECK(scores[i].bytes == static_cast<int64_t>(some_texts[i].size()));
  }
}

}  // namespace

TEST_CASE("masked models score each token from a row in which it is masked", "[scoring]") {
  const auto name = GENERATE("bert", "spanbert", "roberta", "albert", "distilbert", "longformer", "bigbird",
                             "performer", "linformer", "distances", "keyed", "modernbert");
  const TempDir dir;
  INFO(name);
  const auto run = random_run(dir, name);
  CHECK(default_form(run.config) == ScoringForm::pll);
  check_texts(run, ScoringForm::pll, [&](const std::string& text) { return masked_scores(run, text, false); });
  check_texts(run, ScoringForm::pll_word_l2r, [&](const std::string& text) { return masked_scores(run, text, true); });
}

TEST_CASE("a word that is masked with its later tokens ends before attached punctuation, as the tokenizer cuts it",
          "[scoring]") {
  struct Case {
    Tokenizer tokenizer;
    std::string text;
    Ends ends;
    int64_t words;
  };
  const TempDir dir;
  // [the] [old ##er] [dog ##ling] [.] [sing ##s] [.] [.], and [ca t] [' s] [,] [_ ca t] [.]
  const std::vector<Case> cases{{small_tokenizer(dir), "the older dogling.sings..", {1, 3, 3, 5, 5, 6, 8, 8, 9, 10}, 3},
                                {byte_tokenizer(dir), "cat's, cat.", {2, 2, 4, 4, 5, 8, 8, 8, 9}, 2}};
  for (const auto& [tokenizer, text, ends, count] : cases) {
    const auto run = random_run(tokenizer, family("bert").model, {default_objective<MlmConfig>()});
    const auto ids = ids_of(run, text);
    REQUIRE(ids.size() == ends.size());
    const auto score = Scorer(run, by(ScoringForm::pll_word_l2r)).score(whole({text}))[0];
    check_values(values_of(score), scores_to(ends, run, ids));
    CHECK(score.words == count);  // by white space
  }
}

TEST_CASE("an encoder of mntp reads its prediction one position before the mask", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, family("bert").model, {default_objective<MntpConfig>()});
  for (const auto form : {ScoringForm::pll, ScoringForm::pll_word_l2r})
    check_texts(run, form, [&](const std::string& text) {
      return masked_scores(run, text, form == ScoringForm::pll_word_l2r, 1);
    });
}

TEST_CASE("a hybrid decoder scores masked tokens in both directions, and texts from left to right", "[scoring]") {
  const TempDir dir;
  const auto mntp = objective("{kind: mntp, causal_share: 0.25}");
  const auto run = random_run(dir, family("gpt2").model, {mntp});
  CHECK(default_form(run.config) == ScoringForm::pll);
  const auto& special = run.tokenizer.special();
  check_texts(run, ScoringForm::pll, [&](const std::string& text) {
    const auto ids = ids_of(run, text);
    std::vector<double> scores;
    for (size_t i = 0; i < ids.size(); ++i) {
      auto masked = joined({{special.sep}, ids});
      masked[i + 1] = special.mask;
      const auto length = static_cast<int64_t>(masked.size());
      const auto logits = logits_of(run, {.input_ids = row_of(masked), .prefix = at::full({1}, length, at::kLong)});
      scores.push_back(log_probability(logits[static_cast<int64_t>(i)], ids[i]));
    }
    return scores;
  });
  check_texts(run, ScoringForm::likelihood, [&](const std::string& text) {
    const auto ids = ids_of(run, text);
    const auto logits = logits_of(run, {.input_ids = row_of(joined({{special.sep}, ids}))});
    std::vector<double> scores;
    for (size_t i = 0; i < ids.size(); ++i) scores.push_back(log_probability(logits[static_cast<int64_t>(i)], ids[i]));
    return scores;
  });
  const auto masked_only = objective("{kind: mntp, causal_share: 0}");
  CHECK(scoring_fault(random_run(dir, family("gpt2").model, {masked_only}).config, ScoringForm::likelihood) != "");
}

TEST_CASE("a decoder scores each token after those before it, the first after the separator of texts", "[scoring]") {
  const auto name = GENERATE("gpt2", "gpt2-rotary", "lstm");
  const TempDir dir;
  const auto run = random_run(dir, name);
  CHECK(default_form(run.config) == ScoringForm::likelihood);
  check_texts(run, ScoringForm::likelihood, [&](const std::string& text) {
    const auto ids = ids_of(run, text);
    std::vector<double> scores;
    Ids before{run.tokenizer.special().sep};
    for (const auto id : ids) {
      scores.push_back(log_probability(logits_of(run, {.input_ids = row_of(before)})[-1], id));
      before.push_back(id);
    }
    return scores;
  });
}

TEST_CASE("a prefix language model reads the context in both directions", "[scoring]") {
  const TempDir dir;
  auto model = *as<Gpt2Config>(family("gpt2").model);
  model.prefix_lm = true;
  const auto& text = some_texts[3];
  const Passage passage{.left = "the older dogling", .scored = " sings by the river"};
  const auto check = [&](const LoadedRun& run, const Ids& source) {
    const auto target = ids_of(run, passage.scored);
    const auto prefix = at::full({1}, static_cast<int64_t>(source.size()) - 1, at::kLong);
    const auto logits = logits_of(run, {.input_ids = row_of(joined({source, target})), .prefix = prefix});
    std::vector<double> wanted;
    for (size_t i = 0; i < target.size(); ++i)
      wanted.push_back(log_probability(logits[static_cast<int64_t>(source.size() + i) - 1], target[i]));
    check_values(values_of(Scorer(run, {}).score(std::vector{passage})[0]), wanted);
  };
  const auto of_pairs = random_run(dir, model, {default_objective<PairsConfig>()});
  check(of_pairs, joined({ids_of(of_pairs, passage.left), {of_pairs.tokenizer.special().sep}}));
  SpanCorruptionConfig continued;
  continued.corruption = Corruption::prefix_lm;
  const auto of_texts = random_run(dir, model, {continued});
  check(of_texts, ids_of(of_texts, passage.left));
  CHECK(default_form(of_texts.config) == ScoringForm::likelihood);
  CHECK(Scorer(of_texts, {}).score(whole({text}))[0].tokens.size() == ids_of(of_texts, text).size());
}

TEST_CASE("an XLNet scores its text from left to right by the query stream, after [SEP] and [CLS]", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "xlnet");
  CHECK(default_form(run.config) == ScoringForm::likelihood);
  check_texts(run, ScoringForm::likelihood, [&](const std::string& text) {
    const auto ids = ids_of(run, text);
    const auto row = plm_row(ids, false, run.tokenizer.special());
    const auto length = static_cast<int64_t>(row.ids.size()), count = static_cast<int64_t>(ids.size());
    std::vector<double> scores;
    for (int64_t i = 0; i < count; ++i) {  // one target at a time
      auto visible = at::zeros({1, length, length}, at::kBool);
      for (int64_t query = 0; query < length; ++query)
        for (int64_t key = 0; key < length; ++key)
          visible[0][query][key] = key >= count || (query < count && key < query);
      const auto logits = logits_of(run, {.input_ids = row_of(row.ids),
                                          .token_type_ids = row_of(row.segments),
                                          .visible = visible,
                                          .target_positions = at::full({1, 1}, i, at::kLong)});
      scores.push_back(log_probability(logits[0], ids[static_cast<size_t>(i)]));
    }
    return scores;
  });
}

TEST_CASE("an XLNet's score of a token does not depend on the tokens after it", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "xlnet");
  const auto scores = Scorer(run, {}).score(whole({"the cats see a dog", "the cats sing"}));
  auto some = values_of(scores[0]), other = values_of(scores[1]);
  some.resize(3), other.resize(3);
  // Their rows differ in length, and so does the distance to [SEP] and [CLS].
  CHECK(some[0] != Approx(other[0]).epsilon(1e-9));
  const auto same = Scorer(run, {}).score(whole({"the cats see a dog", "the cats see a bird"}));
  for (size_t i = 0; i < 5; ++i)
    CHECK(same[0].tokens[i].log_probability == Approx(same[1].tokens[i].log_probability).margin(1e-6));
}

TEST_CASE("the discriminator of ELECTRA judges each token in one pass, its generator predicts masked ones",
          "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "electra");
  CHECK(default_form(run.config) == ScoringForm::detection);
  const auto& special = run.tokenizer.special();
  check_texts(run, ScoringForm::detection, [&](const std::string& text) {
    const auto ids = ids_of(run, text);
    const auto logits = logits_of(run, {.input_ids = row_of(joined({{special.cls}, ids, {special.sep}}))});
    std::vector<double> scores;
    for (size_t i = 0; i < ids.size(); ++i)
      scores.push_back(-std::log1p(std::exp(logits[static_cast<int64_t>(i) + 1].item<double>())));
    return scores;
  });
  auto generator = run;
  take_generator(generator);
  check_texts(run, ScoringForm::pll, [&](const std::string& text) { return masked_scores(generator, text, false); });
  CHECK_THAT(Scorer(run, {.form = ScoringForm::pll}).description(), Catch::EndsWith("by the generator"));
  CHECK_THAT(Scorer(run, {}).description(), Catch::StartsWith("detection"));
}

namespace {

/// The logits of an encoder-decoder's decoder.
Tensor decoder_logits(const LoadedRun& run, const Ids& source, const Ids& decoder) {
  return logits_of(run, {.input_ids = row_of(source), .decoder_input_ids = row_of(decoder)});
}

int64_t start_of(const LoadedRun& run) {
  const auto decoding = decoding_ids_of(run.config.model);
  return decoding.decoder_starts_with_last_target ? run.tokenizer.special().sep : decoding.decoder_start_token_id;
}

}  // namespace

TEST_CASE("a model of span corruption scores what its decoder says of a sentinel", "[scoring]") {
  const auto name = GENERATE("t5", "t5-untied");
  const TempDir dir;
  const auto run = random_run(dir, name);
  const auto eos = run.tokenizer.special().sep, sentinel = run.tokenizer.sentinels()[0];
  CHECK(default_form(run.config) == ScoringForm::pll);
  for (const auto form : {ScoringForm::pll, ScoringForm::pll_word_l2r})
    check_texts(run, form, [&](const std::string& text) {
      const auto ids = ids_of(run, text);
      const auto ends = word_ends(run, ids);
      std::vector<double> scores;
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto end = static_cast<std::ptrdiff_t>(form == ScoringForm::pll ? i + 1 : ends[i]);
        const Ids before(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i)),
            after(ids.begin() + end, ids.end());
        const auto logits = decoder_logits(run, joined({before, {sentinel}, after, {eos}}), {start_of(run), sentinel});
        scores.push_back(log_probability(logits[1], ids[i]));
      }
      return scores;
    });
  const Passage passage{.left = "the cats", .scored = " see a dog"};
  const auto context = ids_of(run, passage.left), completion = ids_of(run, passage.scored);
  const auto logits =
      decoder_logits(run, joined({context, {sentinel, eos}}), joined({{start_of(run), sentinel}, completion}));
  std::vector<double> wanted;
  for (size_t i = 0; i < completion.size(); ++i)
    wanted.push_back(log_probability(logits[static_cast<int64_t>(i) + 1], completion[i]));
  check_values(values_of(Scorer(run, by(ScoringForm::likelihood)).score(std::vector{passage})[0]), wanted);
}

TEST_CASE("a model of denoising scores a masked token after the true tokens before it", "[scoring]") {
  const auto name = GENERATE("bart", "mbart", "transformer");
  const TempDir dir;
  const auto run = random_run(dir, name);
  INFO(name);
  const auto& special = run.tokenizer.special();
  const bool begins = backbone_of(run.config.model).prepend_bos;
  const Ids bos = begins ? Ids{special.cls} : Ids{};
  CHECK(default_form(run.config) == ScoringForm::pll);
  check_texts(run, ScoringForm::pll, [&](const std::string& text) {
    const auto ids = ids_of(run, text);
    std::vector<double> scores;
    for (size_t i = 0; i < ids.size(); ++i) {
      auto masked = ids;
      masked[i] = special.mask;
      const auto logits =
          decoder_logits(run, joined({bos, masked, {special.sep}}), joined({{start_of(run)}, bos, ids}));
      scores.push_back(log_probability(logits[static_cast<int64_t>(i) + begins], ids[i]));
    }
    return scores;
  });
  const Passage passage{.left = "the cats", .scored = " see a dog"};
  const auto context = ids_of(run, passage.left), completion = ids_of(run, passage.scored);
  const auto logits = decoder_logits(run, joined({bos, context, {special.mask, special.sep}}),
                                     joined({{start_of(run)}, bos, context, completion}));
  std::vector<double> wanted;
  for (size_t i = 0; i < completion.size(); ++i)
    wanted.push_back(log_probability(logits[static_cast<int64_t>(context.size() + i) + begins], completion[i]));
  check_values(values_of(Scorer(run, by(ScoringForm::likelihood)).score(std::vector{passage})[0]), wanted);
}

TEST_CASE("a model of pairs or of gap sentences scores the second text of a pair", "[scoring]") {
  const TempDir dir;
  const Passage passage{.left = "the cats", .scored = "see a dog", .right = " by the river"};
  for (const auto& objective : {default_objective<PairsConfig>(), default_objective<GapSentencesConfig>()}) {
    const auto run = random_run(dir, family("pegasus").model, {objective});
    const auto& special = run.tokenizer.special();
    const auto context = ids_of(run, passage.left), completion = ids_of(run, passage.scored);
    const Ids gap = as<PairsConfig>(objective) ? Ids{} : Ids{special.sentence_mask};
    const Passage spaced{.left = "the cats ", .scored = "see a dog"};
    const auto logits =
        decoder_logits(run, joined({context, gap, {special.sep}}), joined({{start_of(run)}, completion}));
    std::vector<double> wanted;
    for (size_t i = 0; i < completion.size(); ++i)
      wanted.push_back(log_probability(logits[static_cast<int64_t>(i)], completion[i]));
    check_values(values_of(Scorer(run, {}).score(std::vector{spaced})[0]), wanted);
    CHECK(scoring_fault(run.config, ScoringForm::pll) != "");
  }
}

TEST_CASE("only the tokens of the scored span count, and what follows it is seen by masked models alone", "[scoring]") {
  const TempDir dir;
  const Passage passage{.left = "the ", .scored = "cats see", .right = " a dog"};
  const auto masked = random_run(dir, "bert");
  const auto score = Scorer(masked, {}).score(std::vector{passage})[0];
  const auto all = masked_scores(masked, passage.text(), false);
  check_values(values_of(score), {all[1], all[2], all[3]});
  CHECK(score.tokens[0].begin == 4);
  CHECK(score.tokens[2].end == 12);
  CHECK(score.words == 2);
  CHECK(score.bytes == 8);
  const auto causal = random_run(dir, "gpt2");
  const auto with = Scorer(causal, {}).score(std::vector{passage, Passage{.left = "the ", .scored = "cats see"}});
  CHECK((with[0].tokens == with[1].tokens));
}

TEST_CASE("the space before a completion counts with it, also where it is a token of its own", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(byte_tokenizer(dir), family("bert").model, {default_objective<MlmConfig>()});
  const auto all = masked_scores(run, "cat ca", false);  // [ca t] [_ ca]
  REQUIRE(all.size() == 4);
  const auto scores =
      Scorer(run, by(ScoringForm::pll))
          .score(std::vector<Passage>{
              {.left = "cat ", .scored = "ca"}, {.left = "cat", .scored = " ca"}, {.left = "ca", .scored = "t"}});
  check_values(values_of(scores[0]), {all[2], all[3]});
  CHECK((scores[0].tokens == scores[1].tokens));
  CHECK(scores[0].bytes == 2);
  CHECK(scores[2].tokens.size() == 1);
}

TEST_CASE("a gap is scored with all of its tokens masked together", "[scoring]") {
  const TempDir dir;
  const Passage passage{.left = "the ", .scored = "cats see", .right = " a dog"};
  const auto bert = random_run(dir, "bert"),
             mntp = random_run(dir, family("bert").model, {default_objective<MntpConfig>()});
  for (const auto* run : {&bert, &mntp}) {
    const auto ids = ids_of(*run, passage.text());
    auto masked = joined({{run->tokenizer.special().cls}, ids, {run->tokenizer.special().sep}});
    for (size_t i = 2; i < 5; ++i) masked[i] = run->tokenizer.special().mask;  // cat ##s see
    const auto logits = logits_of(*run, {.input_ids = row_of(masked)});
    std::vector<double> wanted;
    for (int64_t i = 1; i < 4; ++i)
      wanted.push_back(log_probability(logits[i + 1 - (run == &mntp)], ids[static_cast<size_t>(i)]));
    check_values(values_of(Scorer(*run, by(ScoringForm::pll_span)).score(std::vector{passage})[0]), wanted);
  }
  const auto t5 = random_run(dir, "t5");
  const auto sentinel = t5.tokenizer.sentinels()[0], eos = t5.tokenizer.special().sep;
  const auto ids = ids_of(t5, passage.text());
  const auto of_t5 =
      decoder_logits(t5, {ids[0], sentinel, ids[4], ids[5], eos}, {start_of(t5), sentinel, ids[1], ids[2]});
  std::vector<double> wanted;
  for (int64_t i = 1; i < 4; ++i) wanted.push_back(log_probability(of_t5[i], ids[static_cast<size_t>(i)]));
  check_values(values_of(Scorer(t5, by(ScoringForm::pll_span)).score(std::vector{passage})[0]), wanted);
}

TEST_CASE("a form that a run does not answer is refused with those that it does", "[scoring]") {
  const TempDir dir;
  const auto bert = random_run(dir, "bert"), gpt2 = random_run(dir, "gpt2");
  CHECK_THROWS_WITH(Scorer(bert, by(ScoringForm::likelihood)),
                    "runs/random: the run cannot be scored by likelihood, because it was not trained to predict tokens "
                    "from those before them; choose pll, pll-word-l2r or pll-span");
  CHECK_THROWS_AS(Scorer(bert, by(ScoringForm::likelihood)), ConfigError);
  CHECK_THROWS_WITH(
      Scorer(gpt2, by(ScoringForm::pll)),
      "runs/random: the run cannot be scored by pll, because it was not trained to predict masked tokens; "
      "choose likelihood");
  CHECK_THROWS_WITH(Scorer(gpt2, by(ScoringForm::detection)), Catch::Contains("no discriminator of replaced tokens"));
  const auto pairs = random_run(dir, family("bert").model, {default_objective<NspConfig>()});
  CHECK_THROWS_WITH(
      Scorer(pairs, {}),
      "runs/random: the run cannot be scored: it has no head that gives probabilities of tokens, only that "
      "of nsp; score a run of mlm, mntp, rtd, clm, plm, span_corruption, denoising, gap_sentences or pairs");
  CHECK_THROWS_WITH(default_form(random_run(dir, family("bert").model, {}).config),
                    Catch::Contains("import a model with its prediction head"));
  const auto uniform = objective("{kind: rtd, replace_by: uniform}");
  const auto electra = random_run(dir, family("electra").model, {uniform});
  CHECK(scoring_fault(electra.config, ScoringForm::detection).empty());
  CHECK_THAT(scoring_fault(electra.config, ScoringForm::pll), Catch::EndsWith("choose detection"));
  auto silent = bert;
  silent.has_tokenizer = false;
  CHECK_THROWS_AS(Scorer(silent, {}), CheckpointError);
}
