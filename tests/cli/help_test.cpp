#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace {

/// Every verb with a help of its own; those of `study` and their like are two words.
const std::vector<std::string> verbs{"prepare",
                                     "tokenize",
                                     "inspect",
                                     "inspect objective",
                                     "pretrain",
                                     "benchmark",
                                     "study",
                                     "study plan",
                                     "study run",
                                     "study status",
                                     "study report",
                                     "study commands",
                                     "report",
                                     "fit",
                                     "evaluate",
                                     "evaluate losses",
                                     "evaluate generation",
                                     "evaluate suites",
                                     "evaluate babylm",
                                     "evaluate tasks",
                                     "evaluate predictions",
                                     "generate",
                                     "fill",
                                     "score",
                                     "view",
                                     "import",
                                     "export",
                                     "babylm",
                                     "babylm collate",
                                     "babylm finetune",
                                     "verify",
                                     "verify parity",
                                     "verify data",
                                     "verify run",
                                     "config",
                                     "explain",
                                     "describe",
                                     "completion"};

/// Calls `f(line)` for each line of a text.
template <class F>
void each_line(const std::string& text, const F& f) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    f(line);
  }
}

}  // namespace

TEST_CASE("help fits 80 columns and has an example for every verb; version and defaults are printed", "[cli]") {
  CHECK(cloze("--version").text.find("cloze ") == 0);
  const auto check_width = [](const std::string& line) { CHECK(line.size() <= 80); };
  each_line(cloze("--help").text, check_width);
  for (const auto& verb : verbs) {
    const auto help = cloze(verb + " --help");
    INFO(verb);
    CHECK(help.code == 0);
    each_line(help.text, check_width);
    const auto examples = help.text.find("\nExample");
    REQUIRE(examples != std::string::npos);
    CHECK_THAT(help.text.substr(examples), Catch::Contains("  cloze " + verb) || Catch::Contains("(cloze " + verb));
  }
  CHECK_THAT(cloze("import --help").text, Catch::Contains("hf download ") && Catch::Contains("cloze import ./"));
  CHECK_THAT(cloze("config mlm").text,
             Catch::Contains("# share of the tokens that are predicted (in [0, 1])\nmlm_probability: 0.15"));
  CHECK_THAT(cloze("completion bash").text, Catch::Contains("complete -o filenames -F _cloze cloze"));
}

TEST_CASE("help calls verbs by this name", "[cli]") {
  for (const std::string verb : {"", "study ", "inspect ", "babylm ", "verify "}) {
    const auto help = cloze(verb + "--help").text;
    INFO(verb);
    CHECK_THAT(help, Catch::Contains(" VERB\n") && Catch::Contains("\nVerbs:\n  ") && !Catch::Contains("ubcommand") &&
                         !Catch::Contains("SUBCOMMAND") && !Catch::Contains("torchscript-run"));
  }
}

TEST_CASE("the help of every verb has the options of all, and no name runs into its description", "[cli]") {
  for (const auto& verb : verbs) {
    INFO(verb);
    const auto help = cloze(verb + " --help").text;
    CHECK_THAT(help, Catch::Contains("Every verb:\n  --quiet ") && Catch::Contains("\n  --verbose "));
  }
  CHECK_THAT(cloze("evaluate losses --help all").text, Catch::Contains("--columns TEXT Needs: --text\n"));
}

