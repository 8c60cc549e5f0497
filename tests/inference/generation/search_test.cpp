#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.h"
#include "tests/inference/generation/fake_model.h"

using namespace cloze;

namespace {

/// Checks results against those of transformers for the same model and settings.
void same(const std::vector<std::vector<GeneratedIds>>& ids, const std::vector<GeneratedIds>& expected) {
  std::vector<GeneratedIds> flat;
  for (const auto& list : ids) flat.insert(flat.end(), list.begin(), list.end());
  REQUIRE(flat.size() == expected.size());
  for (size_t i = 0; i < flat.size(); ++i) {
    INFO("text " << i);
    CHECK(flat[i].ids == expected[i].ids);
    CHECK(flat[i].score == Approx(expected[i].score).epsilon(1e-6).margin(1e-6));
  }
}

/// Every sequence that a model can generate, with log-probability / length^penalty.
void enumerate(const Fake& model, uint64_t state, const Ids& ids, double sum, int64_t generated, const SearchConfig& c,
               std::vector<GeneratedIds>& all) {
  if (generated == c.max_new_tokens || (generated > 0 && ids.back() == c.eos_token_id)) {
    all.push_back({ids, sum / std::pow(static_cast<double>(generated), c.length_penalty)});
    return;
  }
  double total = 0;
  for (int64_t v = 0; v < model.size; ++v) total += std::exp(double{model.logit(state, v)});
  for (int64_t v = 0; v < model.size; ++v) {
    auto longer = ids;
    longer.push_back(v);
    enumerate(model, Fake::read(state, v), longer, sum + double{model.logit(state, v)} - std::log(total), generated + 1,
              c, all);
  }
}

void refused(const SearchConfig& config, const std::string& message) {
  INFO(message);
  CHECK_THROWS_AS(check(config), ConfigError);
  CHECK_THROWS_WITH(check(config), message);
}

const Prompts two = {{7, 9}, {30, 5}};

}  // namespace

// ---- recorded results of transformers 5.23 ----

TEST_CASE("greedy search gives the ids of transformers, ended rows padded", "[search]") {
  same(run({300, 11, 1, 3.5F}, two, {.max_new_tokens = 12, .eos_token_id = 2, .pad_token_id = 1}),
       {{{7, 9, 204, 2}, -5.611792}, {{30, 5, 2, 1}, -3.523696}});
}

TEST_CASE("beam search gives the ids and scores of transformers, for every early_stopping", "[search]") {
  SearchConfig c{.max_new_tokens = 12, .num_beams = 3, .num_return_sequences = 2, .eos_token_id = 2, .pad_token_id = 1};
  c.early_stopping = EarlyStopping::yes;
  same(run({300, 91, 0.5, 3}, {{7, 9}}, c), {{{7, 9, 256, 2, 1}, -3.047543}, {{7, 9, 60, 92, 2}, -4.187437}});
  c.early_stopping = EarlyStopping::no;
  same(run({300, 91, 0.5, 3}, {{7, 9}}, c), {{{7, 9, 256, 2, 1, 1}, -3.047543}, {{7, 9, 60, 92, 155, 2}, -3.959084}});
  c.early_stopping = EarlyStopping::never;
  same(run({300, 91, 0.5, 3}, {{7, 9}}, c),
       {{{7, 9, 256, 2, 1, 1, 1, 1}, -3.047543}, {{7, 9, 60, 92, 203, 49, 262, 2}, -3.915609}});
}

TEST_CASE("a length penalty makes beams longer or shorter as in transformers", "[search]") {
  SearchConfig c{.max_new_tokens = 12,
                 .num_beams = 3,
                 .num_return_sequences = 2,
                 .length_penalty = 2,
                 .early_stopping = EarlyStopping::never,
                 .eos_token_id = 2,
                 .pad_token_id = 1};
  same(run({300, 11, 1, 4.5}, two, c), {{{7, 9, 274, 183, 293, 180, 273, 35, 269, 126, 70, 289, 252, 2}, -0.283094},
                                        {{7, 9, 274, 183, 293, 180, 273, 35, 269, 126, 70, 289, 65, 2}, -0.297145},
                                        {{30, 5, 30, 298, 1, 151, 35, 198, 106, 178, 266, 89, 63, 2}, -0.304592},
                                        {{30, 5, 30, 298, 1, 151, 35, 198, 106, 178, 266, 89, 292, 2}, -0.305271}});
  c.num_beams = 4, c.num_return_sequences = 1, c.length_penalty = -1, c.early_stopping = EarlyStopping::no;
  same(run({300, 11, 1, 4.5}, two, c), {{{7, 9, 38, 2}, -8.495248}, {{30, 5, 2, 1}, -2.573126}});
}

