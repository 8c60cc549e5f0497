#include <sys/stat.h>

#include <filesystem>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

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
  // Runs without a common objective, each of which has a head that the other lacks.
  const auto causal = w.dir / "causal";
  REQUIRE(
      cloze("pretrain gpt2/tiny --set data.tokens=" + w.tokens + " --set train.budget.steps=1 --run " + causal).code ==
      0);
  check_refused("evaluate " + w.run + " " + causal, 2,
                w.run + " is scored by mlm, nsp, " + causal +
                    " by clm; evaluate each by itself, or both by one that "
                    "they have a head for, with --objective");
  const auto other_seed = json_of(cloze("evaluate " + w.run + " --set evaluation.seed=9 --json"));
  CHECK(other_seed["unigram"] != both["runs"][0]["unigram"]);
  check_refused(
      "evaluate " + w.run + " --set train.seed=9", 2,
      "--set train.seed=9: evaluate accepts keys of `evaluation` only; did you mean --set evaluation.seed=9?");
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

TEST_CASE("every checkpoint of a run is scored on the same text with the same masks", "[cli]") {
  auto& w = world();
  const auto run = w.dir / "of-checkpoints";
  REQUIRE(cloze("pretrain " + w.config() + " --set checkpoint.every=2 --set checkpoint.keep=3 --run " + run).code == 0);
  const auto all = json_of(cloze("evaluate " + run + " --all-checkpoints --json"));
  REQUIRE(all["runs"].size() == 3);
  for (const std::string step : {"2", "4", "6"}) {
    const auto folder = run + "/step-0000000" + step;
    const auto& one = all["runs"][std::stoul(step) / 2 - 1];
    CHECK(one["checkpoint"] == folder);
    CHECK(one["held_out"] == json_of(cloze("evaluate " + folder + " --json"))["held_out"]);
  }
  const auto table = cloze("evaluate " + run + " --all-checkpoints").text;
  CHECK_THAT(table, Catch::Contains(run + "/step-00000004") && Catch::Contains("vs. first") &&
                        Catch::Contains("with the same masks"));
  check_refused("evaluate " + run + "/step-00000004 --all-checkpoints", 2, "name the run, not one of its steps");
  check_refused("evaluate " + run + " --all-checkpoints --checkpoint best", 2, "exclude each other");
}

TEST_CASE("checkpoints that a run removes while all of them are scored are left out", "[cli]") {
  auto& w = world();
  const auto run = w.dir / "removing", pipe = w.dir / "removing.txt";
  fs::copy(w.run, run, fs::copy_options::recursive);
  const auto first = run + "/step-00000006", removed = run + "/step-00000010", last = run + "/step-00000011";
  for (const auto& step : {removed, last}) fs::copy(first, step, fs::copy_options::recursive);
  // The text is waited for when all checkpoints are found and only the weights of the first are read.
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const auto text = "({ rm -r " + removed + "; cat " + w.dir / "text.txt" + "; } > " + pipe + ") > /dev/null 2>&1 & ";
  const auto answer = cloze("evaluate " + run + " --text " + pipe + " --all-checkpoints --json", text);
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains(removed + ": the run has removed it meanwhile; it is left out"));
  const auto scored = json_of(answer)["runs"];
  REQUIRE(scored.size() == 2);
  CHECK(scored[0]["checkpoint"] == first);
  CHECK(scored[1]["checkpoint"] == last);
  CHECK(scored[1]["held_out"] == scored[0]["held_out"]);  // a copy
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
  CHECK(left == 1);                                                                      // what was there before
  const auto killed = scratch + "/cloze-" + std::to_string(geteuid()) + ".tmp-4194303";  // of a process that has ended
  fs::create_directories(killed + "/tokens-0");
  CHECK(cloze("evaluate " + w.run + " --text " + w.dir / "text.txt", "export TMPDIR=" + scratch + "; exec ").code == 0);
  CHECK_FALSE(fs::exists(killed));

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
                "nothing.txt: has no text that can be seen");
  w.dir.write("own.jsonl", "{\"body\": \"The cat sat.\"}\n{\"body\": \"It woke and slept.\"}\n");
  check_refused("evaluate " + w.run + " --text " + w.dir / "own.jsonl", 1, "name the key of the text with --field");
  CHECK(cloze("evaluate " + w.run + " --field body --text " + w.dir / "own.jsonl").code == 0);
}

