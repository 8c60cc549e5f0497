#include <filesystem>
#include <sstream>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

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
  const auto page = w.dir / "rows.html", clm = std::string(SOURCE_DIR "/configs/gpt2/tiny.yaml");
  const auto both = cloze("inspect objective " + clm + " " + w.config() + " --sequences 100 --page " + page);
  CHECK(both.code == 0);
  CHECK_THAT(both.text, Catch::Contains("labels that are not the next token") &&
                            Catch::Contains("split into mask, random, keep") && Catch::Contains("2 configs -> "));
  CHECK_THAT(read_file(page),
             Catch::Contains("<h1>Rows of clm, mlm and nsp</h1>") && Catch::Contains("<h2>Row 3</h2>"));
  check_refused("inspect objective " + clm + " " + w.config() + " --json --page " + page, 2, "--json is of one config");
  check_refused("inspect objective " + w.config() + " --page " + w.dir / "none/rows.html", 2, "there is no folder");
  // What cannot be drawn is said before anything is read.
  check_refused("inspect objective " + clm + " --set data.tokens=" + w.tokens + " --sequences 1000000000 --picture " +
                    w.dir / "none.svg",
                2, "this objective has no spans, so there are no lengths to plot; leave --picture out");
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

TEST_CASE("a step folder is opened with the slash at its end that Tab writes", "[cli]") {
  auto& w = world();
  const auto step = w.run + "/step-00000006/";
  CHECK(cloze("fill " + step + " 'The cat [MASK] on mat'").code == 0);
  CHECK(cloze("evaluate " + step).code == 0);
  CHECK(cloze("export " + step + " --to huggingface --out " + w.dir / "of-step").code == 0);
  const auto begun = cloze("pretrain " + w.config() + " --set init.from=" + step + " --run " + w.dir / "from-step");
  INFO(begun.text);
  CHECK(begun.code == 0);
}

TEST_CASE("a step folder is opened by links of any name, and as the working folder", "[cli]") {
  auto& w = world();
  const auto pairs =
      w.dir.write("linked.jsonl", R"({"sentence_good": "The cat sat", "sentence_bad": "The cat the", "UID": "order"})");
  w.dir.write("other/run.yaml", "model: {kind: gpt2}\n");  // a folder that has another run
  const auto inside = "cd " + w.run + "/step-00000006 && ";
  std::vector<std::pair<std::string, std::string>> ways{{".", inside}};
  for (const std::string name : {"linked", "step-00000006", "step-00000012", "other/linked"}) {
    fs::create_directory_symlink(fs::absolute(w.run + "/step-00000006"), w.dir / name);
    ways.emplace_back(w.dir / name, "");
  }
  int number = 0;
  for (const auto& [step, prefix] : ways) {
    INFO(step);
    CHECK(cloze("fill " + step + " 'The cat [MASK] on mat'", prefix).code == 0);
    CHECK(cloze("evaluate " + step + " --suite " + pairs, prefix).code == 0);
    const auto branched = cloze("pretrain --branch-from " + step + " --set schedule.shape=constant --run " +
                                    w.dir / "branch-of-link" + std::to_string(number++),
                                prefix);
    INFO(branched.text);
    CHECK_THAT(branched.text, Catch::Contains("/run/step-00000006: has used up the budget of the branch"));
  }
}

TEST_CASE("verbs say which checkpoint they took, and a finished run says so when it is resumed", "[cli]") {
  auto& w = world();
  const auto filled = "fill " + w.run + " 'The cat [MASK] on mat'";
  CHECK_THAT(cloze(filled).text, Catch::Contains("step-00000006: the best checkpoint"));
  CHECK_THAT(cloze(filled + " --checkpoint newest").text, Catch::Contains("step-00000006: the newest checkpoint"));
  CHECK_THAT(cloze("evaluate " + w.run).text, Catch::Contains("the best checkpoint"));
  const auto again = cloze("--quiet pretrain --resume --run " + w.run);
  CHECK(again.code == 0);
  CHECK_THAT(again.text, Catch::Contains("had finished at step 6; raise train.budget to train it further") &&
                             Catch::Contains("held-out loss "));
}

TEST_CASE("the columns of tokenize stand below one another, also after a token that has more bytes than characters",
          "[cli]") {
  const auto text = cloze("tokenize " + world().tokens + "/tokenizer 'the cat'").text;
  REQUIRE_THAT(text, Catch::Contains("\u2581"));  // SentencePiece's space
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    const auto range = line.find("..");
    if (range != std::string::npos) CHECK(characters(line.substr(0, range)) == 36);  // their first bytes have one digit
  }
}

TEST_CASE("fill marks the words that it fills in, and lists the candidates below", "[cli]") {
  const auto filled = cloze("--quiet fill " + world().run + " 'The cat [MASK] on [MASK] 3' --top 2");
  CHECK(filled.code == 0);
  CHECK_THAT(filled.text,
             Catch::Matches(R"(The cat ?\[[^\]]*\] on ?\[[^\]]*\] 3\n  1: \S+ [0-9.]+%  .*\n  2: \S+ [0-9.]+%  .*\n)"));
}