TEST_CASE("n-grams, minimum lengths, forced ids and repetition penalties constrain beams as in transformers",
          "[search]") {
  const SearchConfig c{.max_new_tokens = 12,
                       .min_new_tokens = 6,
                       .num_beams = 4,
                       .repetition_penalty = 1.3,
                       .no_repeat_ngram_size = 2,
                       .eos_token_id = 2,
                       .pad_token_id = 1,
                       .forced_bos_token_id = 5,
                       .forced_eos_token_id = 2};
  same(run({12, 11, 1, 2}, {{7}, {3}}, c),
       {{{7, 5, 0, 1, 4, 10, 10, 2, 1}, -0.928381}, {{3, 5, 6, 1, 3, 8, 6, 9, 2}, -0.726833}});
}

TEST_CASE("beams are padded with eos if the padding id is 0, as in transformers", "[search]") {
  const SearchConfig c{
      .max_new_tokens = 12, .num_beams = 4, .num_return_sequences = 3, .eos_token_id = 2, .pad_token_id = 0};
  same(run({300, 11, 1, 4.5}, two, c), {{{7, 9, 38, 2, 2}, -2.123812},
                                        {{7, 9, 204, 2, 2}, -2.411954},
                                        {{7, 9, 274, 64, 2}, -2.524031},
                                        {{30, 5, 254, 2, 2}, -2.213457},
                                        {{30, 5, 2, 2, 2}, -2.573126},
                                        {{30, 5, 20, 2, 2}, -3.451124}});
}

TEST_CASE("groups of beams give the ids and scores of transformers 4.49", "[search]") {
  same(run({300, 11, 1, 4.5}, two,
           {.max_new_tokens = 12,
            .num_beams = 4,
            .num_beam_groups = 2,
            .num_return_sequences = 4,
            .diversity_penalty = 1.5,
            .eos_token_id = 2,
            .pad_token_id = 1}),
       {{{7, 9, 38, 2, 1}, -2.123812},
        {{7, 9, 204, 2, 1}, -2.411954},
        {{7, 9, 203, 2, 1}, -3.156521},
        {{7, 9, 274, 183, 2}, -3.202477},
        {{30, 5, 254, 2, 1}, -2.213457},
        {{30, 5, 2, 1, 1}, -2.573126},
        {{30, 5, 2, 1, 1}, -2.573126},
        {{30, 5, 30, 2, 1}, -3.525430}});
  same(run({300, 11, 1, 4.5}, two,
           {.max_new_tokens = 12,
            .num_beams = 6,
            .num_beam_groups = 3,
            .num_return_sequences = 3,
            .diversity_penalty = 0.5,
            .no_repeat_ngram_size = 2,
            .early_stopping = EarlyStopping::yes,
            .eos_token_id = 2,
            .pad_token_id = 1}),
       {{{7, 9, 38, 2}, -2.123812},
        {{7, 9, 76, 2}, -2.311594},
        {{7, 9, 204, 2}, -2.411954},
        {{30, 5, 254, 2}, -2.213457},
        {{30, 5, 2, 1}, -2.573126},
        {{30, 5, 2, 1}, -2.573126}});
  // Found by search over settings: each depends on a detail (which tokens are penalised, when a group is full, which
  // ends count).
  same(run({60, 127, 0.5, 2}, {{7, 9}},
           {.max_new_tokens = 5,
            .num_beams = 9,
            .num_beam_groups = 3,
            .num_return_sequences = 3,
            .length_penalty = 2,
            .diversity_penalty = 0.25,
            .early_stopping = EarlyStopping::yes,
            .eos_token_id = 2,
            .pad_token_id = 1}),
       {{{7, 9, 4, 10, 19, 2}, -0.589184}, {{7, 9, 4, 10, 50, 2}, -0.657747}, {{7, 9, 4, 10, 43, 2}, -0.677864}});
  same(run({60, 449, 0.5, 3}, {{7, 9}},
           {.max_new_tokens = 3,
            .num_beams = 2,
            .num_beam_groups = 2,
            .length_penalty = 2,
            .diversity_penalty = 0.25,
            .early_stopping = EarlyStopping::never,
            .eos_token_id = 2,
            .pad_token_id = 1}),
       {{{7, 9, 59, 24, 2}, -0.782113}});
  same(run({60, 370, 0.5, 2}, {{7, 9}},
           {.max_new_tokens = 3,
            .num_beams = 6,
            .num_beam_groups = 3,
            .num_return_sequences = 2,
            .length_penalty = 0,
            .diversity_penalty = 0.25,
            .early_stopping = EarlyStopping::never,
            .eos_token_id = 2,
            .pad_token_id = 1}),
       {{{7, 9, 18, 2, 1}, -4.460036}, {{7, 9, 48, 34, 2}, -7.668612}});
}

