// What `prepare` says on a terminal, and asks of its options.
#include <filesystem>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

TEST_CASE("one of a thing is counted in the singular", "[cli]") {
  TempDir dir;
  const auto text = dir.write("a.txt", "The cat sat on the mat.\nThen it slept.\n\nA dog barked at the moon.\n\xFF\n");
  const auto answer = cloze("prepare " + text + " --vocab-size 40 --held-out 0.4 --out " + dir / "out");
  INFO(answer.text);
  REQUIRE(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains(": created, 1 document, ") && Catch::Contains("; held out: 1 document, "));
  CHECK_THAT(answer.text, Catch::Contains("1 invalid UTF-8 sequence was replaced by U+FFFD"));
  CHECK_THAT(cloze("prepare --help").text,
             Catch::Contains("--character-coverage") && !Catch::Contains("suits alphabets"));
}

TEST_CASE("on a terminal, nothing is left of a progress that was over at once", "[cli]") {
  constexpr int has_no_script = 77;
  TempDir dir;
  const auto text = dir.write("a.txt", "The cat sat on the mat.\nThen it slept.\n");
  const auto answer =
      cloze("prepare " + text + " --vocab-size 40 --held-out 0 --out " + dir / "out" + "' /dev/null < /dev/null",
            "command -v script > /dev/null || exit 77; exec script -qec '");
  if (answer.code == has_no_script) return;
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK_THAT(answer.text, Catch::Contains(": created,") && !Catch::Contains("noting what the files hold"));
}

TEST_CASE("the tokenizer that is trained is that of the model that the text is for", "[cli]") {
  TempDir dir;
  const auto text = dir.write("a.txt", "The cat sat on the mat.\nThen it slept.\n\nA dog barked at the moon.\n");
  for (const auto& [model, kind] : {std::pair{"roberta", "byte_bpe"},
                                    {"modernbert", "byte_bpe"},
                                    {"distilbert", "wordpiece"},
                                    {"bert/tiny", "wordpiece"},  // a config that ships
                                    {"xlm_roberta", "unigram"}}) {
    const auto out = dir / model;
    const auto size = std::string(kind) == "byte_bpe" ? " --vocab-size 300" : " --vocab-size 40";
    const auto answer = cloze("prepare " + text + " --for " + model + size + " --held-out 0 --out " + out);
    INFO(answer.text);
    REQUIRE(answer.code == 0);
    CHECK_THAT(answer.text, Catch::Contains(std::string("training a ") + kind + " tokenizer"));
  }
  check_refused("prepare " + text + " --for robert --out " + dir / "x", 2, "did you mean 'roberta'?");
  check_refused("prepare " + text + " --for bert --train bpe --out " + dir / "x", 2,
                "--for and --train both choose the kind of tokenizer to train; leave one of them out");
  check_refused("prepare " + text + " --for bert --tokenizer " + dir / "roberta" + " --out " + dir / "x", 2,
                "--for applies only to a tokenizer that is trained");
}

TEST_CASE("a training says that the vocabularies of its model are of another kind than its tokens", "[cli]") {
  World world;
  const std::string of_another = "the published vocabularies of bert are wordpiece, that of the tokens is unigram";
  CHECK_THAT(read_file(world.run + "/log.txt"), Catch::Contains(of_another + "; cloze prepare --for bert trains"));
  world.tokens = world.dir / "own";
  const auto prepared =
      cloze("prepare " + world.dir / "text.txt" + " --for bert --vocab-size 80 --held-out 0.2 --out " + world.tokens);
  REQUIRE(prepared.code == 0);
  const auto trained = cloze("pretrain " + world.config() + " --run " + world.dir / "other");
  INFO(trained.text);
  CHECK(trained.code == 0);
  CHECK_THAT(trained.text, !Catch::Contains("published vocabularies"));
}

TEST_CASE("a folder of datasets is no checkpoint of a run, whatever files it has", "[cli]") {
  TempDir dir;
  const auto state = "{\"_data_files\": [{\"filename\": \"data.arrow\"}], \"_split\": null}";
  dir.write("set/data.arrow", "");
  dir.write("set/state.json", state);
  const auto set = dir / "set";
  check_refused("evaluate " + set, 1, set + ": is not a run directory");
  check_refused("verify run " + set, 1, "not a run");
  const auto answer = cloze("prepare " + set + " --out " + dir / "tokens");
  CHECK(answer.code == 1);
  CHECK_THAT(answer.text, !Catch::Contains("is a run"));
  const auto from = cloze("pretrain " SOURCE_DIR "/configs/bert/tiny.yaml --set init.from=" + set +
                          " --set data.tokens=" + World().tokens + " --run " + dir / "new");
  INFO(from.text);
  CHECK(from.code == 1);
  CHECK_THAT(from.text, Catch::Contains(set + ": is not a run directory"));
}

TEST_CASE("a program without the module of Arrow refuses its tables with the command that adds it", "[cli]") {
  TempDir dir;
  const auto alone = dir / "cloze";
  fs::copy_file(BINARY_DIR "/cloze", alone);
  for (const auto& [name, kind] : {std::pair{"all.parquet", "a Parquet"}, {"all.arrow", "an Arrow"}}) {
    const auto table = std::string(SOURCE_DIR "/tests/data/columns/") + name;
    const auto answer = cloze("", alone + " prepare " + table + " --out " + dir / "out" + " 2>&1; exit; ");
    INFO(answer.text);
    CHECK(answer.code == 1);
    CHECK_THAT(answer.text, Catch::Contains(table + ": is " + kind +
                                            " table, and this Cloze was built without Arrow, which reads it; build it "
                                            "with ./add-arrow, or write its text as JSON lines ("));
  }
}
