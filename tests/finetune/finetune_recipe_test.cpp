// Recipes of fine-tuning, by the numbers of their files.
#include "finetune/finetune_recipe.h"

#include <filesystem>

#include "run/config/schedule_config.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("a recipe has the numbers of its file, by task where the file has them by task", "[run][tasks]") {
  const auto bert = recipe_of({.like = "google-bert", .task = "sst2", .kind = "classification", .model = "bert"});
  CHECK(bert.config.train.batch_size == 32);
  CHECK(bert.config.optimizer.learning_rate == 5e-5);
  CHECK(bert.config.train.budget.epochs == 3);
  CHECK(bert.config.schedule.warmup == 0.1);
  CHECK(part_in<LinearSchedule>(bert.config.schedule.shape)->decay_from_start);
  CHECK_FALSE(part_in<AdamMoments>(bert.config.optimizer.rule)->bias_correction);
  CHECK(bert.max_length == 128);
  CHECK(bert.original_head);
  const auto rte = recipe_of({.like = "fairseq-roberta", .task = "rte", .kind = "classification", .model = "roberta"});
  CHECK(rte.config.train.batch_size == 16);
  CHECK(rte.config.optimizer.learning_rate == 2e-5);
  CHECK(rte.config.train.budget.steps == 2036);
  CHECK(rte.config.schedule.warmup == 122);
  CHECK(rte.config.optimizer.weight_decay == 0.1);
  CHECK(rte.config.optimizer.decay_norm_and_bias);
  CHECK(rte.config.optimizer.max_grad_norm == 0);
  CHECK(part_in<AdamMoments>(rte.config.optimizer.rule)->beta2 == 0.98);
  CHECK(rte.classifier_dropout == 0);
  const auto other = recipe_of({.like = "fairseq-roberta", .task = "mine", .kind = "classification", .model = "bert"});
  CHECK(other.config.train.budget.epochs == 10);
  CHECK_FALSE(other.original_head);
  const auto small =
      recipe_of({.like = "electra", .task = "rte", .kind = "classification", .model = "electra", .hidden_size = 256});
  CHECK(small.config.optimizer.layer_decay == 0.8);
  CHECK(small.config.optimizer.learning_rate == 1e-4);
  CHECK(small.config.train.budget.epochs == 10);
  CHECK(part_in<LinearSchedule>(small.config.schedule.shape)->multiplies_warmup());
  const auto large = recipe_of({.like = "electra", .kind = "spans", .model = "electra", .hidden_size = 1024});
  CHECK(large.config.optimizer.layer_decay == 0.9);
  CHECK(large.config.optimizer.learning_rate == 5e-5);
  CHECK(large.max_length == 512);
  CHECK_FALSE(large.original_head);  // the authors' of spans is another network
  const auto plain = recipe_of({.like = "huggingface", .kind = "classification", .model = "bert"});
  CHECK(plain.config.optimizer.weight_decay == 0);
  CHECK(plain.config.schedule.warmup == 0);
  CHECK(part_in<AdamMoments>(plain.config.optimizer.rule)->epsilon == 1e-8);
  CHECK(recipe_of({.like = "turc-2019", .kind = "classification"}).config.train.budget.epochs == 4);
}

TEST_CASE("the recipes of XLNet, BART and MosaicBERT have the numbers of their files", "[run][tasks]") {
  const auto of = [](const std::string& like, const std::string& task, const std::string& kind = "classification",
                     int64_t width = 768) {
    return recipe_of({.like = like, .task = task, .kind = kind, .model = "bert", .hidden_size = width});
  };
  const auto adam_of = [](const Recipe& recipe) { return *part_in<AdamMoments>(recipe.config.optimizer.rule); };
  const auto stsb = of("xlnet", "stsb", "regression");
  CHECK(stsb.config.train.batch_size == 32);
  CHECK(stsb.config.optimizer.learning_rate == 5e-5);
  CHECK(stsb.config.train.budget.steps == 1200);
  CHECK(stsb.config.schedule.warmup == 120);
  CHECK(stsb.config.optimizer.weight_decay == 0);
  CHECK(stsb.config.optimizer.max_grad_norm == 1);
  CHECK(stsb.config.optimizer.layer_decay == 1);
  CHECK(stsb.max_length == 128);
  CHECK(adam_of(stsb).epsilon == 1e-8);
  CHECK(adam_of(stsb).epsilon_hat);
  CHECK(adam_of(stsb).bias_correction);
  CHECK(part_in<LinearSchedule>(stsb.config.schedule.shape)->end_factor == 0);
  CHECK(of("xlnet", "imdb").max_length == 512);
  CHECK(of("xlnet", "imdb").config.train.budget.steps == 4000);
  CHECK(of("xlnet", "squad-2.0", "spans").config.train.batch_size == 24);
  const auto large = of("xlnet", "squad-2.0", "spans", 1024);
  CHECK(large.config.train.batch_size == 48);
  CHECK(large.config.optimizer.learning_rate == 3e-5);
  CHECK(large.config.train.budget.steps == 8000);
  CHECK(adam_of(large).epsilon == 1e-6);
  CHECK(recipe_of({.like = "xlnet", .kind = "classification", .model = "xlnet"}).original_head);
  const auto mnli = of("bart", "mnli");
  CHECK(mnli.config.train.batch_size == 128);
  CHECK(mnli.config.optimizer.learning_rate == 5e-6);
  CHECK(mnli.config.train.budget.steps == 30968);
  CHECK(mnli.config.schedule.warmup == 1858);
  CHECK(mnli.config.optimizer.weight_decay == 0.01);
  CHECK(mnli.config.optimizer.max_grad_norm == 0);
  CHECK(adam_of(mnli).beta2 == 0.98);
  CHECK(adam_of(mnli).epsilon == 1e-8);
  CHECK(mnli.classifier_dropout == 0);
  CHECK(of("bart", "mine").config.train.budget.epochs == 10);
  const auto rte = of("mosaicbert", "rte");
  CHECK(rte.config.train.batch_size == 16);
  CHECK(rte.config.optimizer.learning_rate == 1e-5);
  CHECK(rte.config.train.budget.epochs == 3);
  CHECK(rte.config.optimizer.weight_decay == Approx(1));  // 1e-5 of the weights at the peak of 1e-5
  CHECK(of("mosaicbert", "mrpc").config.optimizer.weight_decay == Approx(0.1));
  CHECK(rte.config.schedule.warmup == 0.06);
  CHECK(rte.config.optimizer.decay_norm_and_bias);
  CHECK(rte.max_length == 256);
  CHECK(of("mosaicbert", "mine").config.train.budget.epochs == 3);
}