// ---- oracles ----

TEST_CASE("with enough beams the best of all sequences is found", "[search]") {
  for (uint64_t seed = 0; seed < 12; ++seed)
    for (const double penalty : {0.0, 1.0, 2.0, -1.0}) {
      INFO("seed " << seed << " length penalty " << penalty);
      const SearchConfig c{.max_new_tokens = 4,
                           .num_beams = 128,
                           .num_return_sequences = 20,
                           .length_penalty = penalty,
                           .early_stopping = EarlyStopping::never,
                           .eos_token_id = 2,
                           .pad_token_id = 1};
      const Fake model(4, seed, 0.5, 0);
      std::vector<GeneratedIds> all;
      enumerate(model, Fake::read(seed, 3), {3}, 0, 0, c, all);
      std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
      const auto found = run(model, {{3}}, c)[0];
      for (size_t i = 0; i < 20; ++i) {
        auto ids = all[i].ids;
        ids.resize(found[i].ids.size(), 1);
        CHECK(found[i].ids == ids);
        CHECK(found[i].score == Approx(all[i].score).epsilon(1e-5));
      }
    }
}

TEST_CASE("scores are log-probabilities to six digits in a large vocabulary", "[search]") {
  for (const bool rising : {false, true}) {
    auto logits = random_logits(5003, 1, 2);
    if (rising) std::sort(logits.begin(), logits.end());
    double sum = 0;
    for (const auto x : logits) sum += std::exp(double{x});
    const auto best = std::max_element(logits.begin(), logits.end());
    const double expected = double{*best} - std::log(sum);
    Fixed model(logits);
    for (const SearchConfig& c :
         {SearchConfig{.max_new_tokens = 1}, SearchConfig{.max_new_tokens = 1, .num_beams = 2}}) {
      const auto found = search(model, {{3}}, c)[0][0];
      CHECK(found.ids[1] == best - logits.begin());
      CHECK(found.score == Approx(expected).epsilon(1e-6));
    }
  }
}

// ---- invariants ----

TEST_CASE("the ends of a beam search have the names of transformers", "[search]") {
  CHECK(choice_of<EarlyStopping>("true") == EarlyStopping::yes);
  CHECK(choice_of<EarlyStopping>("false") == SearchConfig{}.early_stopping);
  CHECK(choice_of<EarlyStopping>("never") == EarlyStopping::never);
  CHECK_THROWS_WITH(choice_of<EarlyStopping>("yes"), "'yes' is not known; choose one of false, true, never");
}

TEST_CASE("a prompt gives the same result in a batch as alone, apart from padding", "[search]") {
  const Prompts prompts = {{7, 9}, {30, 5}, {8, 8}, {1, 2}};
  for (uint64_t seed = 0; seed < 20; ++seed)
    for (const auto stopping : {EarlyStopping::yes, EarlyStopping::no, EarlyStopping::never})
      for (const int64_t groups : {1, 2}) {
        const SearchConfig c{.max_new_tokens = 10,
                             .num_beams = 4,
                             .num_beam_groups = groups,
                             .num_return_sequences = 2,
                             .diversity_penalty = groups > 1 ? 0.7 : 0,
                             .early_stopping = stopping,
                             .eos_token_id = 2,
                             .pad_token_id = 1};
        const Fake model(100, seed, 0.5, 3);
        const auto together = run(model, prompts, c);
        for (size_t p = 0; p < prompts.size(); ++p) {
          const auto alone = run(model, {prompts[p]}, c)[0];
          for (size_t i = 0; i < 2; ++i) {
            auto ids = alone[i].ids;
            ids.resize(together[p][i].ids.size(), 1);
            CHECK(ids == together[p][i].ids);
            CHECK(alone[i].score == together[p][i].score);
          }
        }
      }
}