TEST_CASE("the help of every verb fits a screen, and has its parts where they are asked for", "[cli]") {
  for (const auto& verb : verbs) {
    INFO(verb);
    const auto help = cloze(verb + " --help").text;
    const auto options = help.find("\nOptions:"), others = help.find("\nEvery verb:");
    REQUIRE((options != std::string::npos && options < others));
    CHECK(std::count(help.begin(), help.begin() + static_cast<std::ptrdiff_t>(help.find("\nExample")), '\n') <= 48);
  }
  for (const std::string inner : {"losses", "generation", "suites", "babylm", "tasks", "predictions"}) {
    INFO(inner);
    const auto help = cloze("evaluate " + inner + " --help").text;
    const auto end = help.begin() + static_cast<std::ptrdiff_t>(help.find("\nEvery verb:"));
    CHECK(std::count(help.begin(), end, '\n') <= 24);
  }
  const auto suites = cloze("evaluate suites --help").text;
  CHECK_THAT(suites, Catch::Contains("cloze evaluate suites --help PART, or --help all") &&
                         Catch::Contains("  embeddings  ") && Catch::Contains("--keep") &&
                         Catch::Contains("\n  checkpoints  ") && !Catch::Contains("the first N items"));
  const auto items = cloze("evaluate suites --help items");
  CHECK(items.code == 0);
  CHECK_THAT(items.text, Catch::Contains("  --keep TEXT ") && !Catch::Contains("--suite"));
  CHECK_THAT(cloze("evaluate generation -h beam-search").text,
             Catch::Contains("  --num-beams INT") && !Catch::Contains("--generate"));
  for (const std::string part : {"", "all", "scores", "embeddings", "items"})
    each_line(cloze("evaluate suites --help " + part).text, [](const std::string& line) { CHECK(line.size() <= 80); });
}

TEST_CASE("the verb of evaluate may be left out where options or nothing tell it", "[cli]") {
  const auto help_of = [](const std::string& words) { return cloze("evaluate " + words + " --help").text; };
  CHECK(help_of("runs/a") == cloze("evaluate losses --help").text);
  CHECK(help_of("runs/a --suite blimp --paradigms") == cloze("evaluate suites --help").text);
  CHECK(help_of("runs/a --suite=babylm --fast") == cloze("evaluate babylm --help").text);
  CHECK(help_of("--task rte.yaml --predictions rte.jsonl") == cloze("evaluate predictions --help").text);
  CHECK(help_of("runs/a --generate --num-beams 4") == cloze("evaluate generation --help").text);
  CHECK(cloze("evaluate --help suites").text == cloze("evaluate suites --help").text);
  CHECK(cloze("--quiet evaluate runs/a --help").text == cloze("evaluate losses --help").text);
  CHECK_THAT(cloze("evaluate --help").text, Catch::Contains("\nVerbs:\n  losses ") && Catch::Contains("predictions"));
  check_refused("evaluate runs/a --text x.txt --suite blimp", 2,
                "--suite is an option of `cloze evaluate suites`, and the others are of `cloze evaluate losses`");
}

TEST_CASE("cloze alone shows the way from a text to a model, one command for each step", "[cli]") {
  const auto way = cloze("");
  CHECK(way.code == 0);
  size_t at = 0;
  for (const std::string verb : {"prepare", "pretrain", "evaluate", "export"}) {
    const auto next = way.text.find("\n  cloze " + verb + " ", at);
    INFO(verb);
    REQUIRE(next != std::string::npos);
    at = next;
  }
  CHECK_THAT(way.text, Catch::Contains("`cloze --help` lists all verbs"));
  each_line(way.text, [](const std::string& line) { CHECK(line.size() <= 80); });
}

TEST_CASE("a config key is explained without a config, by `config` and by `explain`", "[cli]") {
  const auto key = cloze("config optimizer.learning_rate");
  CHECK(key.code == 0);
  CHECK_THAT(key.text, Catch::Contains("optimizer.learning_rate\n  meaning  peak learning rate\n"
                                       "  allowed  in [0, 1000]\n  default  1e-04\n"));
  CHECK(cloze("explain optimizer.learning_rate").text == key.text);
  CHECK_THAT(cloze("config objectives.0.mlm_probability").text,
             Catch::Contains("objectives.N.mlm_probability\n  meaning  share of the tokens") &&
                 Catch::Contains("  of       mlm"));
  CHECK_THAT(cloze("config train.budget").text,
             Catch::Contains("train.budget.steps\n") && Catch::Contains("train.budget.tokens\n"));
  CHECK_THAT(cloze("config mem_len").text, Catch::Contains("model.mem_len\n") && Catch::Contains("  of       xlnet\n"));
}

