#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

namespace fs = std::filesystem;

namespace {

struct Answer {
  int code;
  std::string text;  // standard output and standard error
};

/// Runs cloze; `before` is shell code that comes first.
Answer cloze(const std::string& arguments, const std::string& before = "") {
  std::FILE* pipe = popen((before + BINARY_DIR "/cloze " + arguments + " 2>&1").c_str(), "r");
  Answer answer{};
  std::array<char, 4096> block{};
  for (size_t n = 0; (n = std::fread(block.data(), 1, block.size(), pipe)) > 0;) answer.text.append(block.data(), n);
  const int status = pclose(pipe);
  answer.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

/// The JSON after the log lines.
nlohmann::json json_of(const Answer& answer) {
  INFO(answer.text);
  const auto at = answer.text.find("{\"");
  REQUIRE(at != std::string::npos);
  return nlohmann::json::parse(answer.text.substr(at));
}

void check_refused(const std::string& arguments, int code, const std::string& sentence) {
  const auto answer = cloze(arguments);
  INFO(arguments << "\n" << answer.text);
  CHECK(answer.code == code);
  CHECK_THAT(answer.text, Catch::Contains(sentence));
  CHECK_THAT(answer.text,
             !Catch::Contains("terminate called") && !Catch::Contains("frame #") && !Catch::Contains("This is a bug"));
}

/// A text, its tokens and a trained run, created once.
struct World {
  TempDir dir;
  std::string tokens, run;
  World() {
    std::string text;
    for (int d = 0; d < 20; ++d) {
      for (int s = 0; s < 12; ++s)
        text += "The cat number " + std::to_string(d * 31 % 17) + " sat on mat " + std::to_string(s) +
                " and slept. Then it woke.\n";
      text += "\n";
    }
    dir.write("text.txt", text);
    tokens = dir / "tokens";
    run = dir / "run";
    const auto prepared = cloze("prepare " + dir / "text.txt" + " --vocab-size 80 --held-out 0.2 --out " + tokens);
    INFO(prepared.text);
    REQUIRE(prepared.code == 0);
    const auto trained = cloze("pretrain " + config() + " --run " + run);
    INFO(trained.text);
    REQUIRE(trained.code == 0);
  }
  std::string config() const {
    return SOURCE_DIR "/configs/bert/tiny.yaml --set data.tokens=" + tokens +
           " --set model.hidden_size=32 --set model.intermediate_size=32 --set train.budget.steps=6 --set "
           "data.max_seq_length=32 --set evaluation.sequences=16 --set train.batch_size=4";
  }
};

World& world() {
  static World made;
  return made;
}

}  // namespace

TEST_CASE("help fits 80 columns and has an example for every verb; version and defaults are printed", "[cli]") {
  CHECK(cloze("--version").text.find("cloze ") == 0);
  const auto check_width = [](const std::string& help) {
    std::istringstream lines(help);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
    }
  };
  for (const std::string verb : {"", "inspect objective", "verify parity", "verify data", "verify run"})
    check_width(cloze(verb + " --help").text);
  for (const std::string verb : {"prepare", "tokenize", "inspect", "pretrain", "benchmark", "evaluate", "generate",
                                 "fill", "import", "export", "verify", "config", "explain", "describe", "completion"}) {
    const auto help = cloze(verb + " --help");
    CHECK(help.code == 0);
    check_width(help.text);
    CHECK_THAT(help.text, Catch::Contains("Example") &&
                              Catch::Contains("cloze " + (verb == "completion" ? std::string("completion")
                                                          : verb == "pretrain" ? "pretrain"
                                                                               : verb)));
  }
  CHECK_THAT(cloze("config mlm").text,
             Catch::Contains("# share of the tokens that are predicted (in [0, 1])\nmlm_probability: 0.15"));
  CHECK_THAT(cloze("completion bash").text, Catch::Contains("complete -o filenames -F _cloze cloze"));
}

TEST_CASE("mistyped words get a suggestion and exit code 2", "[cli]") {
  check_refused("pretrian x.yaml", 2, "did you mean 'pretrain'?");
  check_refused("--quiet pretrian", 2, "'pretrian' is not a verb; did you mean 'pretrain'? see cloze --help");
  check_refused("pretrian --help", 2, "did you mean 'pretrain'?");
  check_refused("pretrain --resme", 2, "did you mean '--resume'?");
  check_refused("config brt", 2, "no config part is called 'brt'; did you mean 'bert'?");
  check_refused("", 2, "see cloze --help");
  check_refused("explain " SOURCE_DIR "/configs/bert/tiny.yaml train.sed", 2,
                "unknown key 'train.sed'; did you mean 'train.seed'?");
  check_refused("pretrain none.yaml", 2, "none.yaml: no such file; name a YAML config");
  check_refused("pretrain " SOURCE_DIR "/configs/bert/tiny.yaml --set model.hidden_sise=3", 2,
                "did you mean 'hidden_size'?");
}