TEST_CASE("groups start with different tokens where beams start with the same", "[search]") {
  std::set<int64_t> plain, diverse;
  SearchConfig c{.max_new_tokens = 6, .num_beams = 4, .num_return_sequences = 4};
  const auto beams = run({100, 4, 1, 0}, {{7}}, c);
  for (const auto& g : beams[0]) plain.insert(g.ids[1]);
  c.num_beam_groups = 4, c.diversity_penalty = 100;
  const auto groups = run({100, 4, 1, 0}, {{7}}, c);
  for (const auto& g : groups[0]) diverse.insert(g.ids[1]);
  CHECK(diverse.size() == 4);
  CHECK(plain.size() < 4);
}

TEST_CASE("no n-gram occurs twice, and no sequence ends before its minimum length", "[search]") {
  for (uint64_t seed = 0; seed < 10; ++seed)
    for (const int64_t n : {1, 2, 3})
      for (const int kind : {0, 1, 2}) {
        SearchConfig c{
            .max_new_tokens = 12, .min_new_tokens = 5, .no_repeat_ngram_size = n, .eos_token_id = 2, .pad_token_id = 1};
        if (kind == 1) c.do_sample = true;
        if (kind == 2) c.num_beams = 3;
        auto ids = run({16, seed, 1, 3}, {{7, 4}}, c)[0][0].ids;
        const auto end = std::find(ids.begin() + 2, ids.end(), 2);
        CHECK(end - ids.begin() >= 7);
        ids.erase(end, ids.end());
        std::set<Ids> seen;
        for (auto i = ids.begin(); i + n <= ids.end(); ++i) CHECK(seen.insert(Ids(i, i + n)).second);
      }
  // min_length counts the prompt
  CHECK(run({16, 0, 1, 9}, {{7, 4}}, {.max_new_tokens = 12, .min_length = 6, .eos_token_id = 2})[0][0].ids.size() == 7);
}

TEST_CASE("ids are forced after a prompt of one token and at the last position", "[search]") {
  for (const int64_t beams : {1, 3}) {
    const SearchConfig c{.max_new_tokens = 5,
                         .min_new_tokens = 5,
                         .num_beams = beams,
                         .eos_token_id = 2,
                         .forced_bos_token_id = 6,
                         .forced_eos_token_id = 2};
    const auto one = run({16, 8, 1, 0}, {{7}}, c)[0][0].ids, more = run({16, 8, 1, -9}, {{7, 4}}, c)[0][0].ids;
    CHECK(one[1] == 6);
    CHECK(one.back() == 2);
    CHECK(more[2] != 6);
    CHECK(more.back() == 2);
  }
}

TEST_CASE("finished rows are fed padding, and the model runs no more steps than needed", "[search]") {
  Fake model(300, 11, 1, 3.5);
  model.start(two, 1);
  search(model, two, {.max_new_tokens = 12, .eos_token_id = 2, .pad_token_id = 1});
  CHECK(model.fed == std::vector<Ids>{{9, 5}, {204, 2}});
  model.start({{3}}, 1);
  search(model, {{3}}, {.max_new_tokens = 3});
  CHECK(model.fed.size() == 3);
  CHECK(model.fed[0] == Ids{3});
  // Both stop once no better sequence is possible, long before max_new_tokens.
  for (const int64_t groups : {1, 2}) {
    model = Fake(300, 11, 1, 9);
    model.start(two, 2);
    search(model, two,
           {.max_new_tokens = 50,
            .num_beams = 2,
            .num_beam_groups = groups,
            .diversity_penalty = groups > 1 ? 0.1 : 0,
            .early_stopping = EarlyStopping::yes,
            .eos_token_id = 2});
    CHECK(model.fed.size() < 8);
  }
}