TEST_CASE("tasks that share a training part share its numbers", "[run][tasks]") {
  const auto of = [](const std::string& like, const std::string& task) {
    return recipe_of({.like = like, .task = task, .kind = "classification", .model = "roberta"}).config;
  };
  CHECK(of("fairseq-roberta", "mnli-mm").train.budget.steps == 123873);
  CHECK(of("mosaicbert", "mnli-mm").train.batch_size == 64);
  CHECK(of("albert", "superglue-rte").train.budget.steps == 800);
  CHECK(of("electra", "superglue-rte").train.budget.epochs == 10);
}

TEST_CASE("choices and questions have RACE's and SQuAD's numbers, in passes where they are others", "[run][tasks]") {
  const auto of = [](const std::string& like, const std::string& task, const std::string& kind, int64_t width = 768) {
    return recipe_of({.like = like, .task = task, .kind = kind, .model = "albert", .hidden_size = width}).config;
  };
  const auto race = of("albert", "race", "choice");
  CHECK(race.train.batch_size == 32);
  CHECK(race.optimizer.learning_rate == 1e-5);
  CHECK(race.train.budget.steps == 12000);
  CHECK(race.schedule.warmup == 1000);
  const auto copa = of("albert", "copa", "choice");
  CHECK(copa.optimizer.learning_rate == 1e-5);
  CHECK(copa.train.budget.steps == 0);
  CHECK(copa.train.budget.epochs == 4.37);  // 12,000 steps of 32 of 87,866 questions
  CHECK(copa.schedule.warmup == Approx(1 / 12.0));
  CHECK(of("xlnet", "race", "choice").train.budget.steps == 12000);
  CHECK(of("xlnet", "copa", "choice").train.budget.epochs == 4.37);
  CHECK(of("xlnet", "copa", "choice").optimizer.learning_rate == 2e-5);
  const auto large = of("xlnet", "newsqa", "spans", 1024);
  CHECK(large.train.batch_size == 48);
  CHECK(large.train.budget.epochs == 2.95);  // 8,000 steps of 48 of 130,319 questions
  CHECK(large.schedule.warmup == 0.125);
  CHECK(of("xlnet", "newsqa", "spans").train.budget.epochs == 2.21);
}

TEST_CASE("SpanBERT's updates are not corrected for their bias", "[run][tasks]") {
  for (const auto* kind : {"classification", "spans"}) {
    const auto recipe = recipe_of({.like = "spanbert", .kind = kind, .model = "bert"});
    CHECK_FALSE(part_in<AdamMoments>(recipe.config.optimizer.rule)->bias_correction);
    CHECK(recipe.config.train.budget.epochs == (kind == std::string("spans") ? 4 : 10));
    CHECK(recipe.max_length == (kind == std::string("spans") ? 512 : 128));
  }
}

TEST_CASE("a grid is every batch with every rate, without those that are given", "[run][tasks]") {
  const auto grid = grid_of("turc-2019");
  const auto all = points_of(grid, {"train.seed=3"});
  REQUIRE(all.size() == 20);
  CHECK(all[0].name == "batch-8-rate-3e-04");
  CHECK((all[0].set == std::vector<std::string>{"train.batch_size=8", "optimizer.learning_rate=3e-04"}));
  CHECK(all[19].name == "batch-128-rate-3e-05");
  const auto rates = points_of(grid, {"train.batch_size=16"});
  REQUIRE(rates.size() == 4);
  CHECK((rates[1].set == std::vector<std::string>{"optimizer.learning_rate=1e-04"}));
  CHECK(points_of(grid, {"optimizer.learning_rate=1e-3"}).size() == 5);
  CHECK(points_of(grid, {"optimizer.learning_rate=1e-3", "train.batch_size=8"}).empty());
  CHECK(points_of(grid_of("google-bert"), {}).empty());
}