TEST_CASE("every config of the repository describes itself", "[cli]") {
  int count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml" || entry.path().parent_path().filename() == "studies") continue;
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

TEST_CASE("from text to model: every verb works", "[cli]") {
  auto& w = world();
  CHECK_THAT(cloze("prepare " + w.dir / "text.txt" + " --vocab-size 80 --held-out 0.2 --out " + w.tokens).text,
             Catch::Contains("already exists"));
  CHECK(cloze("verify data " + w.tokens).code == 0);
  CHECK(cloze("prepare " + w.dir / "text.txt" + " --tokenizer " + w.tokens + "/tokenizer --held-out 0 --out " +
              w.dir / "whole")
            .code == 0);
  const auto whole = cloze("verify data " + w.dir / "whole");
  CHECK(whole.code == 0);
  CHECK_THAT(whole.text, Catch::Contains("whole train: ") && !Catch::Contains("valid"));
  CHECK(cloze("verify run " + w.run).code == 0);
  CHECK_THAT(cloze("fill " + w.run + " 'The cat [MASK] on mat'").text, Catch::Contains("%"));
  CHECK_THAT(cloze("fill --json " + w.run + " 'The cat [MASK] on mat'").text, Catch::Contains("\"probability\""));
  CHECK_THAT(cloze("evaluate " + w.run).text, Catch::Contains("unigram"));
  CHECK_THAT(cloze("evaluate " + w.run + " --text " + w.dir / "text.txt").text, Catch::Contains("mlm"));
  CHECK_THAT(cloze("export " + w.run + " --to torchscript --out " + w.dir / "m.pt").text,
             Catch::Contains("loaded in a new process"));
  CHECK(cloze("export " + w.run + " --to huggingface --out " + w.dir / "hf").code == 0);
  CHECK(cloze("import " + w.dir / "hf" + " --out " + w.dir / "back").code == 0);
  CHECK_THAT(cloze("verify parity " SOURCE_DIR "/tests/parity/bert").text, Catch::Contains("53 tensors agree"));
  const auto bench = cloze("benchmark " + w.config() + " --steps 2 --json");
  CHECK_THAT(bench.text, Catch::Contains("\"ms_per_step\"") && Catch::Contains("\"tokens_per_second\"") &&
                             Catch::Contains("\"mfu\"") && Catch::Contains("\"peak_rss_mb\""));
  const auto inspected =
      cloze("inspect objective " + w.config() + " --examples 2 --sequences 300 --picture " + w.dir / "lengths.svg");
  CHECK(inspected.code == 0);
  CHECK_THAT(inspected.text, Catch::Contains("{[MASK]}") && Catch::Contains("ok   split into mask, random, keep") &&
                                 Catch::Contains("pairs"));
  CHECK(fs::file_size(w.dir / "lengths.svg") > 1000);
  CHECK_THAT(cloze("inspect objective " + w.config() + " --examples 1 --sequences 100 --json").text,
             Catch::Contains("\"labels\":[-100"));
  // Half of the rows with 15 %, half with 5 %: 10 % of all tokens, in describe, inspect and pretrain.
  const std::string mixed =
      w.config() +
      " --set 'objectives=[{kind: mlm, like: google-bert, mixture: [{unit: ngram}, {mlm_probability: 0.05}]}]'";
  CHECK_THAT(
      cloze("inspect objective " + mixed + " --sequences 300").text,
      Catch::Contains("masking    mixture.1") &&
          Catch::Contains("ok   mixture.0: drawn n-gram lengths in words (chi-square)") &&
          Catch::Contains("ok   rows per masking") &&
          Catch::Contains("differs from the preset: objectives.0.mixture.0.unit is ngram, google-bert has token"));
  CHECK_THAT(cloze("describe " + mixed).text, Catch::Contains("prediction head at 10 % of the tokens"));
  CHECK(cloze("pretrain " + mixed + " --run " + w.dir / "mixed").code == 0);
  CHECK(cloze("pretrain " + mixed + " --set train.budget.steps=8 --run " + w.dir / "mixed --resume").code == 0);
  CHECK_THAT(cloze("explain " + w.dir / "mixed/run.yaml" + " objectives.0.mixture.1.mlm_probability").text,
             Catch::Contains("= 0.05"));
  CHECK_THAT(cloze("tokenize " + w.tokens + "/tokenizer 'the cat'").text, Catch::Contains("bytes per token"));
  CHECK_THAT(cloze("tokenize --json " + w.tokens + "/tokenizer 'the cat'").text, Catch::Contains("\"offsets\":[[0,"));
  CHECK_THAT(cloze("explain " SOURCE_DIR "/configs/bert/base.yaml optimizer.bias_correction").text,
             Catch::Contains("preset 'google-bert'"));
}

TEST_CASE("a run that was moved with its tokens is evaluated and resumed from any folder", "[cli]") {
  auto& w = world();
  const std::string small =
      " --set model.hidden_size=32 --set model.intermediate_size=32 --set data.max_seq_length=32 --set "
      "evaluation.sequences=16 --set train.batch_size=4 --set checkpoint.every=2";
  const auto from = "cd " + w.dir / "before" + " && ";
  fs::create_directories(w.dir / "before");
  REQUIRE(cloze("prepare ../text.txt --vocab-size 80 --held-out 0.2 --out tokens", from).code == 0);
  const auto train = "pretrain " SOURCE_DIR "/configs/bert/tiny.yaml --set data.tokens=tokens" + small;
  REQUIRE(cloze(train + " --set train.budget.steps=6 --run runs/whole", from).code == 0);
  REQUIRE(cloze(train + " --set train.budget.steps=6 --set schedule.shape=constant --run runs/a", from).code == 0);
  const auto losses = [&](const std::string& run, const std::string& before) {
    auto found = json_of(cloze("--quiet evaluate " + run + " --json", before));
    for (const auto* path : {"run", "checkpoint", "tokens"}) found.erase(path);
    return found;
  };
  const auto wanted = losses("runs/whole", from);
  fs::create_directories(w.dir / "elsewhere");
  fs::rename(w.dir / "before", w.dir / "after");
  const auto elsewhere = "cd " + w.dir / "elsewhere" + " && ";
  CHECK(losses("../after/runs/whole", elsewhere) == wanted);
  CHECK_THAT(cloze("evaluate ../after/runs/whole", elsewhere).text,
             Catch::Contains("../after/runs/whole: its tokens, tokens, are found in "));
  const std::string last = "/step-00000006/weights.safetensors";
  fs::remove_all(w.dir / "after/runs/whole/step-00000006");
  const auto trained = read_file(w.dir / ("after/runs/a" + last));
  fs::remove_all(w.dir / "after/runs/a/step-00000006");
  const auto resumed = cloze("pretrain --run ../after/runs/a --resume", elsewhere);
  INFO(resumed.text);
  REQUIRE(resumed.code == 0);
  CHECK((!trained.empty() && read_file(w.dir / ("after/runs/a" + last)) == trained));
  CHECK_THAT(cloze("inspect objective ../after/runs/a/run.yaml --examples 1 --sequences 50", elsewhere).text,
             Catch::Contains("{[MASK]}") && !Catch::Contains("error"));
  // Tokens that are gone are named, with the way out.
  fs::rename(w.dir / "after/tokens", w.dir / "elsewhere/deep");
  fs::create_directories(w.dir / "elsewhere/deeper");
  fs::rename(w.dir / "elsewhere/deep", w.dir / "elsewhere/deeper/tokens");
  check_refused("evaluate " + w.dir / "after/runs/whole", 1,
                "are neither there nor near the run; name their folder with --tokens, or text with --text");
  check_refused("pretrain --resume --run " + w.dir / "after/runs/whole", 1,
                "are neither there nor near the run; name their folder with --set data.tokens=FOLDER");
  CHECK(cloze("pretrain --resume --run " + w.dir / "after/runs/whole" +
              " --set data.tokens=" + w.dir / "elsewhere/deeper/tokens")
            .code == 0);
}

TEST_CASE("a decoder is trained, generates text, is exported and evaluated", "[cli]") {
  auto& w = world();
  std::string pairs;
  for (int i = 0; i < 60; ++i)
    pairs += "The cat number " + std::to_string(i) + " slept.\tIt woke " + std::to_string(i) + ".\n";
  const auto tokens = w.dir / "pairs", run = w.dir / "translator";
  const auto prepared = cloze("prepare " + w.dir.write("pairs.tsv", pairs) +
                              " --format pairs --train wordpiece --vocab-size 70 --held-out 0.2 --out " + tokens);
  INFO(prepared.text);
  REQUIRE(prepared.code == 0);
  const auto trained = cloze("pretrain " SOURCE_DIR
                             "/configs/transformer/multi30k.yaml --set model.hidden_size=32 --set "
                             "model.intermediate_size=32 --set model.num_hidden_layers=1 --set train.budget.steps=6 "
                             "--set train.batch_size=8 --set schedule.warmup=2 --set data.tokens=" +
                             tokens + " --run " + run);
  INFO(trained.text);
  REQUIRE(trained.code == 0);
  const auto generated =
      cloze("generate " + run + " 'The cat number 3 slept.' 'The cat' --num-beams 3 --max-new-tokens 7 --json");
  CHECK(generated.code == 0);
  CHECK_THAT(generated.text, Catch::Contains("\"generated\":[{\"ids\":["));
  // Texts come from arguments, a file or a pipe; unused options are refused.
  const auto one = json_of(cloze("generate " + run + " 'The cat' --json --max-new-tokens 5"))["generated"][0];
  CHECK(cloze("--quiet generate " + run + " --max-new-tokens 5", "printf 'The cat\\n' | ").text ==
        one["text"].get<std::string>() + "\n");
  CHECK(cloze("--quiet generate " + run + " --file " + w.dir.write("one.txt", "The cat\n") + " --max-new-tokens 5")
            .text == one["text"].get<std::string>() + "\n");
  check_refused("generate " + run + " --file " + w.dir.write("latin.txt", "The cat\nThe \xE9t\xE9\n"), 1,
                "latin.txt:2: byte 5 is not UTF-8; convert the text to UTF-8");
  check_refused("generate " + run + " 'The cat' --top-k 3", 2,
                "--top-k applies to sampling only; add --do-sample, or leave it out");
  check_refused("evaluate " + run + " --num-beams 4", 2, "--num-beams requires --generate");
  // Two columns of a larger table, and a pipe, give the same result as a file with the two columns.
  std::string few, table = "number\tsource\ttarget\n";
  for (int i = 0; i < 5; ++i) {
    const auto line = "The cat number " + std::to_string(i) + " slept.\tIt woke " + std::to_string(i) + ".\n";
    few += line;
    table += std::to_string(i) + "\t" + line;
  }
  const auto scored = [&](const std::string& text, const std::string& before = "") {
    auto found = json_of(
        cloze("evaluate " + run + " --format pairs --generate --max-new-tokens 5 --json --text " + text, before));
    found.erase("text");
    return found;
  };
  const auto two_columns = scored(w.dir.write("few.tsv", few));
  CHECK(scored(w.dir.write("table.tsv", table) + " --columns source,target") == two_columns);
  CHECK(scored("-", "cat " + w.dir / "few.tsv" + " | ") == two_columns);
  check_refused("evaluate " + run + " --format pairs --text " + w.dir / "table.tsv", 1,
                "table.tsv:1: has 3 columns, but a pair has two; write two, or select two with --columns NAME,NAME");
  check_refused("evaluate " + run + " --columns source,target", 2, "--columns requires --text");
  check_refused("evaluate " + run + " --target x.de", 2, "--target requires --text");
  check_refused(
      "evaluate " + run + " --text " + w.dir / "text.txt", 2,
      "this run is trained on pairs; name the targets of --text with --target, or use --format pairs for two columns");
  check_refused("evaluate " + w.run + " --text " + w.dir / "text.txt --target " + w.dir / "text.txt", 2,
                "this run is not trained on pairs; leave out --target and --format pairs");
  check_refused("generate " + run + " 'caf\xE9'", 2, "byte 4 of a text argument is not UTF-8; convert it to UTF-8");
  check_refused("fill " + w.run + " 'caf\xE9 [MASK]'", 2, "byte 4 of a text argument is not UTF-8");
  check_refused("evaluate " + run + " --generate --temperature 0.5", 2,
                "--temperature applies to sampling only; add --do-sample, or leave it out");
  CHECK(cloze("generate " + run + " 'The cat' --do-sample --top-k 3 --max-new-tokens 5").code == 0);
  check_refused("generate " + run + " 'The cat' --length-penalty 2", 2,
                "--length-penalty applies to beam search only; set --num-beams above 1, or leave it out");
  check_refused("generate " + run + " --file " + w.dir.path.string(), 1,
                ": is a folder; name a file with one text per line");
  const auto stopped = cloze(
      "generate " + run,
      "sleep 4 | timeout --foreground --preserve-status -s INT 1 ");  // --foreground: else its group is signalled too,
                                                                      // and a second signal ends a program at once
  CHECK(stopped.code == 130);
  CHECK_THAT(stopped.text, Catch::Contains("stopped; nothing was written to a file"));
  const auto unread =
      cloze("tokenize " + w.tokens + "/tokenizer", "sleep 4 | timeout --foreground --preserve-status -s TERM 1 ");
  CHECK(unread.code == 130);
  CHECK_THAT(unread.text, Catch::Contains("stopped before the end of standard input"));
  const auto unspooled =
      cloze("prepare - --out " + w.dir / "unspooled", "sleep 4 | timeout --foreground --preserve-status -s TERM 1 ");
  CHECK(unspooled.code == 130);
  CHECK_THAT(unspooled.text, Catch::Contains("stopped before the end of standard input"));
  check_refused("prepare - --out " + w.dir / "unspooled" + " < /", 1, "standard input: cannot be read (");
  check_refused("prepare - --valid - --out " + w.dir / "unspooled" + " < " + w.dir / "text.txt", 2,
                "standard input: is named twice, but can be read only once; name a file");
  CHECK_FALSE(std::filesystem::exists(w.dir / "unspooled.partial"));
  CHECK(cloze("tokenize " + w.tokens + "/tokenizer", "yes word | timeout --foreground --preserve-status -s TERM 1 ")
            .code == 130);
  CHECK_THAT(cloze("generate " + run, "true | ").text,
             Catch::Contains("standard input: is empty; write one text per line"));
  CHECK_THAT(cloze("evaluate " + run + " --json").text, Catch::Contains("\"perplexity\":"));
  // References from files are the raw text, with its case, spaces and unknown words.
  const auto files = "evaluate " + run + " --text " +
                     w.dir.write("raw.tsv", "The cat number 3 slept.\tIt  woke\xC3\x9F 3 .\n") +
                     " --format pairs --generate --max-new-tokens 5";
  CHECK_THAT(cloze(files).text, Catch::Contains("(It  woke\xC3\x9F 3 .)"));
  CHECK(json_of(cloze(files + " --json"))["measures"].contains("bleu"));
  const auto on_text = json_of(cloze("evaluate " + w.run + " --json --text " + w.dir / "text.txt"));
  CHECK(on_text["text"] == nlohmann::json{w.dir / "text.txt"});
  CHECK_FALSE(on_text.contains("tokens"));
  CHECK_THAT(cloze("evaluate " + run + " --generate --max-new-tokens 8").text,
             Catch::Contains("BLEU") && Catch::Contains("chrF") && Catch::Contains("ROUGE-L") &&
                 Catch::Contains("bits per byte"));
  CHECK_THAT(cloze("export " + run + " --to torchscript --out " + w.dir / "translator.pt").text,
             Catch::Contains("generate, 3 beams: max difference 0.0e+00"));
  CHECK_THAT(cloze("inspect objective " + run + "/run.yaml --sequences 20").text, Catch::Contains("target     "));
  // Blanks filled by a generative model, with and without sentinels.
  REQUIRE(cloze("prepare " + w.dir / "text.txt" + " --vocab-size 80 --sentinels 20 --out " + w.dir / "marked").code ==
          0);
  for (const std::string kind : {"t5", "bart"}) {
    const auto filler = w.dir / kind;
    REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/" + kind + "/tiny.yaml --set data.tokens=" + w.dir / "marked" +
                  " --set model.hidden_size=32 --set model.intermediate_size=32 --set model.d_kv=16 --set "
                  "train.budget.steps=3 --run " +
                  filler)
                .code == (kind == "t5" ? 0 : 2));
    if (kind == "bart")
      REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/" + kind + "/tiny.yaml --set data.tokens=" + w.dir / "marked" +
                    " --set model.hidden_size=32 --set model.intermediate_size=32 --set train.budget.steps=3 --run " +
                    filler)
                  .code == 0);
    const auto filled = cloze("fill " + filler + " 'The cat [MASK] on [MASK].' --top 2 --json");
    INFO(filled.text);
    CHECK(filled.code == 0);
    CHECK_THAT(filled.text, Catch::Contains("\"filled\":[{\"score\":"));
    const auto list = json_of(filled)["filled"];
    std::set<std::string> texts;
    for (const auto& text : list) texts.insert(text["text"]);
    CHECK(texts.size() == list.size());  // each text once
    check_refused("fill " + filler + " 'no blank'", 2, "has no [MASK] to fill");
  }
  // Tokens without sentinels get those of T5 behind their vocabulary, and give the bits of tokens that have them.
  REQUIRE(cloze("prepare " + w.dir / "text.txt" + " --tokenizer " + w.tokens +
                "/tokenizer --held-out 0.2 --sentinels " + "100 --out " + w.dir / "hundred")
              .code == 0);
  for (const std::string name : {"plain", "hundred"}) {
    const auto spans = cloze("pretrain " SOURCE_DIR "/configs/t5/tiny.yaml --set data.tokens=" +
                               (name == "plain" ? w.tokens : w.dir / name) +
                               " --set model.hidden_size=32 --set model.intermediate_size=32 --set model.d_kv=16 "
                               "--set train.budget.steps=3 --run " +
                               w.dir / ("t5-" + name));
    INFO(spans.text);
    REQUIRE(spans.code == 0);
    CHECK((spans.text.find("has no sentinels; <extra_id_0> to <extra_id_99> follow its") != std::string::npos) ==
          (name == "plain"));
  }
  const auto weights = [&](const std::string& name) {
    return read_file(w.dir / ("t5-" + name + "/step-00000003/weights.safetensors"));
  };
  CHECK((!weights("plain").empty() && weights("plain") == weights("hundred")));
  const auto scored_by = [&](const std::string& name) {
    return json_of(cloze("--quiet evaluate --json " + w.dir / ("t5-" + name)))["held_out"];
  };
  CHECK(scored_by("plain") == scored_by("hundred"));
  CHECK(cloze("verify run " + w.dir / "t5-plain").code == 0);
  CHECK(cloze("pretrain --resume --set train.budget.steps=4 --run " + w.dir / "t5-plain").code == 0);
  CHECK(json_of(cloze("fill " + w.dir / "t5-plain" + " 'The cat [MASK] on mat.' --json"))["filled"].size() > 0);
  CHECK(cloze("export " + w.dir / "t5-plain" + " --to huggingface --out " + w.dir / "t5-hf").code == 0);
  CHECK(cloze("import " + w.dir / "t5-hf" + " --out " + w.dir / "t5-back").code == 0);
  CHECK_THAT(cloze("tokenize " + w.dir / "t5-back/tokenizer" + " 'the cat'").text, Catch::Contains("bytes per token"));
  std::string blanks;
  for (int i = 0; i < 21; ++i) blanks += "cat [MASK] ";
  check_refused("fill " + w.dir / "t5" + " '" + blanks + "'", 2,
                "the text has 21 blanks, the tokenizer has 20 sentinels; fill fewer at once");
  check_refused("prepare " + w.dir / "text.txt" + " --tokenizer " + w.dir / "marked/tokenizer" +
                    " --sentinels 21 --out " + w.dir / "x",
                2, "the tokenizer has 20 sentinels already; leave --sentinels out, or give that number");
  const auto estimates = w.dir / "performer";
  REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/performer/tiny.yaml --set data.tokens=" + w.tokens +
                " --set model.hidden_size=32 --set model.intermediate_size=32 --set model.architecture=decoder --set "
                "'objectives=[{kind: clm}]' --set train.budget.steps=2 --set schedule.warmup=0 --run " +
                estimates)
              .code == 0);
  check_refused("generate " + estimates + " 'The cat'", 2,
                "this model's attention has no key-value cache, so it generates no text; train one with "
                "model.attention.kind: full, model.relative_positions: 0 and a position table");
  check_refused("export " + run + " --to huggingface --out " + w.dir / "x", 2,
                "transformer has no class at Hugging Face; export to torchscript");
}