TEST_CASE("tokens of a single row are emitted one by one", "[search]") {
  Ids heard;
  const auto listen = [&](int64_t id) { heard.push_back(id); };
  Fake model(300, 11, 1, 3.5);
  for (const bool sample : {false, true}) {
    heard.clear();
    model.start({two[0]}, 1);
    auto ids = search(model, {two[0]}, {.max_new_tokens = 5, .do_sample = sample, .eos_token_id = 2}, listen)[0][0].ids;
    ids.erase(ids.begin(), ids.begin() + 2);
    CHECK(heard == ids);
  }
  heard.clear();
  model.start(two, 1);
  search(model, two, {.max_new_tokens = 2}, listen);
  model.start({two[0]}, 2);
  search(model, {two[0]}, {.max_new_tokens = 2, .num_beams = 2}, listen);
  CHECK(heard.empty());
}

TEST_CASE("ties are broken by the lower token id", "[search]") {
  Fixed flat(std::vector<float>(100));
  CHECK(search(flat, {{5}}, {.max_new_tokens = 3})[0][0].ids == Ids{5, 0, 0, 0});
  const auto found = search(flat, {{5}}, {.max_new_tokens = 2, .num_beams = 4, .num_return_sequences = 4})[0];
  for (int64_t i = 0; i < 4; ++i) CHECK(found[static_cast<size_t>(i)].ids == Ids{5, 0, i});
}

// ---- invalid input ----

TEST_CASE("invalid settings are rejected with a remedy", "[search]") {
  check({});
  check({.num_beams = 4, .num_beam_groups = 2, .num_return_sequences = 4, .diversity_penalty = 1});
  check({.num_return_sequences = 9, .do_sample = true, .temperature = 0.1, .top_p = 0, .typical_p = 0.1});
  check({.temperature = 0});  // ignored without do_sample
  refused({.max_new_tokens = 0}, "max_new_tokens is 0; give 1 or more");
  refused({.min_new_tokens = -1}, "min_new_tokens is -1; give 0 or more");
  refused({.min_length = -1}, "min_length is -1; give 0 or more");
  refused({.num_beams = 0}, "num_beams is 0; give 1 or more");
  refused({.num_beam_groups = 0}, "num_beam_groups is 0; give 1 or more");
  refused({.num_return_sequences = 0}, "num_return_sequences is 0; give 1 or more");
  refused({.top_k = -1}, "top_k is -1; give 0 or more");
  refused({.no_repeat_ngram_size = -1}, "no_repeat_ngram_size is -1; give 0 or more");
  refused({.eos_token_id = -2}, "eos_token_id is -2; give -1 or more");
  refused({.pad_token_id = -1}, "pad_token_id is -1; give 0 or more");
  refused({.forced_bos_token_id = -2}, "forced_bos_token_id is -2; give -1 or more");
  refused({.forced_eos_token_id = -2}, "forced_eos_token_id is -2; give -1 or more");
  refused({.max_new_tokens = 1048577},
          "max_new_tokens 1048577, num_beams 1 and num_return_sequences 1 must be at most 1048576, 4096 and 65536; "
          "lower them");
  refused({.num_beams = 4097},
          "max_new_tokens 64, num_beams 4097 and num_return_sequences 1 must be at most 1048576, 4096 and 65536; lower "
          "them");
  refused({.num_return_sequences = 65537, .do_sample = true},
          "max_new_tokens 64, num_beams 1 and num_return_sequences 65537 must be at most 1048576, 4096 and 65536; "
          "lower them");
  refused({.max_new_tokens = 3, .min_new_tokens = 4},
          "min_new_tokens is 4, but max_new_tokens is 3; lower the one or raise the other");
  refused({.length_penalty = std::nan("")}, "length_penalty is nan; give a finite number");
  refused({.prompt_ignore_length = -1}, "prompt_ignore_length is -1; give 0 or more");
  refused({.repetition_penalty = 0}, "repetition_penalty is 0; give a number above 0 (1 changes nothing)");
  refused({.top_p = 1.5}, "top_p is 1.5; give a number from 0 to 1 (1 keeps everything)");
  refused({.top_p = -0.5}, "top_p is -0.5; give a number from 0 to 1 (1 keeps everything)");
  refused({.typical_p = 0}, "typical_p is 0; give a number above 0 and up to 1 (1 keeps everything)");
  refused({.typical_p = 2}, "typical_p is 2; give a number above 0 and up to 1 (1 keeps everything)");
  refused({.num_beams = 5, .num_beam_groups = 2, .diversity_penalty = 1},
          "num_beams is 5, which 2 groups cannot share; make num_beams a multiple of num_beam_groups");
  refused(
      {.num_beams = 4, .num_beam_groups = 2},
      "num_beam_groups is 2 and diversity_penalty 0, so that all groups would find the same; set diversity_penalty");
  refused({.num_beams = 4, .diversity_penalty = 1},
          "diversity_penalty is 1, but there is one group of beams; set num_beam_groups");
  refused({.num_beams = 4, .num_beam_groups = 2, .diversity_penalty = -1}, "diversity_penalty is -1; give 0 or more");
  refused({.num_beams = 4, .do_sample = true},
          "do_sample does not go with num_beams 4; set num_beams to 1, or leave do_sample out");
  refused({.do_sample = true, .temperature = 0},
          "temperature is 0; give a number above 0, or leave do_sample out for the likeliest token");
  refused({.num_return_sequences = 2},
          "num_return_sequences is 2, but greedy search finds one; set do_sample, or num_beams to 2");
  refused({.num_beams = 2, .num_return_sequences = 3},
          "num_return_sequences is 3, but num_beams 2; raise num_beams or lower num_return_sequences");
}