TEST_CASE("the recipe of BabyLM has the numbers of its script, and what its program has of its own", "[run][tasks]") {
  const auto of = [](const std::string& task) {
    return recipe_of({.like = "babylm-2026", .task = task, .kind = "classification", .model = "roberta"});
  };
  const auto rte = of("rte");
  const auto& optimizer = rte.config.optimizer;
  CHECK(rte.config.train.batch_size == 32);
  CHECK(rte.config.train.budget.epochs == 10);
  CHECK(rte.max_length == 512);
  CHECK(rte.babylm_head);
  CHECK_FALSE(rte.original_head);
  CHECK(rte.config.data.drop_last);
  CHECK(optimizer.learning_rate == 3e-5);
  CHECK(optimizer.weight_decay == 0.01);
  CHECK(optimizer.decay_norm_and_bias);
  CHECK(optimizer.max_grad_norm == 0);
  const auto* adam = part_in<AdamMoments>(optimizer.rule);
  CHECK(adam->bias_correction);
  CHECK(adam->beta1 == 0.9);
  CHECK(adam->beta2 == 0.999);
  CHECK(adam->epsilon == 1e-8);
  CHECK(rte.config.schedule.warmup == 0.06);
  const auto* cosine = std::get_if<CosineSchedule>(&rte.config.schedule.shape);
  REQUIRE(cosine);
  CHECK(cosine->end_factor == 0.1);
  CHECK_FALSE(cosine->decay_from_start);
  CHECK(of("boolq").config.train.batch_size == 16);
  CHECK(of("multirc").config.train.batch_size == 16);
  CHECK(of("wsc").config.train.budget.epochs == 30);
}

TEST_CASE("a recipe of another name is refused with those that there are", "[run][tasks]") {
  CHECK_THROWS_WITH(recipe_of({.like = "google-bart"}),
                    Catch::Contains("there is no recipe 'google-bart'; did you mean 'google-bert'? the recipes are "
                                    "google-bert, albert, babylm-2026, bart"));
}

TEST_CASE("what is wrong with a recipe is said with its place, in cases that do not fit too", "[run][tasks]") {
  const TempDir dir;
  const struct WorkingFolder {
    explicit WorkingFolder(const TempDir& folder) : before(fs::current_path()) { fs::current_path(folder.path); }
    ~WorkingFolder() { fs::current_path(before); }
    fs::path before;
  } here(dir);
  const auto write = [&](const std::string& name, const std::string& text) {
    dir.write("configs/recipes/" + name + ".yaml", text);
  };
  write("key", "epochz: 3\n");
  write("value", "learning_rate: fast\n");
  write("case", "epochs: 3\ncases:\n  - {tasks: sst2, set: {optimizer.betta2: 0.9}}\n");
  write("mine", "epochs: 7\n");
  write("google-bert", "epochs: 7\n");
  write("kinds", "cases:\n  - {kinds: [clasification], set: {epochs: 9}}\n");
  write("models", "models: [brt]\n");
  write("tasks", "cases:\n  - {tasks: [sst-2, sst2, mine], set: {epochs: 9}}\n");
  const auto says = [](const std::string& like, const std::string& sentence) {
    CHECK_THROWS_WITH(recipe_of({.like = like}), Catch::Contains(sentence));
  };
  says("key", "key.yaml:1:1: unknown key 'epochz'; did you mean 'epochs'?");
  says("value", "value.yaml:1:16: 'learning_rate' must be a number, not 'fast'");
  says("case", "case.yaml:3:25: unknown key 'optimizer.betta2'; did you mean 'optimizer.beta2'?");
  CHECK(recipe_of({.like = "mine"}).config.train.budget.epochs == 7);
  CHECK(recipe_of({.like = "configs/recipes/google-bert.yaml"}).config.train.budget.epochs == 7);
  says("google-bert",
       "configs/recipes/google-bert.yaml: has the name of a recipe that comes with the program; name it by its path");
  says("kinds", "kinds.yaml:2:14: 'cases.0.kinds.1' is 'clasification', must be one of classification, ");
  says("models", "models.yaml:1:10: 'models.1' is 'brt', must be one of bert, ");
  const auto notes = recipe_of({.like = "tasks"}).notes;
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0],
             Catch::Contains("tasks.yaml: a case is for 'sst-2', which is no ready task; did you mean 'sst2'?"));
  CHECK(recipe_of({.like = "tasks", .task = "sst-2"}).notes.empty());
  CHECK(recipe_of({.like = "xlnet"}).notes.empty());
}