TEST_CASE("fill reads lines and <mask>, tokenize takes runs, explain takes the end of a key", "[cli]") {
  auto& w = world();
  const auto given = cloze("--quiet fill " + w.run + " 'The cat [MASK] on mat'").text;
  CHECK(cloze("--quiet fill " + w.run, "printf 'The cat <mask> on mat\\n' | ").text == given);
  CHECK(cloze("--quiet fill " + w.run + " --file " + w.dir.write("blank.txt", "The cat [MASK] on mat\n")).text ==
        given);
  CHECK(given.find("\u2581") == std::string::npos);
  std::string words;
  for (int i = 0; i < 600; ++i) words += "cat ";
  const auto file = w.dir.write("long-blank.txt", "The cat [MASK] on mat\n\n" + words + "[MASK]\n");
  check_refused("fill " + w.run + " --file " + file, 2,
                file + ":3: the text has 2403 tokens, the model reads at most ");
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

TEST_CASE("control characters of texts and names are shown as escapes, and JSON keeps them", "[cli]") {
  auto& w = world();
  const std::string title = "\\033]0;owned\\007\\033[2J", text = "\"$(printf 'The cat " + title + " [MASK]')\"";
  for (const auto& verb :
       {"tokenize " + w.tokens + "/tokenizer ", "fill " + w.run + " ", "--quiet fill " + w.run + " "}) {
    const auto answer = cloze(verb + text);
    INFO(answer.text);
    CHECK(answer.code == 0);
    CHECK(answer.text.find('\033') == std::string::npos);
    CHECK(answer.text.find('\007') == std::string::npos);
    CHECK_THAT(answer.text, Catch::Contains("\\x1b"));
  }
  CHECK(json_of(cloze("tokenize --json " + w.tokens + "/tokenizer " + text))["text"] ==
        "The cat \033]0;owned\007\033[2J [MASK]");
  const auto name = w.dir / "\033[2Jout";
  const auto prepared = cloze("prepare " + w.dir / "text.txt" + " --vocab-size 80 --out '" + name + "'");
  INFO(prepared.text);
  CHECK(prepared.code == 0);
  CHECK(prepared.text.find('\033') == std::string::npos);
}

TEST_CASE("names that are not UTF-8 are names like others", "[cli]") {
  auto& w = world();
  const std::string cafe = "caf\xe9";
  fs::copy_file(w.dir / "text.txt", w.dir / (cafe + ".txt"));
  const auto prepare = "prepare '" + w.dir / (cafe + ".txt") + "' --vocab-size 80 --held-out 0.2 --out '" +
                       w.dir / ("tokens-" + cafe) + "'";
  CHECK(json_of(cloze(prepare + " --json"))["reused"] == false);
  CHECK(json_of(cloze(prepare + " --json"))["reused"] == true);
  const auto run = "'" + w.dir / ("run-" + cafe) + "'";
  const auto trained =
      cloze("pretrain " + w.config() + " --set data.tokens='" + w.dir / ("tokens-" + cafe) + "' --run " + run);
  INFO(trained.text);
  CHECK(trained.code == 0);
  CHECK(cloze("verify run " + run).code == 0);
  CHECK(json_of(cloze("evaluate " + run + " --json")).contains("held_out"));
  for (const auto* to : {"huggingface --out ", "torchscript --out "})
    CHECK(json_of(cloze("export " + run + " --json --to " + to + "'" + w.dir / ("out-" + cafe) + to[0] + "'"))
              .contains("out"));
}

TEST_CASE("a hook is an option or a variable of the process, and a resume says what it changes", "[cli]") {
  auto& w = world();
  const auto run = w.dir / "hooked", events = w.dir / "events";
  CHECK(cloze("pretrain " + w.config() + " --run " + run, "CLOZE_HOOK='cat >> " + events + "' ").code == 0);
  CHECK_THAT(read_file(events), Catch::Contains("\"event\":\"started\"") && Catch::Contains("\"event\":\"finished\""));
  fs::remove(events);
  const auto resumed =
      cloze("pretrain --run " + run + " --resume --allow-config-change --set optimizer.learning_rate=1e-9" +
            " --set train.budget.steps=8 --hook 'cat >> " + events + "'");
  INFO(resumed.text);
  CHECK(resumed.code == 0);
  CHECK_THAT(resumed.text, Catch::Contains("resumed at step 6 with optimizer.learning_rate 1e-09 (was ") &&
                               Catch::Contains("; reports hold it apart from runs that never changed"));
  CHECK_THAT(read_file(events), Catch::Contains("\"resumed\":true"));
  fs::remove(events);
  CHECK(cloze("pretrain --run " + run + " --resume").code == 0);
  CHECK_FALSE(fs::exists(events));  // nothing of the run names a command
}

TEST_CASE("CLOZE_ISA holds a process to a lower instruction set, and what the processor lacks is refused", "[cli]") {
  auto& w = world();
  const auto run = w.dir / "portable";
#if defined(__aarch64__)
  const std::string base = "neon";
#else
  const std::string base = "portable";
#endif
  const auto lowest = "CLOZE_ISA=" + base + " ";
  const auto trained = cloze("pretrain " + w.config() + " --run " + run, lowest);
  INFO(trained.text);
  CHECK(trained.code == 0);
  CHECK(nlohmann::json::parse(read_file(run + "/provenance.json"))["machine"]["isa"] == base);
  CHECK_THAT(cloze("describe " + w.config(), lowest).text,
             Catch::Contains(", kernels of " + base + "; bf16 computed in fp32"));
  const auto refused = cloze("describe " + w.config(), "CLOZE_ISA=vax ");
  CHECK(refused.code == 2);
  CHECK_THAT(refused.text,
             Catch::Contains("CLOZE_ISA=vax: is no instruction set of this processor; name one of " + base + ", avx2"));
}

TEST_CASE("CLOZE_PLAIN holds a process to plain operators", "[cli]") {
  const auto steps = "benchmark " + world().config() + " --steps 1 --steps-only";
  CHECK_THAT(cloze(steps, "CLOZE_PLAIN=1 ").text, Catch::Contains("plain operators"));
  CHECK_THAT(cloze(steps).text, !Catch::Contains("plain operators"));
}