TEST_CASE("completion has nested verbs, options, values and config keys", "[cli]") {
  TempDir dir;
  const auto script = dir.write("completion.bash", cloze("completion bash").text);
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    INFO(shell);
    const auto text = cloze("completion " + shell).text;
    CHECK_THAT(text, Catch::Contains("plan run status report commands") &&
                         Catch::Contains("optimizer.learning_rate=") &&
                         Catch::Contains("objectives.0.mlm_probability=") && Catch::Contains("best newest") &&
                         !Catch::Contains("torchscript-run"));
  }
  CHECK_THAT(cloze("completion fish").text, Catch::Contains("train.precision=bf16"));
  if (std::system("command -v bash > /dev/null") != 0) return;
  const auto completed = [&](const std::string& words) {
    const auto shell = "bash -c 'source " + script + "; COMP_WORDS=(" + words +
                       "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _cloze; echo ${COMPREPLY[@]}'";
    std::FILE* pipe = popen(shell.c_str(), "r");
    std::string text;
    for (int byte = 0; (byte = std::fgetc(pipe)) != EOF;) text += static_cast<char>(byte);
    pclose(pipe);
    return text;
  };
  CHECK(completed("cloze pret") == "pretrain\n");
  CHECK(completed("cloze study pl") == "plan\n");
  CHECK(completed("cloze study plan --jo") == "--jobs\n");
  CHECK(completed("cloze fill runs/a --checkpoint \"\"") == "best newest\n");
  CHECK(completed("cloze pretrain x.yaml --set optimizer.learning_r") == "optimizer.learning_rate=\n");
  CHECK(completed("cloze pretrain x.yaml --set train.precision = b") == "bf16\n");
  CHECK(completed("cloze pretrain x.yaml --set train.precision =") == "fp32 bf16\n");
  CHECK(completed("cloze pretrain x.yaml --set train.precision=b") == "train.precision=bf16\n");
  CHECK(completed("cloze pretrain x.yaml --set like = google") == "google-bert\n");
  CHECK(completed("cloze explain x.yaml optimizer.learning_r") == "optimizer.learning_rate\n");
  CHECK(completed("cloze explain " + script) == script + "\n");
  CHECK(completed("cloze --qui") == "--quiet\n");
  CHECK(completed("cloze pretrain --qui") == "--quiet\n");
  CHECK(completed("cloze evaluate x --format jso") == "jsonl\n");
  CHECK(completed("cloze config --resolved " + script) == script + "\n");
  CHECK(completed("cloze config --resolved optimi") == "\n");
}

TEST_CASE("--verbose prints the values of the config, and what set them", "[cli]") {
  const std::string describe = "describe " SOURCE_DIR "/configs/bert/tiny.yaml --set train.batch_size=7";
  CHECK_THAT(cloze("--verbose " + describe).text,
             Catch::Contains("train.batch_size = 7  (--set") && Catch::Contains("optimizer.beta1 = 0.9  (default)"));
  CHECK(cloze(describe).text.find("optimizer.beta1 = ") == std::string::npos);
}

TEST_CASE("--verbose prints the options of a verb, and the checkpoint that it opens", "[cli]") {
  const auto fill = "fill " + world().run + " 'The cat [MASK] on mat'";
  CHECK_THAT(cloze("--verbose " + fill + " --checkpoint newest").text,
             Catch::Contains("--checkpoint = newest\n") && Catch::Contains("--top = 5  (default)") &&
                 Catch::Contains("step-00000006: bert, step 6, weights with the XXH3 "));
  CHECK_THAT(cloze(fill).text, !Catch::Contains("--top = ") && !Catch::Contains("XXH3"));
}