TEST_CASE("generated texts stay on one line each, and are valid UTF-8 whatever bytes a model generates", "[cli]") {
  auto& w = world();
  const auto tokens = w.dir / "bytes", run = w.dir / "bytes-run";
  REQUIRE(cloze("prepare " + w.dir / "text.txt" + " --train byte_bpe --vocab-size 300 --out " + tokens).code == 0);
  REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/gpt2/tiny.yaml --set data.tokens=" + tokens +
                " --set model.hidden_size=32 --set model.intermediate_size=32 --set train.budget.steps=2 --set "
                "schedule.warmup=0 --run " +
                run)
              .code == 0);
  const auto vocabulary = nlohmann::json::parse(read_file(tokens + "/tokenizer/vocab.json"));
  const auto forced = [&](const char* piece) {
    return "--quiet generate " + run + " --max-new-tokens 1 --forced-eos-token-id " +
           std::to_string(vocabulary.at(piece).get<int>());
  };
  const auto lines = cloze(forced("\u010A"), "printf 'The\\ncat\\n' | ");  // the symbol of a line end
  INFO(lines.text);
  CHECK_THAT(lines.text, Catch::Contains("The \ncat \n"));
  CHECK_THAT(
      lines.text,
      Catch::Contains("2 texts contain line breaks, printed as spaces to keep one text per line; --json keeps them"));
  const auto told = json_of(cloze(forced("\u010A") + " --json The"));  // the generated text is separate from the prompt
  CHECK(told["prompt"] == "The");
  CHECK(told["prompt_ids"].size() >= 1);
  CHECK(told["generated"][0]["text"] == "\n");
  CHECK(told["generated"][0]["ids"].size() == 1);
  const auto byte = forced("\u00C4");  // the first byte of a character without the others
  CHECK(cloze(byte + " The").text == "The\uFFFD\n");
  CHECK(cloze(byte, "printf 'The\\ncat\\n' | ").text == "The\uFFFD\ncat\uFFFD\n");
}

