#include "tests/support/catch.h"
#include "tests/support/tiny.h"
#include "inference/generation/generate.h"
#include "interchange/interchange.h"
#include "models/families/lstm.h"
#include "objectives/clm/clm.h"

using namespace cloze;

namespace {

/// Searches of each kind, which give each prompt the same texts in a batch and alone.
void check_alone(Network& network, const std::vector<Prompt>& prompts) {
  const SearchConfig greedy{.max_new_tokens = 6, .eos_token_id = 2, .pad_token_id = 1};
  auto beams = greedy, groups = greedy, drawn = greedy;
  beams.num_beams = 3, beams.num_return_sequences = 2;
  groups.num_beams = 4, groups.num_beam_groups = 2, groups.diversity_penalty = 0.8;
  drawn.do_sample = true, drawn.num_return_sequences = 3;
  for (const auto& config : {greedy, beams, groups, drawn}) {
    INFO("beams " << config.num_beams << ", groups " << config.num_beam_groups << ", drawn " << config.do_sample);
    const auto together = generate_ids(network, prompts, config);
    for (size_t p = 0; p < prompts.size(); ++p) {
      const auto alone = generate_ids(network, {prompts[p]}, config)[0];
      REQUIRE(alone.size() == together[p].size());
      for (size_t i = 0; i < alone.size(); ++i) {
        auto ids = alone[i].ids;
        ids.resize(together[p][i].ids.size(), config.pad_token_id);
        CHECK(ids == together[p][i].ids);
        CHECK(alone[i].score == Approx(together[p][i].score).margin(1e-4));
      }
    }
  }
}

}  // namespace

TEST_CASE("generation in a batch of different lengths equals generation for each prompt alone", "[search][generate]") {
  TempDir dir;
  for (const std::string family : {"bart", "t5"}) {
    INFO(family);
    import_huggingface(SOURCE_DIR "/tests/parity/" + family, dir / family);
    check_alone(*open_run(dir / family).network, {{.source = {5, 9, 13, 2}, .prefix = {2}, .number = 0},
                                                  {.source = {7, 8, 3, 11, 21, 30, 2}, .prefix = {2}, .number = 1},
                                                  {.source = {4, 2}, .prefix = {2}, .number = 2}});
  }
}

TEST_CASE("an LSTM generates from its states what it gives to whole texts, alone and in a batch",
          "[search][generate][recurrent]") {
  LstmConfig lstm;
  lstm.vocab_size = 31, lstm.hidden_size = 12;
  Network network(lstm, {ClmConfig{}});
  initialize(collect_params(network), 0.8, false, Rng(5));
  network.eval();
  const std::vector<Prompt> prompts{{.prefix = {5, 9, 13}, .number = 0},
                                    {.prefix = {7, 8, 3, 11, 21}, .number = 1},
                                    {.prefix = {4}, .number = 2},
                                    {.prefix = {6, 6, 30}, .number = 3}};
  check_alone(network, prompts);
  const at::NoGradGuard no_grad;
  for (const auto& prompt : prompts) {
    auto ids = prompt.prefix;
    for (int step = 0; step < 6; ++step) {
      const auto outputs = network.outputs({.input_ids = at::tensor(ids, at::kLong).unsqueeze(0)});
      ids.push_back(outputs.back().second[0][-1].argmax().item<int64_t>());
    }
    const SearchConfig greedy{.max_new_tokens = 6, .pad_token_id = 1};
    CHECK(generate_ids(network, {prompt}, greedy)[0][0].ids == ids);
  }
}

TEST_CASE("padding of a prompt is hidden from the model, and is a part of the generated ids", "[search][generate]") {
  TempDir dir;
  SearchConfig greedy{.max_new_tokens = 6, .eos_token_id = 2, .pad_token_id = 1};
  const auto generated = [&](const std::string& family, const Prompt& prompt) {
    return generate_ids(*open_run(dir / family).network, {prompt}, greedy)[0][0].ids;
  };
  for (const std::string family : {"bart", "t5", "gpt2"})
    import_huggingface(SOURCE_DIR "/tests/parity/" + family, dir / family);
  for (const std::string family : {"bart", "t5"}) {
    const std::vector<bool> mask{true, true, true, false, false};
    CHECK(generated(family, {.source = {5, 9, 13, 40, 41}, .source_mask = mask, .prefix = {2}}) ==
          generated(family, {.source = {5, 9, 13}, .prefix = {2}}));
  }
  for (const double penalty : {1.0, 50.0}) {  // which leaves out padding before the first token
    greedy.repetition_penalty = penalty;
    auto ids = generated("gpt2", {.prefix = {5, 9, 13}});
    const int64_t pad = ids[3];
    ids.insert(ids.begin(), {pad, pad});
    CHECK(generated("gpt2", {.prefix = {pad, pad, 5, 9, 13}, .prefix_mask = {false, false, true, true, true}}) == ids);
  }
}
