// Heads of tasks against transformers, and in and out. The cases are of tests/parity/make_task_cases.py.
#include <algorithm>
#include <set>

#include "core/json.h"
#include "core/log.h"
#include "interchange/huggingface_classes.h"
#include "interchange/huggingface_config.h"
#include "objectives/task_heads/task_heads.h"
#include "run/run.h"
#include "tests/interchange/cases.h"
#include "tests/support/logged.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

const std::string task_cases = SOURCE_DIR "/tests/task_parity/";

/// A copy of a case, in `dir / "edited-case"`, with other keys in config.json; null takes a key out.
std::string with_keys(const TempDir& dir, const std::string& name, const nlohmann::json& keys) {
  const auto folder = dir / "edited-case";
  fs::remove_all(folder);
  fs::copy(task_cases + name, folder);
  auto config = parse_json(read_file(folder + "/config.json"));
  for (const auto& [key, value] : keys.items())
    if (value.is_null())
      config.erase(key);
    else
      config[key] = value;
  dir.write("edited-case/config.json", json_text(config));
  return folder;
}

/// The largest error of a case over its tolerance.
double worst_of(const std::string& folder) {
  double worst = 0;
  const auto rows = verify_parity(folder);
  CHECK(rows.size() > 12);
  for (const auto& row : rows) {
    INFO(folder << " " << row.name << " " << row.note);
    CHECK(row.passed);
    if (row.tolerance > 0) worst = std::max(worst, row.error / row.tolerance);
  }
  return worst;
}

}  // namespace

TEST_CASE("logits, loss and every gradient of each class with the head of a task equal those of transformers",
          "[interchange][parity][tasks]") {
  set_log_level(LogLevel::quiet);
  std::set<std::string> families;
  for (const auto& entry : fs::directory_iterator(task_cases)) {
    const auto name = entry.path().filename().string();
    families.insert(name.substr(0, name.find('-')));
    CHECK(worst_of(entry.path().string()) < 1);
  }
  set_log_level(LogLevel::normal);
  CHECK(families.size() == 14);
}

TEST_CASE("a model with the head of a task goes out as it came in", "[interchange][tasks]") {
  TempDir dir;
  for (const auto& entry : fs::directory_iterator(task_cases)) {
    const auto name = entry.path().filename().string();
    INFO(name);
    const auto report = import_huggingface(entry.path().string(), dir / (name + "-run"));
    CHECK(report.fresh.empty());
    CHECK(report.ignored.empty());
    export_huggingface(dir / (name + "-run"), dir / (name + "-out"));
    for (const char* file : {"inputs.safetensors", "expected.safetensors"})
      fs::copy(entry.path() / file, dir / (name + "-out"));
    CHECK(worst_of(dir / (name + "-out")) < 1);
    const auto came = parse_json(read_file(entry.path().string() + "/config.json")),
               went = parse_json(read_file(dir / (name + "-out/config.json")));
    CHECK(went["architectures"] == came["architectures"]);
  }
}

TEST_CASE("labels come in by their ids and go out by them, with the kind of problem", "[interchange][tasks]") {
  TempDir dir;
  const auto folder = with_keys(dir, "bert-seq",
                                {{"id2label", {{"0", "no"}, {"2", "1"}, {"1", "a, \"b\""}}},
                                 {"label2id", {{"no", 0}, {"1", 2}, {"a, \"b\"", 1}}},
                                 {"classifier_dropout", 0.25}});
  import_huggingface(folder, dir / "run");
  const auto run = open_run(dir / "run");
  const auto* head = as<ClassificationConfig>(run.config.objectives.at(0));
  REQUIRE(head);
  CHECK((head->labels == std::vector<std::string>{"no", "a, \"b\"", "1"}));
  CHECK(head->classifier_dropout == 0.25);
  fs::remove_all(dir / "run/huggingface");  // as a run that was trained here
  export_huggingface(dir / "run", dir / "out");
  const auto config = parse_json(read_file(dir / "out/config.json"));
  CHECK((config["id2label"] == nlohmann::json{{"0", "no"}, {"1", "a, \"b\""}, {"2", "1"}}));
  CHECK((config["label2id"] == nlohmann::json{{"no", 0}, {"a, \"b\"", 1}, {"1", 2}}));
  CHECK(config["problem_type"] == "single_label_classification");
  CHECK(config["classifier_dropout"] == 0.25);
  CHECK(config["architectures"][0] == "BertForSequenceClassification");
}