TEST_CASE("bad input gives a one-sentence error and the right exit code", "[cli]") {
  auto& w = world();
  check_refused("prepare " + w.dir / "none.txt" + " --out " + w.dir / "x", 1, "none.txt: no such file; check the name");
  check_refused("prepare " + w.dir.write("empty.txt", "") + " --out " + w.dir / "x", 1, "has no text");
  check_refused("prepare " +
                    w.dir.write("binary", std::string("\x7f"
                                                      "ELF\0\0\0",
                                                      7)) +
                    " --out " + w.dir / "x",
                1, "the file looks binary; name a text file");
  check_refused("prepare " + w.dir / "text.txt" + " --format wkii --out " + w.dir / "x", 2,
                "--format is 'wkii', must be one of");
  check_refused("prepare " + w.dir / "text.txt" + " --vocab-size 17 --out " + w.dir / "y", 1,
                "a vocabulary of 17 pieces does not fit this text; choose another --vocab-size");
  check_refused("fill " + w.run + " --tpo 3 '[MASK]'", 2, "did you mean '--top'?");
  CHECK(cloze("fill " + w.run + " '[MASK] sat on [MASK]'").code == 0);
  check_refused("pretrain " + w.config() + " --run " + w.run, 2,
                "exists; continue it with --resume, or name another folder with --run");
  check_refused("pretrain " + w.config() + " --set data.tokens=" + w.dir / "none" + " --run " + w.dir / "x", 1,
                "is not prepared text");
  check_refused("pretrain " + w.config() + " --set model.vocab_size=7 --run " + w.dir / "x", 2,
                "raise it, or leave it out");
  check_refused("pretrain " + w.config() + " --set model.num_attention_heads=5 --run " + w.dir / "x", 2,
                "choose a width that is divisible by the number of heads");
  check_refused("pretrain " + w.config() + " --set data.max_seq_length=999 --run " + w.dir / "x", 2,
                "is longer than model.max_position_embeddings");
  check_refused("pretrain " + w.config() + " --run /proc/none", 1, "/proc/none: cannot be created");
  check_refused("generate " + w.run + " 'The cat'", 2, "was not trained to generate text; train it with clm");
  check_refused("generate " + w.run + " 'The cat' --num-beams 0", 2, "num_beams");
  check_refused("generate " + w.run + " x --file " + w.dir / "text.txt", 2,
                "texts are given both as arguments and by --file; use one of them");
  check_refused("prepare " + w.dir / "text.txt" + " --sentinels -1 --out " + w.dir / "x", 2,
                "--sentinels is -1, must be in [0, 10000]");
  check_refused("prepare " + w.dir / "text.txt" + " --target " + w.dir / "text.txt" + " --out " + w.dir / "x", 2,
                "--target names the other side of pairs; add --format pairs");
  check_refused("prepare " + w.dir / "text.txt" + " --format pairs --valid-target " + w.dir / "text.txt" + " --out " +
                    w.dir / "x",
                2, "--valid-target names the other side of --valid; give --valid and --target too");
  check_refused("prepare " + w.dir / "text.txt" + " --format pairs --target " + w.dir / "text.txt" + " --valid " +
                    w.dir / "text.txt" + " --out " + w.dir / "x",
                2, "--valid and --valid-target name both sides of held-out pairs; give both or none");
  check_refused("fill " + w.run + " 'no blank'", 2, "has no [MASK] to fill");
  check_refused("fill " + w.dir / "nowhere" + " '[MASK]'", 1, "no such run directory");
  check_refused("export " + w.run + " --to torchscript --out " + w.dir.path.string(), 2, "is a folder; name a file");
  check_refused("export " + w.run + " --to onnx --out x", 2, "torchscript");
  check_refused("import " + w.dir / "text.txt" + " --out " + w.dir / "x", 1, "no such folder");
  REQUIRE(cloze("export " + w.run + " --to huggingface --out " + w.dir / "no-case").code == 0);
  check_refused("verify parity " + w.dir / "no-case", 1,
                "is not a golden case, it lacks inputs.safetensors; a case has config.json, model.safetensors, "
                "inputs.safetensors and expected.safetensors");
  check_refused("verify parity " + w.tokens, 1, "no such file; name a folder that `save_pretrained` made");
  check_refused("export " + w.run + " --to huggingface --part generator --out " + w.dir / "x", 2, "has no generator");
  check_refused("pretrain " + w.config() + " --set 'objectives=[{kind: rtd},{kind: mlm}]' --run " + w.dir / "x", 2,
                "rtd does its own masking (rtd.mlm) and cannot be combined with mlm; remove mlm");
  check_refused("pretrain " + w.config() + " --set 'objectives=[{kind: nsp},{kind: sop}]' --run " + w.dir / "x", 2,
                "nsp and sop need different pairs of segments; keep one of them");
  check_refused("pretrain " SOURCE_DIR "/configs/distilbert/tiny.yaml --set data.tokens=" + w.tokens +
                    " --set 'objectives=[{kind: nsp}]' --run " + w.dir / "x",
                2, "distilbert has none; choose another model");
  check_refused("pretrain " SOURCE_DIR "/configs/roberta/tiny.yaml --set data.tokens=" + w.tokens +
                    " --set data.max_seq_length=130 --run " + w.dir / "x",
                2, "(positions start at pad_token_id + 1)");
  check_refused("pretrain " SOURCE_DIR "/configs/longformer/tiny.yaml --set model.attention.attention_window=7 --run " +
                    w.dir / "x",
                2, "'model.attention.attention_window' is 7, must be a multiple of 2 in [2, 16777216]");
  check_refused("pretrain " SOURCE_DIR
                "/configs/longformer/tiny.yaml --set model.attention.attention_window=8,16,32 --run " +
                    w.dir / "x",
                2, "has 3 values for 2 layers; give one value, or one per layer");
  check_refused(
      "pretrain " SOURCE_DIR "/configs/longformer/tiny.yaml --set model.architecture=decoder --run " + w.dir / "x", 2,
      "model.attention of kind window is bidirectional");
  // Every rule between options of the stack and of objectives.
  const std::pair<const char*, const char*> rules[] = {
      {"longformer/tiny.yaml --set model.attention.attention_dilation=0",
       "'model.attention.attention_dilation' is 0, must be in [1, 16777216]"},
      {"longformer/tiny.yaml --set model.attention.dilated_heads=3",
       "model.attention.dilated_heads 3 is more than model.num_attention_heads 2; lower it"},
      {"bigbird/tiny.yaml --set model.architecture=decoder",
       "model.attention of kind bigbird is bidirectional; set model.architecture: encoder, or choose kind: full or "
       "performer"},
      {"bert/tiny.yaml --set model.attention.kind=linformer --set model.position_embeddings=none --set "
       "data.max_seq_length=256",
       "data.max_seq_length 256 is longer than model.max_position_embeddings 128; shorten the sequences or give the "
       "model more positions"},
      {"gpt2/tiny.yaml --set 'objectives=[{kind: nsp}]'",
       "nsp needs two segment types, gpt2 has none; choose another model, or remove nsp from the objectives"},
      {"bert/tiny.yaml --set model.attention.kind=linformer --set model.attention.compressed=4096",
       "model.attention.compressed 4096 is more than model.max_position_embeddings 128; lower it"},
      {"performer/tiny.yaml --set model.relative_positions=8",
       "model.relative_positions needs attention of kind full, it is performer; set relative_positions to 0, or choose "
       "kind: full"},
      {"performer/tiny.yaml --set model.position_embeddings=rotary",
       "model.position_embeddings rotary needs attention of kind full or alternating and relative_positions 0, they "
       "are "
       "performer and 0; choose those, or other positions"},
      {"bert/tiny.yaml --set model.position_embeddings=rotary --set model.hidden_size=126 --set "
       "model.num_attention_heads=6",
       "model.position_embeddings rotary rotates pairs of numbers, and heads of width 21 are odd; choose "
       "model.hidden_size and num_attention_heads with an even quotient"},
      {"modernbert/tiny.yaml --set model.architecture=decoder",
       "model.attention of kind alternating is bidirectional; set model.architecture: encoder, or choose kind: full or "
       "performer"},
      {"modernbert/tiny.yaml --set 'model.attention.global_layers=[0,4]'",
       "model.attention.global_layers names layer 4 of a stack with 4, whose first one is 0; leave it out"},
      {"modernbert/tiny.yaml --set 'objectives=[{kind: mlm}, {kind: nsp}]'",
       "nsp needs two segment types, modernbert has none; choose another model, or remove nsp from the objectives"},
      {"bert/tiny.yaml --set 'objectives=[{kind: sbo}]'",
       "sbo predicts the spans that mlm chooses; add mlm (like: spanbert) to the objectives"},
      {"electra/tiny.yaml --set objectives.0.generator_steps=10",
       "rtd.generator_steps: the discriminator starts with the generator's weights, so both need the same shape and "
       "separate embeddings"},
      {"bert/tiny.yaml --set objectives.1.from_step=9 --set objectives.1.until_step=9",
       "objective nsp: until_step 9 is not after from_step 9; raise it, or set it to 0"},
      {"bert/tiny.yaml --set objectives.0.until_step=5 --set objectives.1.until_step=7",
       "no objective is active at step 7; let one begin earlier or end later (from_step, until_step)"},
      {"roberta/tiny.yaml --set data.packing=sentence_pair",
       "data.packing sentence_pair needs two segment types, model.type_vocab_size is 1; raise it to 2, or choose "
       "another packing"},
      {"bert/tiny.yaml --set 'objectives=[{kind: clm}]'",
       "objective clm needs a generative model, bert is bidirectional; choose gpt2, t5, bart"},
      {"t5/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm needs an encoder-only model, t5 has a decoder; choose span_corruption, denoising, gap_sentences "
       "or "
       "pairs, or another model"},
      {"t5/tiny.yaml --set 'objectives=[{kind: clm}]'",
       "objective clm has no input for the encoder of t5; choose gpt2, or span_corruption with corruption: "
       "prefix_lm"},
      {"gpt2/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm needs bidirectional attention, and gpt2 is causal; choose clm, or another model"},
      {"gpt2/tiny.yaml --set 'objectives=[{kind: clm},{kind: pairs}]'",
       "objective clm makes its own rows and cannot be combined with other objectives; keep one of them"},
      {"gpt2/tiny.yaml --set model.prefix_lm=true",
       "objective clm has no input prefix, which model.prefix_lm needs; choose pairs, or "
       "span_corruption with corruption: prefix_lm, or set prefix_lm to false"},
      {"gpt2/tiny.yaml --set model.prefix_lm=true --set model.relative_positions=4",
       "model.prefix_lm needs attention of kind full without relative positions, it has kind full and "
       "relative_positions 4; choose those, or set prefix_lm to false"},
      {"bart/tiny.yaml --set model.decoder_attention_heads=3",
       "model.hidden_size 128 is not a multiple of model.decoder_attention_heads 3; choose a number of heads that "
       "divides it"},
      {"t5/tiny.yaml --set model.attention.kind=linformer",
       "model.relative_attention_num_buckets needs attention of kind full and relative_positions 0, they are linformer "
       "and 0; choose those, or another model"},
      {"t5/tiny.yaml --set model.relative_positions=4", "they are full and 4; choose those, or another model"},
      {"t5/tiny.yaml --set model.relative_attention_max_distance=16",
       "model.relative_attention_max_distance 16 leaves no distances for the logarithmic buckets; raise it above 16"},
      {"bart/tiny.yaml --set model.is_decoder=true",
       "'model.is_decoder' is true: an encoder-decoder family; leave it out, or choose architecture: decoder"},
      {"bert/tiny.yaml --set model.architecture=two_stream",
       "model.architecture two_stream is not available for bert; choose encoder or decoder"},
      {"xlnet/tiny.yaml --set 'objectives=[{kind: mlm}]'",
       "objective mlm does not support xlnet, which predicts from its query stream; choose objective kind: plm"},
      {"bert/tiny.yaml --set 'objectives=[{kind: plm}]'",
       "objective plm needs a query stream, which bert does not have; choose model kind: xlnet"},
      {"xlnet/tiny.yaml --set 'objectives=[{kind: plm},{kind: mlm}]'",
       "objective plm makes its own rows and cannot be combined with other objectives; keep one of them"},
      {"albert/tiny.yaml --set model.architecture=decoder --set 'objectives=[{kind: clm}]'",
       "objective clm multiplies hidden states of width 128 by the token embeddings of width 64; set "
       "model.embedding_size to 0, "
       "tie_word_embeddings to false, or give clm a transform"},
      {"transformer/multi30k.yaml --set data.max_seq_length=64",
       "does not hold pairs of texts; prepare them with --format pairs"},
      {"bert/tiny.yaml --set 'objectives=[{kind: mlm, mixture: [{share: 0}, {share: 0, unit: word}]}]'",
       "mlm.mixture: the shares sum to 0; give at least one masking a `share` above 0"},
      {"bert/tiny.yaml --set 'objectives=[{kind: mlm, mixture: [{unit: word}, {unit: span, count: bernoulli}]}]'",
       "mlm.mixture.1: count: bernoulli draws single tokens or words; with unit: span choose count: rounded, ceil or "
       "stochastic"},
      {"electra/tiny.yaml --set 'objectives.0.mlm.mixture=[{mask_prob: 0.8, random_prob: 0.3}]'",
       "rtd.mlm.mixture.0: mask_prob 0.8 and random_prob 0.3 add up to more than 1; lower one of them"},
      {"bert/tiny.yaml --set init.from=nowhere",
       "nowhere: no such run directory; name one that `cloze pretrain` or `cloze import` made"}};
  for (const auto& [command, sentence] : rules)
    check_refused(
        std::string("pretrain " SOURCE_DIR "/configs/") + command + " --set data.tokens=" + w.tokens + " --run " +
            w.dir / "x",
        std::string(sentence).find("nowhere") == 0 || std::string(sentence).find("does not hold pairs") == 0 ? 1 : 2,
        sentence);
  CHECK_FALSE(std::filesystem::exists(w.dir / "x"));
  check_refused(
      "prepare " + w.dir / "text.txt" + " --train byte_bpe --vocab-size 100 --out " + w.dir / "small", 2,
      "--vocab-size 100 is too small for byte-level BPE, which has 261 tokens before the first merge; raise it");
  check_refused("inspect objective " SOURCE_DIR "/configs/bert/tiny.yaml", 2, "data.tokens is not set");
  check_refused("tokenize " + w.dir / "none" + " x", 1, "no such tokenizer");
  const auto bomb = w.dir.write("bomb.yaml", std::string(5000, '['));
  check_refused("pretrain " + bomb, 2, "brackets are nested deeper than 64");
}

