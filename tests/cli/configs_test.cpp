#include <filesystem>
#include <sstream>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

TEST_CASE("every config of the repository describes itself", "[cli]") {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(SOURCE_DIR "/configs")) {
    const auto folder = entry.path().parent_path().filename();
    const bool is_of_run = folder != "recipes" && folder != "studies" && folder != "tasks";
    if (entry.path().extension() != ".yaml" || !is_of_run) continue;
    const auto answer = cloze("describe " + entry.path().string() + " --json");
    INFO(entry.path() << "\n" << answer.text);
    CHECK(answer.code == 0);
    CHECK_THAT(answer.text, Catch::Contains("\"flops_per_token\""));
    ++count;
  }
  CHECK(count >= 5);
  // Parameters of the published models: BertForPreTraining, RobertaForMaskedLM, AlbertForPreTraining, both networks of
  // ELECTRA, DistilBertForMaskedLM.
  const std::pair<const char*, const char*> published[] = {{"bert/base", "110,106,428"},
                                                           {"bert/large", "336,226,108"},
                                                           {"roberta/base", "124,697,433"},
                                                           {"albert/base", "11,813,810"},
                                                           {"albert/xxlarge", "223,158,450"},
                                                           {"electra/small", "14,196,219"},
                                                           {"electra/base", "119,386,427"},
                                                           {"distilbert/base", "66,985,530"},
                                                           {"longformer/base-4096", "148,711,257"},
                                                           {"bigbird/base", "127,520,694"},
                                                           {"spanbert/base", "110,300,480"},
                                                           {"t5/small", "60,506,624"},
                                                           {"t5/base", "222,903,552"},
                                                           {"t5/v1_1-small", "76,961,152"},
                                                           {"bart/base", "139,420,416"},
                                                           {"bart/large", "406,291,456"},
                                                           {"gpt2/small", "124,439,808"},
                                                           {"gpt-bert/small", "28,344,704"},
                                                           {"transformer/base", "63,082,496"},
                                                           {"xlnet/base", "116,750,336"},
                                                           {"xlnet/large", "360,300,800"},
                                                           {"modernbert/base", "149,655,232"},
                                                           {"modernbert/ettin-17m", "16,913,600"}};
  CHECK_THAT(cloze("describe " SOURCE_DIR "/configs/xlnet/base.yaml --set train.precision=fp32").text,
             Catch::Contains("recurrence memory 116 GB"));  // 32 x 256 rows of 12 layers, 384 states of 768 numbers
  for (const auto& [name, parameters] : published)
    CHECK_THAT(cloze(std::string("describe " SOURCE_DIR "/configs/") + name + ".yaml").text,
               Catch::Contains(parameters));
}

TEST_CASE("a config is found by the name under which it ships, and a file of that name here comes first", "[cli]") {
  const TempDir dir;
  const auto here = "cd " + dir / "" + " && ";
  const auto shipped = SOURCE_DIR "/configs/roberta/tiny.yaml";
  for (const std::string name : {"roberta/tiny", "roberta/tiny.yaml", "configs/roberta/tiny.yaml"}) {
    INFO(name);
    const auto answer = cloze("describe " + name, here);
    CHECK(answer.code == 0);
    CHECK_THAT(answer.text, Catch::Contains(name + ": " + shipped + "\n") && Catch::Contains("mlm.head."));
  }
  CHECK_THAT(cloze("explain roberta/tiny optimizer.learning_rate", here).text,
             Catch::Contains("set by   " + std::string(shipped)));
  CHECK(cloze("config --resolved roberta/tiny --quiet", here).code == 0);
  dir.write("roberta/tiny.yaml", "base: " + std::string(shipped) + "\nmodel: {hidden_size: 64}\n");
  CHECK_THAT(cloze("describe roberta/tiny", here).text,
             Catch::Contains("roberta/tiny: roberta/tiny.yaml\n") && Catch::Contains("V x 64 "));
  dir.write("mine.yaml", "base: bert/tiny\nmodel: {hidden_size: 64}\n");
  CHECK_THAT(cloze("describe mine.yaml", here).text, Catch::Contains("V x 64 "));
  fs::create_directories(dir / "bert/tiny");  // a folder of that name is no config
  CHECK_THAT(cloze("describe mine.yaml", here).text, Catch::Contains("V x 64 "));
  dir.write("mine.yaml", "base: bert/tinny.yaml\n");
  CHECK_THAT(cloze("describe mine.yaml", here).text, Catch::EndsWith("; did you mean 'bert/tiny'?\n"));
  const auto away = cloze("describe ../roberta/tiny", "mkdir -p " + dir / "in" + " && cd " + dir / "in" + " && ");
  CHECK(away.code == 2);  // a path, not a name
}

TEST_CASE("describe takes the vocabulary from data.tokens, and its special tokens", "[cli]") {
  auto& w = world();
  const std::string describe = "describe " SOURCE_DIR "/configs/roberta/tiny.yaml";
  const auto answer = cloze(describe + " --set data.tokens=" + w.tokens);
  CHECK(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains("backbone.embeddings.word ") && !Catch::Contains("V x ") &&
                              !Catch::Contains("without the V rows"));
  CHECK_THAT(cloze(describe).text, Catch::Contains("V x ") && Catch::Contains("--set data.tokens=DIR"));
  check_refused(describe + " --set data.tokens=" + w.tokens + " --set model.vocab_size=20", 2,
                "model.vocab_size is 20, the tokenizer of " + w.tokens + " has ");
  check_refused(describe + " --set data.tokens=" + w.dir / "none", 1, "none");
  // Run elsewhere, a config that knows its vocabulary needs no text.
  CHECK(cloze(describe + " --set data.tokens=" + w.dir / "none" + " --set model.vocab_size=90").code == 0);
}

TEST_CASE("the table of describe fits 80 columns", "[cli]") {
  for (const std::string name : {"bert/base", "bart/base", "t5/base", "transformer/base", "xlnet/base"}) {
    std::istringstream lines(cloze("describe " SOURCE_DIR "/configs/" + name + ".yaml").text);
    for (std::string line; std::getline(lines, line) && !line.empty();) {
      INFO(name << ": " << line);
      CHECK((line.size() <= 80 || line.starts_with("  (")));  // a remark on the vocabulary
    }
  }
}

TEST_CASE("docs/config.md has all config keys and is current", "[cli][docs]") {
  const auto text = read_file(SOURCE_DIR "/docs/config.md");
  const auto tables = cloze("config --markdown").text;
  CHECK(tables.size() > 1000);
  CHECK(text.find(tables) !=
        std::string::npos);  // else: build/cloze config --markdown, below the heading of docs/config.md
  // Each key that `config KIND` prints has its row.
  const auto parts = cloze("config nothing").text;
  std::istringstream kinds(parts.substr(parts.find("the parts are ") + 14));
  int keys = 0;
  for (std::string kind; kinds >> kind;) {
    if (kind.back() == ',') kind.pop_back();
    std::istringstream lines(cloze("config " + kind).text);
    for (std::string line; std::getline(lines, line);) {
      const auto begin = line.find_first_not_of(" -"), end = line.find(':');
      const bool section = end + 1 == line.size();
      if (line[begin] == '#' || section) continue;
      INFO(kind << ": " << line);
      const auto row = line.substr(begin, end - begin) + "` | ";
      CHECK((text.find("." + row) != std::string::npos || text.find("`" + row) != std::string::npos));
      ++keys;
    }
  }
  CHECK(keys > 500);
}