TEST_CASE("a base model keeps the dropout that its family's own key gives to each head", "[interchange][tasks]") {
  const nlohmann::json keys{{"classifier_dropout", 0.31},
                            {"classifier_dropout_prob", 0.32},
                            {"summary_last_dropout", 0.33},
                            {"seq_classif_dropout", 0.34},
                            {"qa_dropout", 0.35}};
  // Source: the modules of transformers 5.23's AutoModelFor... of these configs.
  const std::map<std::string, nlohmann::json> dropouts{
      {"bert", {{"classification", 0.31}, {"tagging", 0.31}, {"choice", 0.31}}},
      {"albert", {{"classification", 0.32}, {"tagging", 0.32}, {"choice", 0.32}}},
      {"electra-discriminator", {{"classification", 0.31}, {"tagging", 0.31}, {"choice", 0.33}}},
      {"xlnet-plain", {{"classification", 0.33}, {"choice", 0.33}}},
      {"distilbert", {{"classification", 0.34}, {"choice", 0.34}, {"spans", 0.35}}},
      {"gpt2", {{"tagging", 0.31}}}};
  for (const auto& [name, wanted] : dropouts) {
    INFO(name);
    const TempDir dir;
    const fs::path parity = SOURCE_DIR "/tests/parity";
    fs::copy(parity / name, dir.path / name);
    auto config = parse_json(read_file(dir / (name + "/config.json")));
    config.update(keys);
    dir.write(name + "/config.json", config.dump());
    import_huggingface(dir / name, dir / "run");
    auto kept = parse_json(read_file(dir / "run/huggingface/head_dropout.json"));
    for (const std::string like_classification : {"multilabel", "regression"}) {
      CHECK(kept.value(like_classification, -1.0) == wanted.value("classification", -1.0));
      kept.erase(like_classification);
    }
    CHECK(kept == wanted);
  }
}

TEST_CASE("id2label stands in the order of the ids, which are numbers", "[interchange][tasks]") {
  nlohmann::json names;
  for (int id = 0; id < 12; ++id) names[std::to_string(id)] = concat("label ", id);
  const auto text = config_text({{"id2label", names}, {"a", 1}});
  size_t last = 0;
  for (int id = 0; id < 12; ++id) {
    const auto place = text.find(concat("\"", id, "\": "));
    CHECK((place != std::string::npos && place > last));
    last = place;
  }
  CHECK(parse_json(text) == nlohmann::json{{"id2label", names}, {"a", 1}});
}

TEST_CASE("one label without problem_type goes out with its name and without one, so that pipelines give a probability",
          "[interchange][tasks]") {
  TempDir dir;
  const nlohmann::json names{{"0", "SCORE"}};
  import_huggingface(with_keys(dir, "bert-seq-values", {{"id2label", names}, {"problem_type", nullptr}}), dir / "run");
  export_huggingface(dir / "run", dir / "out");
  const auto config = parse_json(read_file(dir / "out/config.json"));
  CHECK(config["id2label"] == names);
  CHECK_FALSE(config.contains("problem_type"));
}

TEST_CASE("num_labels of old files is the number of labels, which then have no names", "[interchange][tasks]") {
  TempDir dir;
  const auto folder =
      with_keys(dir, "bert-seq", {{"num_labels", 3}, {"id2label", {{"0", "no"}, {"1", "yes"}}}, {"label2id", nullptr}});
  const auto said = logged(dir, [&] { import_huggingface(folder, dir / "run"); });
  CHECK_THAT(said, Catch::Contains("num_labels is 3, and id2label has 2 names; as in transformers, the labels are "
                                   "called LABEL_0 to LABEL_2"));
  const auto run = open_run(dir / "run");
  const auto* head = as<ClassificationConfig>(run.config.objectives.at(0));
  REQUIRE(head);
  CHECK((head->labels == std::vector<std::string>{"LABEL_0", "LABEL_1", "LABEL_2"}));
}

TEST_CASE("a config.json without labels has as many as its class, BART's three and others' two",
          "[interchange][tasks]") {
  TempDir dir;
  const auto import_without = [&](const std::string& name) {
    fs::remove_all(dir / "run");
    import_huggingface(with_keys(dir, name, {{"id2label", nullptr}, {"label2id", nullptr}}), dir / "run");
  };
  import_without("bart-seq");
  CHECK(as<ClassificationConfig>(open_run(dir / "run").config.objectives.at(0))->labels.size() == 3);
  CHECK_THROWS_WITH(import_without("bert-seq"), Catch::Contains("needs [2, "));  // its weights are of three
}