TEST_CASE("a full disk gives a one-sentence error, and leaves no partial output", "[cli]") {
  auto& w = world();
  const std::string full = "ulimit -f 8; ";  // in blocks of 512 bytes: fails like a full disk, at a fixed file size
  const auto refused = [&](const std::string& arguments, const std::string& made) {
    const auto answer = cloze(arguments, full);
    INFO(arguments << "\n" << answer.text);
    CHECK(answer.code == 1);
    CHECK_THAT(answer.text, Catch::Contains("cannot be written (File too large)") && !Catch::Contains("This is a bug"));
    CHECK_FALSE(fs::exists(made));
  };
  refused("prepare " + w.dir / "text.txt" + " --tokenizer " + w.tokens + "/tokenizer --out " + w.dir / "full-tokens",
          w.dir / "full-tokens");
  refused("pretrain " + w.config() + " --run " + w.dir / "full-run", w.dir / "full-run/step-00000006");
  refused("export " + w.run + " --to huggingface --out " + w.dir / "full-hf", w.dir / "full-hf");
  refused("export " + w.run + " --to torchscript --out " + w.dir / "full.pt", w.dir / "full.pt");
  for (const auto& entry : fs::directory_iterator(w.dir.path))
    CHECK_THAT(entry.path().filename().string(), !Catch::Contains(".tmp-"));
}

TEST_CASE("failing output and integers out of range are errors", "[cli]") {
  auto& w = world();
  for (const auto& verb : std::vector<std::string>{
           "tokenize " + w.tokens + "/tokenizer cat", "fill " + w.run + " 'The [MASK]'", "config bert",
           "describe " + w.run + "/run.yaml", "verify parity " SOURCE_DIR "/tests/parity/bert"}) {
    const auto answer = cloze("--quiet " + verb + " 2>&1 >/dev/full #");
    INFO(verb << "\n" << answer.text);
    CHECK(answer.code == 1);
    CHECK_THAT(answer.text,
               Catch::Contains("cannot write to standard output") && Catch::Contains("the output is incomplete"));
  }
  check_refused("inspect objective " + w.config() + " --sequences 99999999999999999999", 2,
                "--sequences: '99999999999999999999' is not a 64-bit integer");
  check_refused("generate " + w.run + " x --sample --seed -1", 2,
                "--seed: '-1' is not an integer from 0 to 18446744073709551615");
}