TEST_CASE("invalid prompts and ids are rejected", "[search]") {
  Fake model(20, 1, 1, 0);
  const auto refuses = [&](const Prompts& prompts, const SearchConfig& c, const std::string& message) {
    CHECK_THROWS_WITH(search(model, prompts, c), message);
  };
  refuses({{3}}, {.max_new_tokens = 0}, "max_new_tokens is 0; give 1 or more");
  refuses({{3}, {}}, {}, "prompt 1 is empty; begin it with a start token");
  refuses({{3}, {4, 5}}, {}, "prompt 1 has 2 tokens, the first 1; search prompts of one length together");
  refuses({{3}}, {.eos_token_id = 20}, "eos_token_id is 20, but the model has 20 tokens; give an id below that");
  refuses({{3}}, {.pad_token_id = 20}, "pad_token_id is 20, but the model has 20 tokens; give an id below that");
  refuses({{3}}, {.forced_bos_token_id = 21},
          "forced_bos_token_id is 21, but the model has 20 tokens; give an id below that");
  refuses({{3}}, {.forced_eos_token_id = 22},
          "forced_eos_token_id is 22, but the model has 20 tokens; give an id below that");
  CHECK_THROWS_WITH(search(model, {{3}}, {}, {}, {1, 2}), "2 numbers for 1 prompts; give one for each");
  Fake one(1, 1, 1, 0);
  CHECK_THROWS_WITH(search(one, {{0}}, {.num_beams = 2}),
                    "num_beams is 2, but the model has one token; set num_beams to 1");
  CHECK(search(model, {}, {}).empty());
}

TEST_CASE("scores that are not finite stop every search, and sampling fails if all tokens are forbidden", "[search]") {
  struct Broken : NextTokenModel {
    std::vector<float> out = std::vector<float>(4 * 70);
    int64_t vocab() const override { return 70; }
    const float* step(const Ids&, const Ids&) override { return out.data(); }
  };
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()})
    for (const size_t index : {0, 3, 66, 69}) {
      Broken model;
      model.out[index] = bad;
      INFO("score " << bad << " at " << index);
      for (const SearchConfig& c :
           {SearchConfig{}, SearchConfig{.do_sample = true}, SearchConfig{.do_sample = true, .top_k = 5},
            SearchConfig{.num_beams = 4}, SearchConfig{.num_beams = 4, .num_beam_groups = 2, .diversity_penalty = 1}})
        CHECK_THROWS_WITH(search(model, {{3}}, c), Catch::Contains("not finite numbers"));
    }
  Fake small(3, 1, 1, 0);
  small.start({{0, 1, 2}}, 1);
  CHECK_THROWS_WITH(search(small, {{0, 1, 2}}, {.do_sample = true, .no_repeat_ngram_size = 1}),
                    "every token is forbidden; lower no_repeat_ngram_size");
}
