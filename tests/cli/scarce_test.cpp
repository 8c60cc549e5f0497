// Threads, memory and /proc that are not to be had.
#include <filesystem>

#include "tests/cli/program.h"

namespace {

/// Runs cloze with settings of tests/acceptance/attack/scarce.cpp.
Answer with_scarce(const std::string& settings, const std::string& arguments) {
  return cloze(arguments, "LD_PRELOAD=" BINARY_DIR "/libscarce.so " + settings + " ");
}

bool has_library() { return std::filesystem::exists(BINARY_DIR "/libscarce.so"); }  // not beside sanitizers

/// A whole answer, or one sentence of an error.
void check_manners(const Answer& answer) {
  CHECK((answer.code == 0 || answer.code == 1));
  for (const std::string sign : {"terminate called", "libgomp", "tcmalloc", "This is a bug", "what():", "frame #"})
    CHECK_THAT(answer.text, !Catch::Contains(sign));
  if (answer.code == 1) CHECK_THAT(answer.text, Catch::Contains("cloze: error: "));
}

}  // namespace

TEST_CASE("without /proc the program works", "[cli][scarce]") {
  if (!has_library()) return;
  const auto& w = world();
  CHECK(with_scarce("SCARCE_PROC=1", "--version").text == cloze("--version").text);
  const auto evaluated = with_scarce("SCARCE_PROC=1", "evaluate " + w.run);
  INFO(evaluated.text);
  CHECK(evaluated.code == 0);
  const auto run = w.dir / "no-proc";
  const auto trained = with_scarce("SCARCE_PROC=1", "pretrain " + w.config() + " --run " + run);
  INFO(trained.text);
  CHECK(trained.code == 0);
}

TEST_CASE("an engine for which there is no memory is not called badly built", "[cli][scarce]") {
  if (!has_library()) return;
  const auto answer = cloze("evaluate " + world().run, "ulimit -v 200000; ");
  CHECK(answer.code == 1);
  CHECK_THAT(answer.text, Catch::Contains("); give this process more memory (ulimit -v)"));
}

TEST_CASE("wherever memory ends, inside of a library too, there is a sentence", "[cli][scarce]") {
  if (!has_library()) return;
  const auto& w = world();
  const std::string line = "The cat sat.\tx\nA dog barked.\ty\n";
  for (const std::string part : {"train", "test"})
    w.dir.write("scarce-" + part + ".tsv", "text\tlabel\n" + line + line);
  const auto tuned = w.dir / "scarce-tuned",
             task = w.dir.write("scarce.yaml",
                                "task: scarce\nkind: classification\ndata: {train: scarce-train.tsv, valid: "
                                "scarce-train.tsv, test: scarce-test.tsv, text: text, label: label}\n");
  REQUIRE(
      cloze("finetune " + w.run + " " + task + " --like google-bert --set train.budget.steps=1 --run " + tuned).code ==
      0);
  const auto check = [](const std::string& run, int from, int to) {
    for (int megabytes = from; megabytes <= to; megabytes += 4) {
      const auto answer = cloze("evaluate " + run, "ulimit -v " + std::to_string(megabytes << 10) + "; ");
      INFO(megabytes << " MiB: " << answer.text);
      check_manners(answer);
    }
  };
  check(w.run, 404, 428);
  check(tuned, 422, 454);  // where the test part is judged
}

TEST_CASE("a stack on which the program would end without a word is an error with what helps", "[cli][scarce]") {
  if (!has_library()) return;
  const auto short_stack = cloze("evaluate " + world().run, "ulimit -s 64; ");
  CHECK(short_stack.code == 1);
  CHECK_THAT(short_stack.text, Catch::Contains("cloze: error: the system gives this process a stack of 64 kB, and it "
                                               "needs 256; raise the limit, as with `ulimit -s 8192`"));
  CHECK(cloze("--version", "ulimit -s 64; ").code == 0);
  CHECK(cloze("evaluate " + world().run, "ulimit -s 256; ").code == 0);
}

TEST_CASE("threads and processes that the system does not start are an error with what helps", "[cli][scarce]") {
  if (!has_library()) return;
  const auto& w = world();
  for (const int threads : {0, 1, 2, 3, 4, 6}) {
    const auto setting = "SCARCE_THREADS=" + std::to_string(threads), out = w.dir / ("few-" + std::to_string(threads));
    for (const std::string& command :
         {"prepare " + w.dir / "text.txt" + " --vocab-size 80 --held-out 0.2 --threads 3 --out " + out + "-tokens",
          "pretrain " + w.config() + " --set train.threads=2 --set train.workers=2 --run " + out,
          "evaluate " + w.run}) {
      const auto answer = with_scarce(setting, command);
      INFO(setting << " " << command << "\n" << answer.text);
      check_manners(answer);
      if (answer.code == 1) CHECK_THAT(answer.text, Catch::Contains("ulimit -u"));
      if (threads == 0 && !command.starts_with("evaluate")) CHECK(answer.code == 1);
      const bool has_failed = command.starts_with("prepare") && answer.code != 0;  // fewer start where they end soon
      for (const std::string suffix : {"-tokens", "-tokens.partial"})
        CHECK((!has_failed || !std::filesystem::exists(out + suffix)));
    }
  }
}

TEST_CASE("memory that ends anywhere ends the program with a sentence", "[cli][scarce]") {
  if (!has_library()) return;
  const auto& w = world();
  for (const std::string lasts : {"", " SCARCE_LASTS=1"})
    for (const std::string& command :
         {std::string("--version"), std::string("config --markdown"), "tokenize " + w.tokens + "/tokenizer 'a cat'"})
      for (const int number : {1, 40, 1000, 5000, 7000, 9000, 20000}) {
        const auto setting = "SCARCE_MEMORY=" + std::to_string(number) + lasts;
        const auto answer = with_scarce(setting, command);
        INFO(setting << " " << command << "\n" << answer.text);
        check_manners(answer);
      }
}