TEST_CASE("damaged files are refused by name, without a crash", "[cli]") {
  auto& w = world();
  fs::copy(w.tokens, w.dir / "flipped", fs::copy_options::recursive);
  std::fstream flipped(w.dir / "flipped/train-00000.tokens", std::ios::in | std::ios::out | std::ios::binary);
  flipped.seekp(static_cast<std::streamoff>(fs::file_size(w.dir / "flipped/train-00000.tokens") / 2));
  flipped << "UUU";
  flipped.close();
  check_refused("pretrain " + w.config() + " --set data.tokens=" + w.dir / "flipped" + " --run " + w.dir / "x", 1,
                "train-00000.tokens: its content does not match its checksum; prepare the text again");
  CHECK_FALSE(fs::exists(w.dir / "x"));
  fs::copy(w.run, w.dir / "hurt", fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(w.dir / "hurt"))
    if (entry.path().filename() == "weights.safetensors") fs::resize_file(entry.path(), 100);
  check_refused("fill " + w.dir / "hurt" + " '[MASK]'", 1, "holds no valid checkpoint");
  fs::copy(w.run, w.dir / "bent", fs::copy_options::recursive);
  const auto step = w.dir / "bent/step-00000006";
  auto weights = read_file(step + "/weights.safetensors");
  weights[weights.size() - 9] ^= 16;
  w.dir.write("bent/step-00000006/weights.safetensors", weights);
  check_refused("fill " + step + " '[MASK]'", 1,
                "weights.safetensors does not match its checksum; name another step, or the run");
  check_refused("pretrain " + w.config() + " --set init.from=" + step + " --run " + w.dir / "x", 1,
                "weights.safetensors does not match its checksum");
  fs::copy(w.tokens, w.dir / "cut", fs::copy_options::recursive);
  fs::resize_file(w.dir / "cut/train-00000.tokens", 64);
  check_refused("pretrain " + w.config() + " --set data.tokens=" + w.dir / "cut" + " --run " + w.dir / "x", 1,
                "the file is cut off: prepare the text again");
  w.dir.write("cut/tokenizer/spiece.model", "nonsense");
  check_refused("verify data " + w.dir / "cut", 1, "is not a SentencePiece model, or it is damaged");
}

TEST_CASE("several runs are scored in one table, on the same text with the same masks", "[cli]") {
  auto& w = world();
  const auto second = w.dir / "second", alone = w.dir / "alone", tokens = w.dir / "moved-tokens";
  fs::copy(w.tokens, tokens, fs::copy_options::recursive);
  REQUIRE(cloze("pretrain " + w.config() +
                " --set train.seed=5 --set objectives.0.mlm_probability=0.4 --set objectives.0.unit=word --run " +
                second)
              .code == 0);
  REQUIRE(cloze("pretrain " + w.config() + " --set data.tokens=" + tokens + " --set objectives='[{kind: mlm}]' --run " +
                alone)
              .code == 0);
  const auto both =
      json_of(cloze("evaluate " + w.run + " " + second + " --objective mlm:0.15 --objective mlm:0.4,unit=word --json"));
  REQUIRE(both["runs"].size() == 2);
  CHECK(both["runs"][0]["unigram"] == both["runs"][1]["unigram"]);
  for (const std::string name : {"mlm", "mlm:0.4,unit=word"}) {
    const auto &a = both["runs"][0]["held_out"][name], &b = both["runs"][1]["held_out"][name];
    CHECK(a["count"] == b["count"]);
    CHECK(a["baseline"] == b["baseline"]);
    CHECK(a["standard_error"].get<double>() > 0);
    CHECK(both["runs"][1]["minus_first"][name]["mean"].get<double>() ==
          Approx(b["loss"].get<double>() - a["loss"].get<double>()).margin(1e-6));
  }
  CHECK(both["evaluation"]["objectives"] == nlohmann::json{"mlm", "mlm:0.4,unit=word"});
  CHECK_THAT(cloze("evaluate " + w.run + " " + second).text, Catch::Contains("with the same masks (seed 1)") &&
                                                                 Catch::Contains("vs. first") &&
                                                                 Catch::Contains("nsp") && Catch::Contains("majority"));
  // An objective of only one run is skipped and reported.
  const auto common = cloze("evaluate " + w.run + " " + alone);
  CHECK_THAT(common.text, Catch::Contains("nsp is skipped: " + alone + " is scored by mlm"));
  const auto other_seed = json_of(cloze("evaluate " + w.run + " --set evaluation.seed=9 --json"));
  CHECK(other_seed["unigram"] != both["runs"][0]["unigram"]);
  check_refused("evaluate " + w.run + " --set train.seed=9", 2,
                "--set train.seed=9: evaluate accepts keys of `evaluation` only, such as --set evaluation.seed=2");
  check_refused("evaluate " + w.run + " --objective clm", 2,
                "the network has no head for clm, only for mlm, nsp; evaluate an objective that it has a head for");
  check_refused("evaluate " + w.run + " --objective mml", 2, "there is no objective 'mml'; did you mean 'mlm'?");
  check_refused("evaluate " + w.run + " " + second + " --generate", 2, "--generate takes a single run; name one");
  CHECK_THAT(cloze("evaluate " + w.run + " --sequences 9000").text, Catch::Contains(" of 9,000 sequences exist"));
  // Text of a single word, which its own frequencies would predict perfectly: the baseline uses the training text.
  std::string cats;
  for (int i = 0; i < 40; ++i) cats += "cat cat cat cat cat cat cat cat.\n";
  const auto on_text = "evaluate " + alone + " --text " + w.dir.write("cats.txt", cats);
  const auto scored = json_of(cloze(on_text + " --json"));
  CHECK(scored["unigram"]["loss"].get<double>() > 1.5);
  fs::remove_all(tokens);
  const TempDir elsewhere;  // where no copy of them is found
  fs::copy(alone, elsewhere / "alone", fs::copy_options::recursive);
  const auto gone = cloze("evaluate " + elsewhere / "alone" + " --text " + w.dir / "cats.txt");
  CHECK(gone.code == 0);
  CHECK_THAT(gone.text,
             Catch::Contains("no unigram baseline, because its training tokens, " + tokens + ", no longer exist") &&
                 !Catch::Contains("  unigram  "));
}

TEST_CASE("no difference is given between losses on different predictions: other tokenizers, or replaced tokens",
          "[cli]") {
  auto& w = world();
  const auto other = w.dir / "other-pieces", text = w.dir / "text.txt";
  REQUIRE(
      cloze("prepare " + text + " --train wordpiece --vocab-size 60 --held-out 0.2 --out " + w.dir / "pieces").code ==
      0);
  REQUIRE(cloze("pretrain " + w.config() + " --set data.tokens=" + w.dir / "pieces" + " --run " + other).code == 0);
  const auto lines_with = [](const std::string& all, const std::string& part) {
    size_t found = 0;
    for (auto at = all.find(part); at != std::string::npos; at = all.find(part, at + 1)) ++found;
    return found;
  };
  const auto both = "evaluate " + w.run + " " + other + " --text ";
  const auto scored = json_of(cloze(both + text + " --json"));
  REQUIRE(scored["runs"][1]["held_out"].contains("nsp"));
  CHECK(scored["runs"][1]["minus_first"].empty());
  const auto table = cloze(both + text).text;
  CHECK_THAT(table, !Catch::Contains("same sequences") && !Catch::Contains("vs. first") &&
                        Catch::Contains("each on its own tokens of the text, at most 16 sequences of up to 32 tokens"));
  CHECK(lines_with(table, "\n  unigram ") == 2);
  // A pipe is read once, however many tokenizers there are.
  auto piped = json_of(cloze(both + "- --json", "cat " + text + " | "));
  for (const size_t r : {0, 1}) CHECK(piped["runs"][r]["held_out"] == scored["runs"][r]["held_out"]);
  CHECK(piped["runs"][0]["text"] == nlohmann::json{"-"});

  const auto train = [&](const std::string& seed) {
    const auto run = w.dir / ("electra" + seed);
    const auto trained =
        cloze("pretrain " SOURCE_DIR "/configs/electra/tiny.yaml --set data.tokens=" + w.tokens +
              " --set model.hidden_size=32 --set model.intermediate_size=32 --set train.budget.steps=3 --set "
              "data.max_seq_length=32 --set evaluation.sequences=16 --set train.batch_size=4 --set train.seed=" +
              seed + " --run " + run);
    INFO(trained.text);
    REQUIRE(trained.code == 0);
    return run;
  };
  const auto a = train("1"), b = train("2");
  const auto detectors = json_of(cloze("evaluate " + a + " " + b + " --json"));
  CHECK(detectors["runs"][1]["held_out"].contains("rtd"));
  CHECK(detectors["runs"][1]["minus_first"].contains("generator"));
  CHECK_FALSE(detectors["runs"][1]["minus_first"].contains("rtd"));
  const auto shown = cloze("evaluate " + a + " " + b).text;
  CHECK_THAT(shown, Catch::Contains("each on the same sequences"));
  CHECK(lines_with(shown, "\n  majority ") == 2);
  CHECK(lines_with(shown, "\n  unigram ") == 1);
}

