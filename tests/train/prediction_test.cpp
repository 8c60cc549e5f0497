// What the first lines of a training say of its objectives.
#include "objectives/kinds.h"
#include "tests/support/runs.h"
#include "train/warnings.h"

using namespace cloze;

TEST_CASE("a training says first what each of its objectives predicts, and warns of a mask_prob that leaves few masked",
          "[train]") {
  const TempDir dir;
  auto config = tiny_run(dir, 1);
  pretrain(config, {.run = dir / "usual"});
  const auto usual = read_file(dir / "usual/log.txt");
  CHECK_THAT(usual, Catch::Contains("mlm predicts 15 % of the tokens: 80 % [MASK], 10 % random, 10 % kept\n") &&
                        Catch::Contains("nsp predicts whether segment B follows A") && !Catch::Contains("mask_prob"));
  as<MlmConfig>(config.objectives[0])->mask_prob = 0.15;
  pretrain(config, {.run = dir / "few"});
  CHECK_THAT(
      read_file(dir / "few/log.txt"),
      Catch::Contains("mlm predicts 15 % of the tokens: 15 % [MASK], 10 % random, 75 % kept\n") &&
          Catch::Contains("warning: mask_prob is 0.15: of the 15 % of the tokens that are predicted "
                          "(mlm_probability), 15 % become [MASK], and the others can be read where they stand or "
                          "are random; fairseq's mask_prob is the share of tokens that are chosen, which is "
                          "mlm_probability here\n"));
}

TEST_CASE("a share of masks that does not reach its end is warned of before the first step", "[train]") {
  MlmConfig mlm;
  mlm.mlm_probability = 0.15;
  mlm.initial_mlm_probability = 0.35;
  mlm.decay_steps = 20;
  CHECK(long_decay_warning({mlm}, 20).empty());
  CHECK(long_decay_warning({mlm}, 0).empty());
  const std::string warning =
      "decay_steps is 20, and the run has 5 steps: it ends with 30 % of the tokens predicted, not with the 15 % of "
      "mlm_probability; lower decay_steps, or leave it out";
  CHECK(long_decay_warning({mlm}, 5) == warning);
  const TempDir dir;
  auto config = tiny_run(dir, 5);
  as<MlmConfig>(config.objectives[0])->initial_mlm_probability = 0.35;
  as<MlmConfig>(config.objectives[0])->decay_steps = 20;
  pretrain(config, {.run = dir / "run"});
  CHECK_THAT(read_file(dir / "run/log.txt"), Catch::Contains("warning: " + warning));
}

TEST_CASE("a mask_prob of less than a half is warned of in every masking", "[train]") {
  MlmConfig mlm;
  mlm.mask_prob = 0.5;
  CHECK(few_masked_warning({mlm}).empty());
  MaskingPart usual{mlm, 1}, few{mlm, 1};
  few.mask_prob = 0.49;
  mlm.mixture = {usual, few};
  CHECK_THAT(few_masked_warning({mlm}), Catch::Contains("mask_prob is 0.49"));
  RtdConfig rtd;
  CHECK(few_masked_warning({rtd}).empty());
  rtd.mlm.mask_prob = 0;
  CHECK_THAT(few_masked_warning({rtd}), Catch::Contains("0 % become [MASK]"));
}