TEST_CASE("config.json tells labels from several labels and from values", "[interchange][tasks]") {
  TempDir dir;
  const auto kind_with = [&](const std::string& name, const nlohmann::json& keys) {
    fs::remove_all(dir / "run");
    import_huggingface(with_keys(dir, name, keys), dir / "run");
    return kind_of(open_run(dir / "run").config.objectives.at(0));
  };
  CHECK(kind_with("bert-seq", {{"problem_type", nullptr}}) == "classification");
  CHECK(kind_with("bert-seq", {{"problem_type", "multi_label_classification"}}) == "multilabel");
  CHECK(kind_with("bert-seq-values", {{"problem_type", nullptr}}) == "regression");
  CHECK(kind_with("bert-seq-values", {}) == "regression");
  CHECK(kind_with("bert-tags", {}) == "tagging");
  CHECK(kind_with("bert-spans", {}) == "spans");
  CHECK(kind_with("bert-choice", {}) == "choice");
}

TEST_CASE("a config.json whose labels or head cannot be taken is refused with the key", "[interchange][tasks]") {
  TempDir dir;
  const auto refused = [&](const std::string& name, const nlohmann::json& keys, const std::string& sentence) {
    const auto folder = with_keys(dir, name, keys);
    CHECK_THROWS_WITH(import_huggingface(folder, dir / "run"), folder + "/config.json: " + sentence);
  };
  refused("bert-seq",
          {{"id2label", {{"0", "x"}, {"1", "y"}, {"2", "z"}}}, {"label2id", {{"x", 1}, {"y", 0}, {"z", 2}}}},
          "id2label gives 'x' the id 0, label2id 1; make them agree");
  refused("bert-seq", {{"id2label", {{"0", "x"}, {"1", "y"}, {"3", "z"}}}},
          "id2label has 3 entries, and none for id 2 that is a text; number the labels from 0");
  refused("bert-seq", {{"id2label", nlohmann::json::array({"x", "y", "z"})}},
          "id2label is no map, and transformers reads none; write {\"0\": NAME, \"1\": NAME}");
  refused("bert-seq", {{"problem_type", "ranking"}},
          "problem_type is 'ranking'; single_label_classification, multi_label_classification and regression can be "
          "imported");
  refused("bert-seq", {{"problem_type", "regression"}},
          "problem_type is regression for 3 values; heads of one value can be imported");
  refused("bert-seq-values", {{"problem_type", "single_label_classification"}},
          "problem_type is single_label_classification for one label, whose probability would always be 1; write "
          "regression, or multi_label_classification");
  refused("bert-seq", {{"id2label", {{"0", "neg"}, {"1", "pos"}, {"2", "pos"}}}, {"label2id", nullptr}},
          "id2label gives the ids 1 and 2 one name, 'pos'; give one of them another name");
  refused("bert-seq", {{"num_labels", 2'000'000}}, "num_labels is 2000000, must be from 1 to 1000000");
  refused("xlnet-seq", {{"summary_type", "mean"}},
          "summary_type is \"mean\"; only \"last\" can be imported with this class");
  refused("modernbert-seq", {{"classifier_pooling", "max"}},
          "classifier_pooling is 'max'; 'cls' and 'mean' can be imported");
}

TEST_CASE("a head that no class has is exported to none", "[interchange][tasks]") {
  TempDir dir;
  import_huggingface(task_cases + "electra-seq", dir / "run");
  auto config = open_run(dir / "run").config;
  auto* head = as<ClassificationConfig>(config.objectives.at(0));
  REQUIRE(head);
  for (const auto design : {HeadDesign::mean, HeadDesign::original, HeadDesign::babylm}) {
    head->head = design;
    CHECK_THROWS_WITH(require_huggingface(config),
                      concat("head ", design,
                             " of electra has no class at Hugging Face; train with head: huggingface, "
                             "or export to torchscript"));
  }
}

TEST_CASE("inputs of a case that its class does not take are refused with their names", "[interchange][tasks]") {
  TempDir dir;
  const auto refused = [&](const std::string& name, const std::string& tensor, const at::Tensor& value,
                           const std::string& sentence) {
    const auto folder = dir / "given-task";
    fs::remove_all(folder);
    fs::copy(task_cases + name, folder);
    set_tensors(folder + "/inputs.safetensors", {{tensor, value}});
    CHECK_THROWS_WITH(verify_parity(folder), folder + "/inputs.safetensors: " + sentence);
  };
  refused("bert-choice", "input_ids", at::zeros({6, 13}, at::kLong),
          "input_ids has shape [6, 13]; it must be [items, candidates, length]");
  refused("bert-seq", "labels", at::tensor({0, 3, 1}, at::kLong), "labels contains 3, and the model has 0 to 2");
  refused("bert-seq", "labels", at::zeros({4}, at::kLong), "labels has shape [4] instead of [3]");
  refused("bert-seq", "attention_mask", at::zeros({3, 12}, at::kLong),
          "attention_mask has shape [3, 12] instead of [3, 13], one entry for each token of input_ids");
  refused("bert-spans", "end_positions", at::Tensor(),
          "has no end_positions, from which the loss in expected.safetensors is computed; add it, or leave the loss "
          "out");
}