TEST_CASE("text to score is always prepared afresh, and problems are reported in terms of evaluate", "[cli]") {
  auto& w = world();
  const auto fresh = json_of(cloze("evaluate " + w.run + " --text " + w.dir / "text.txt" + " --json"));
  // A folder with tokens of other text, left by an earlier process with the same id.
  const auto scratch = w.dir / "scratch";
  const auto stale = cloze(
      "evaluate " + w.run + " --text " + w.dir / "text.txt" + " --json",
      "export TMPDIR=" + scratch + "; mkdir -p $TMPDIR/cloze-$$; cp -r " + w.tokens + " $TMPDIR/cloze-$$/0; exec ");
  CHECK(json_of(stale)["held_out"] == fresh["held_out"]);
  int left = 0;
  for (const auto& entry : fs::directory_iterator(scratch)) left += entry.path().filename() != "";
  CHECK(left == 1);  // what was there before

  const std::string sentence = "The cat number 3 sat on mat 4 and slept. Then it woke. ";
  std::string one, copies;
  for (int i = 0; i < 8; ++i) one += sentence + "\n";
  for (int i = 0; i < 8; ++i) copies += sentence + "\n\n";
  const auto alone = cloze("evaluate " + w.run + " --text " + w.dir.write("one.txt", one));
  INFO(alone.text);
  CHECK(alone.code == 0);
  CHECK_THAT(alone.text, Catch::Contains("nsp is skipped: it needs two documents, and " + w.dir / "one.txt" +
                                         " is a single one; separate documents by blank lines"));
  CHECK_THAT(cloze("evaluate " + w.run + " --text -", "cat " + w.dir / "one.txt" + " | ").text,
             Catch::Contains("two documents, and standard input is a single one"));
  const auto found = json_of(cloze("evaluate " + w.run + " --json --text " + w.dir / "one.txt"));
  CHECK(found["held_out"].contains("mlm"));
  CHECK_FALSE(found["held_out"].contains("nsp"));
  CHECK(found["evaluation"]["objectives"] == nlohmann::json{"mlm"});
  check_refused("evaluate " + w.run + " --objective nsp --text " + w.dir / "one.txt", 1,
                "one.txt: is a single document, and nsp needs two; separate documents by blank lines");
  const auto alike = cloze("evaluate " + w.run + " --text " + w.dir.write("copies.txt", copies));
  CHECK(alike.code == 0);
  CHECK_THAT(alike.text, !Catch::Contains("--dedup") && !Catch::Contains("--held-out") && Catch::Contains("nsp"));
  check_refused("evaluate " + w.run + " --text " + w.dir.write("nothing.txt", "\xE2\x80\x8B\n"), 1,
                "nothing.txt: has no text that the tokenizer knows; name files with text");
  w.dir.write("own.jsonl", "{\"body\": \"The cat sat.\"}\n{\"body\": \"It woke and slept.\"}\n");
  check_refused("evaluate " + w.run + " --text " + w.dir / "own.jsonl", 1, "name the key of the text with --field");
  CHECK(cloze("evaluate " + w.run + " --field body --text " + w.dir / "own.jsonl").code == 0);
}

TEST_CASE("masks of a text do not depend on the tokens that a run was trained on", "[cli]") {
  auto& w = world();
  const auto tokens = w.dir / "trained-on", run = w.dir / "trained";
  fs::copy(w.tokens, tokens, fs::copy_options::recursive);
  REQUIRE(cloze("pretrain " + w.config() + " --set data.tokens=" + tokens + " --run " + run).code == 0);
  std::string cats;
  for (int i = 0; i < 40; ++i) cats += "cat cat cat cat cat cat cat cat.\n\n";
  w.dir.write("cats-only.txt", cats);
  REQUIRE(cloze("prepare " + w.dir / "cats-only.txt" + " --held-out 0.5 --tokenizer " + w.tokens + "/tokenizer --out " +
                w.dir / "cats-only")
              .code == 0);
  const std::string rule = " --objective mlm,random_from=unigram,random_prob=0.9,mask_prob=0.1 --json";
  const auto on_text = [&](const std::string& scored) {
    return json_of(cloze("evaluate " + scored + " --text " + w.dir / "cats-only.txt" + rule));
  };
  const auto on_tokens = [&](const std::string& scored) {
    return json_of(cloze("evaluate " + scored + " --tokens " + w.dir / "cats-only" + rule));
  };
  const auto text = on_text(run), prepared = on_tokens(run);
  CHECK(text.contains("unigram"));
  CHECK(prepared["unigram"]["loss"].get<double>() > 1.5);  // of the training text, which holds more than cats
  fs::remove_all(tokens);
  const TempDir elsewhere;  // where no copy of them is found
  const auto moved = elsewhere / "trained";
  fs::copy(run, moved, fs::copy_options::recursive);
  for (auto [now, before] : {std::pair{on_text(moved), text}, {on_tokens(moved), prepared}}) {
    CHECK_FALSE(now.contains("unigram"));
    for (auto* scored : {&now, &before})
      for (auto& [name, part] : (*scored)["held_out"].items()) part.erase("baseline");
    CHECK(now["held_out"] == before["held_out"]);
  }
}

TEST_CASE("a report of runs goes to the file that is named, in the form of its ending, or to standard output") {
  const auto& run = world().run;
  const auto page = world().dir / "report.html";
  check_refused("report " + run, 2, "name the one to compare by with --metric");
  check_refused("report " + run + "-none", 1, "is no run directory");
  check_refused("report " + run + " --format pdf", 2, "pdf not in");
  check_refused("report " + run + " --metric mlm --unit bits_per_byte", 2, "mlm predicts a part of the text only");
  const auto written = cloze("report " + run + " --metric mlm --output " + page);
  CHECK(written.code == 0);
  CHECK(written.text == page + "\n");
  CHECK(read_file(page).starts_with("<!doctype html>"));
  CHECK(cloze("report " + run + " --metric mlm --format html").text.starts_with("<!doctype html>"));
  CHECK(cloze("report " + run + " --metric mlm --format csv").text.starts_with("kind,arm,seed"));
  CHECK(json_of(cloze("report " + run + " --metric mlm --json"))["arms"].size() == 1);
}

TEST_CASE("fit prints the law of a table in every form, and refuses what it cannot fit", "[cli]") {
  TempDir dir;
  std::string table = "params,tokens,flops,loss\n";
  for (const double size : {1e7, 1e8, 1e9, 1e10})
    for (const double ratio : {5, 20, 80}) {
      const double tokens = ratio * size;
      const double loss = 1.7 + 400 * std::pow(size, -0.34) + 1500 * std::pow(tokens, -0.36);
      std::array<char, 200> line{};
      std::snprintf(line.data(), line.size(), "%.17g,%.17g,%.17g,%.17g\n", size, tokens, 6 * size * tokens, loss);
      table += line.data();
    }
  const auto path = dir.write("points.csv", table), page = dir / "fit.html";
  const auto command = "fit " + path + " --size params --resamples 20 ";
  for (const std::string amount : {"--tokens tokens", "--flops flops"}) {
    const auto law = json_of(cloze(command + amount + " --json --plot " + page))["law"];
    CHECK(law["alpha"]["value"].get<double>() == Approx(0.34).epsilon(1e-4));
    CHECK(law["B"]["value"].get<double>() == Approx(1500).epsilon(1e-3));
  }
  CHECK_THAT(read_file(page), Catch::Contains("IsoFLOP curves"));
  CHECK_THAT(cloze(command + "--predict 70e9,1.4e12").text, Catch::Contains("Predicted"));
  CHECK_THAT(cloze(command + "--format csv").text, Catch::StartsWith("quantity,flops,value,low,high\nE,,1.7"));
  check_refused("fit " + path, 1,
                "points.csv: has no column 'size'; its columns are params, tokens, flops, loss; name one with --size");
  check_refused(command + "--predict 70e9", 2,
                "--predict 70e9 is not a size and its tokens; write them as 70e9,1.4e12");
  check_refused(command + path, 2, "a fit takes one study, one CSV file, or run directories");
  check_refused("fit " + dir.write("few.csv", "size,tokens,loss\n1,2,3\n"), 1,
                "1 point does not determine the 5 parameters of a scaling law; give 6 or more");
}

TEST_CASE("a branch needs a folder of its own and a run to continue", "[cli]") {
  TempDir dir;
  check_refused("pretrain --branch-from " + dir / "nowhere", 2,
                "--branch-from makes a new run; name its folder with --run");
  check_refused("pretrain --branch-from " + dir / "nowhere" + " --run " + dir / "b", 1,
                "is no run directory and no step folder of one");
  check_refused("pretrain --branch-from " + dir / "nowhere" + " --resume --run " + dir / "b", 2, "--resume");
  CHECK_FALSE(fs::exists(dir / "b"));
}