TEST_CASE("a loss has the same bits in every process, whatever its threads compute first", "[cli]") {
  auto& w = world();
  const auto losses = [&] { return json_of(cloze("evaluate " + w.run + " --json"))["held_out"]; };
  const auto once = losses();
  for (int process = 0; process < 12; ++process) CHECK(losses() == once);
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

TEST_CASE("the held-out loss of a source is that of its text alone, and those of all make up the whole", "[cli]") {
  TempDir dir;
  const auto text = [&](const std::string& name, const std::string& animal, int documents) {
    std::string all;
    for (int d = 0; d < documents; ++d) {
      for (int s = 0; s < 4; ++s) all += "The " + animal + " number " + std::to_string(d * 7 % 11) + " slept well.\n";
      all += "\n";
    }
    return dir.write(name, all);
  };
  const auto train = text("en.txt", "cat", 40) + " " + text("de.txt", "Katze", 40);
  const auto held_out = text("v/en.txt", "cat", 5) + " " + text("v/de.txt", "Katze", 7);
  const auto tokens = dir / "tokens", run = dir / "run", other = dir / "other";
  const auto prepared =
      cloze("prepare " + train + " --valid " + held_out + " --for gpt2 --vocab-size 300 --out " + tokens);
  INFO(prepared.text);
  REQUIRE(prepared.code == 0);
  CHECK_THAT(prepared.text, Catch::Contains("documents held out: 5 of en.txt, 7 of de.txt"));
  const auto config = std::string(SOURCE_DIR "/configs/gpt2/tiny.yaml --set data.tokens=") + tokens +
                      " --set model.hidden_size=32 --set train.budget.steps=6 --set train.batch_size=4 --run ";
  REQUIRE(cloze("pretrain " + config + run).code == 0);
  REQUIRE(cloze("pretrain " + config + other + " --set train.seed=2").code == 0);
  const auto whole = json_of(cloze("evaluate " + run + " --json"))["held_out"]["clm"];
  double sum = 0;
  int64_t predictions = 0;
  for (const std::string source : {"en.txt", "de.txt"}) {
    INFO(source);
    const auto part = whole["sources"][source];
    const auto alone = json_of(cloze("evaluate " + run + " --json --text " + dir / "v/" + source))["held_out"]["clm"];
    CHECK(part["loss"].get<double>() == Approx(alone["loss"].get<double>()).epsilon(1e-5));
    CHECK(part["bits_per_byte"].get<double>() == Approx(alone["bits_per_byte"].get<double>()).epsilon(1e-5));
    CHECK(part["count"] == alone["count"]);
    CHECK(part["documents"] == (source == "en.txt" ? 5 : 7));
    CHECK_FALSE(alone.contains("sources"));
    sum += part["loss"].get<double>() * part["count"].get<double>();
    predictions += part["count"].get<int64_t>();
  }
  CHECK(predictions == whole["count"]);
  CHECK(sum / static_cast<double>(predictions) == Approx(whole["loss"].get<double>()).epsilon(1e-12));
  const auto on_text = json_of(cloze("evaluate " + run + " --json --text " + held_out))["held_out"]["clm"];
  CHECK(on_text["sources"] == whole["sources"]);
  CHECK(nlohmann::json::parse(read_file(run + "/held_out.json"))["sources"].size() == 2);
  const auto both = json_of(cloze("evaluate " + run + " " + other + " --json"))["runs"];
  const auto gaps = both[1]["minus_first"]["clm"]["sources"];
  for (const std::string source : {"en.txt", "de.txt"}) {
    const auto loss = [&](int r) { return both[r]["held_out"]["clm"]["sources"][source]["loss"].get<double>(); };
    CHECK(gaps[source]["mean"].get<double>() == Approx(loss(1) - loss(0)).margin(1e-9));
  }
  const auto long_names =
      text("v/of_a_folder_with_a_long_name/en.txt", "cat", 3) + " " + text("v/German.txt", "Hund", 3);
  const auto cut = cloze("evaluate " + run + " --text " + long_names).text;
  CHECK_THAT(cut, Catch::Contains("  …_folder_with_a_long_name/en.txt  ") && Catch::Contains("  German.txt  "));
  CHECK_THAT(cloze("evaluate " + run + " " + other).text, Catch::Contains("    en.txt") &&
                                                              Catch::Contains("    de.txt") &&
                                                              Catch::Contains("  documents  bits/byte  "));
}