TEST_CASE("a study without tokens and one of a thousand runs are refused before the first run", "[cli]") {
  TempDir dir;
  const std::string arms = "study: s\nbase: " SOURCE_DIR "/configs/bert/tiny.yaml\nbudget: {steps: 2}\npoints: 1\n";
  dir.write("bare.yaml", arms + "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\n");
  check_refused("study run " + dir / "bare.yaml" + " --out " + dir / "bare", 2, "names no tokens to train on");
  const auto set =
      "set: {data.tokens: " + world().tokens +
      ", model.hidden_size: 32, model.intermediate_size: 32, data.max_seq_length: 32, train.batch_size: 4}\n";
  dir.write("many.yaml", arms + set + "seeds: 500\narms: {a: {}, b: {optimizer.weight_decay: 0.1}}\n");
  check_refused("study run " + dir / "many.yaml" + " --out " + dir / "many < /dev/null", 2,
                "asks for 1,000 runs; if that is meant, give --yes");
  CHECK_FALSE(fs::exists(dir / "many"));  // nothing was probed either
  dir.write("two.yaml", arms + set +
                            "seeds: 1\nmetric: {objective: mlm, sequences: 4}\n"
                            "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\n");
  const auto two = dir / "two.yaml" + " --out " + dir / "two";
  const auto plan = cloze("study plan " + two);
  CHECK_THAT(plan.text, Catch::Contains("2 arms x 1 seed = 2 runs") && Catch::Contains("FLOPs") &&
                            Catch::Contains("one seed gives no interval"));
  CHECK(cloze("study run " + two).code == 0);
  CHECK_THAT(cloze("study commands " + two).text, Catch::Contains("no run is left to start"));
}

TEST_CASE("a verb with nothing to save ends at the first signal", "[cli]") {
  const auto endless = "inspect objective " + world().config() + " --sequences 1000000000";
  for (const auto& [signal, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
    INFO(signal);
    CHECK(cloze(endless, "timeout --preserve-status -k 30 -s " + std::string(signal) + " 3 ").code == code);
  }
  // Also while it waits for its input.
  const auto waits = cloze("evaluate " + world().run + " --text -", "sleep 5 | timeout --preserve-status -s TERM 2 ");
  CHECK(waits.code == 143);
}

TEST_CASE("a folder that cannot be created is a sentence", "[cli]") {
  TempDir dir;
  dir.write("file", "x");
  dir.write("s.yaml", "study: s\nbase: " SOURCE_DIR
                      "/configs/bert/tiny.yaml\nbudget: {steps: 2}\npoints: 1\n"
                      "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\nset: {data.tokens: " +
                          world().tokens + "}\n");
  check_refused("study run " + dir / "s.yaml" + " --out " + dir / "file/study", 1, "Not a directory");
}

TEST_CASE("verbs, options and folders of another name or kind are refused with what was meant", "[cli]") {
  auto& w = world();
  const auto config = std::string("pretrain " SOURCE_DIR "/configs/bert/tiny.yaml ");
  check_refused("train x.yaml", 2, "'train' is not a verb; models are trained by `cloze pretrain CONFIG`");
  check_refused("finetune x", 2, "--set init.from=RUN");
  check_refused("help", 2, "`cloze VERB --help` the options of one");
  check_refused("-V", 2, "`cloze --version` prints the version");
  check_refused("", 2, "no verb is given");
  check_refused(config + "--learning-rate 1e-4", 2,
                "'--learning-rate' is not an option; config keys are set by --set optimizer.learning_rate=VALUE");
  check_refused(config + "--output-dir x", 2, "the folder of a run is named with --run");
  check_refused("fill " + w.dir / "rnu" + " '[MASK]'", 1, "no such run directory; did you mean '" + w.run + "'?");
  const auto elsewhere = cloze("fill " + w.dir / "weights" + " '[MASK]'");  // alike only in the folder
  CHECK(elsewhere.code == 1);
  CHECK_THAT(elsewhere.text, Catch::Contains("name one that `cloze pretrain` or `cloze import` made"));
  check_refused("fill " + w.dir / "rnu/" + " '[MASK]'", 1, "did you mean '" + w.run + "'?");
  check_refused("verify run " + w.tokens, 1, "is prepared text, not a run");
  check_refused("verify data " + w.run, 1, "is a run, not prepared text");
  check_refused("pretrain " + w.tokens, 2, "is prepared text, not a config");
  check_refused("pretrain " + w.dir / "text.txt", 2, "is a text, not a config; prepare it with `cloze prepare ");
  check_refused("pretrain " + w.run, 2, "is a run, not a config");
  check_refused("pretrain --resume --run " + w.dir / "rnu", 2, "contains no run to resume; did you mean '" + w.run);
  w.dir.write("early/provenance.json", "{}");  // killed before run.yaml was written
  check_refused("pretrain --resume --run " + w.dir / "early", 2, "early: contains no run to resume");
  check_refused("pretrain --resume", 2, "--resume continues a run; name its folder with --run");
  check_refused("import bert-base-uncased --out " + w.dir / "x", 2, "nothing is downloaded; fetch the model with");
  check_refused("export " + w.run + " --to onnx --out x", 2, "onnx is not written");
}

TEST_CASE("a verb with verbs of its own names them, and the one that was meant", "[cli]") {
  check_refused("study", 2, "cloze study needs a verb: plan, run, status, report, commands; see cloze study --help");
  check_refused("--quiet inspect", 2, "cloze inspect needs a verb: objective; see cloze inspect --help");
  check_refused("study plna x.yaml", 2, "'plna' is not a verb of cloze study; did you mean 'plan'? its verbs: plan,");
  check_refused("inspect objectiv", 2, "did you mean 'objective'?");
  check_refused("verify rnu --help", 2, "did you mean 'run'? its verbs: parity, data, run; see cloze verify --help");
  check_refused("study plan x.yaml --job 3", 2, "see cloze study plan --help");
  CHECK(cloze("study --help").code == 0);
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
}

TEST_CASE("--verbose prints the values of the config, and what set them", "[cli]") {
  const std::string describe = "describe " SOURCE_DIR "/configs/bert/tiny.yaml --set train.batch_size=7";
  CHECK_THAT(cloze("--verbose " + describe).text,
             Catch::Contains("train.batch_size = 7  (--set") && Catch::Contains("optimizer.beta1 = 0.9  (default)"));
  CHECK(cloze(describe).text.find("optimizer.beta1 = ") == std::string::npos);
}

TEST_CASE("verbs say which checkpoint they took, and a finished run says so when it is resumed", "[cli]") {
  auto& w = world();
  const auto filled = "fill " + w.run + " 'The cat [MASK] on mat'";
  CHECK_THAT(cloze(filled).text, Catch::Contains("step-00000006: the best checkpoint"));
  CHECK_THAT(cloze(filled + " --checkpoint newest").text, Catch::Contains("step-00000006: the newest checkpoint"));
  CHECK_THAT(cloze("evaluate " + w.run).text, Catch::Contains("the best checkpoint"));
  check_refused(filled + " --checkpoint last", 2, "last not in");
  const auto again = cloze("--quiet pretrain --resume --run " + w.run);
  CHECK(again.code == 0);
  CHECK_THAT(again.text, Catch::Contains("had finished at step 6; raise train.budget to train it further") &&
                             Catch::Contains("held-out loss "));
}

TEST_CASE("fill reads lines and <mask>, tokenize takes runs, explain takes the end of a key", "[cli]") {
  auto& w = world();
  const auto given = cloze("--quiet fill " + w.run + " 'The cat [MASK] on mat'").text;
  CHECK(cloze("--quiet fill " + w.run, "printf 'The cat <mask> on mat\\n' | ").text == given);
  CHECK(cloze("--quiet fill " + w.run + " --file " + w.dir.write("blank.txt", "The cat [MASK] on mat\n")).text ==
        given);
  CHECK(given.find("\u2581") == std::string::npos);
  const auto tokens = cloze("tokenize " + w.tokens + "/tokenizer 'the cat'").text;
  CHECK(cloze("tokenize " + w.tokens + " 'the cat'").text == tokens);
  CHECK(cloze("tokenize " + w.run + " 'the cat'").text == tokens);
  const std::string config = SOURCE_DIR "/configs/bert/tiny.yaml";
  CHECK(cloze("explain " + config + " learning_rate").text ==
        cloze("explain " + config + " optimizer.learning_rate").text);
  CHECK_THAT(cloze("explain " + config).text, Catch::Contains("optimizer.beta1 = 0.9  (default)"));
  check_refused("explain " + config + " every", 2, "evaluation.every, checkpoint.every");
  CHECK_THAT(cloze("config --resolved " + config + " --set train.batch_size=7").text,
             Catch::Contains("  batch_size: 7\n"));
}
