#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

TEST_CASE("a path of any length is refused in a short sentence", "[cli]") {
  const std::string path(100'000, 'x');
  for (const auto& verb : {"prepare " + path + " --out out", "tokenize " + path + " x", "verify data " + path}) {
    const auto answer = cloze(verb);
    CHECK(answer.code == 1);
    CHECK_THAT(answer.text, Catch::Contains("File name too long"));
    CHECK(answer.text.size() < 1000);
  }
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

TEST_CASE("output that cannot be written is an error", "[cli]") {
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

TEST_CASE("a folder that cannot be created is a sentence", "[cli]") {
  TempDir dir;
  dir.write("file", "x");
  dir.write("s.yaml", "study: s\nbase: " SOURCE_DIR
                      "/configs/bert/tiny.yaml\nbudget: {steps: 2}\npoints: 1\n"
                      "arms: {a: {}, b: {optimizer.weight_decay: 0.1}}\nset: {data.tokens: " +
                          world().tokens + "}\n");
  check_refused("study run " + dir / "s.yaml" + " --out " + dir / "file/study", 1, "Not a directory");
}

TEST_CASE("a verb with nothing to save ends at the first signal", "[cli]") {
  const auto endless = "inspect objective " + world().config() + " --sequences 1000000000";
  for (const auto& [signal, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
    INFO(signal);
    CHECK(cloze(endless, "timeout --preserve-status -k 30 -s " + std::string(signal) + " 3 ").code == code);
  }
  // Also while it waits for its input.
  const TempDir dir, pipe;
  const auto waits = cloze("evaluate " + world().run + " --text -", "export TMPDIR=" + dir.path.string() + "; mkfifo " +
                                                                        pipe / "in" + " && exec 0<>" + pipe / "in" +
                                                                        " && timeout --preserve-status -s TERM 2 ");
  CHECK(waits.code == 143);
  CHECK(fs::is_empty(dir.path));  // of temporary folders
}

TEST_CASE("a current folder that was removed is reported", "[cli]") {
  TempDir dir;
  fs::create_directory(dir / "gone");
  const auto config = SOURCE_DIR "/configs/bert/tiny.yaml";
  const auto answer = cloze(std::string("describe ") + config, "cd " + dir / "gone" + " && rmdir ../gone; ");
  CHECK(answer.code == 2);
  CHECK_THAT(answer.text, Catch::Contains("cloze: error: the current folder cannot be used"));
}

TEST_CASE("a verb that saves says at the first signal that it heard it, and what a second one does", "[cli]") {
  TempDir dir;
  const auto endless = "pretrain " + world().config() + " --set train.budget.steps=1000000 --run " + dir / "run";
  const auto answer = cloze(endless, "timeout --preserve-status -k 60 -s INT 3 ");
  INFO(answer.text);
  CHECK(answer.code == 130);
  CHECK_THAT(answer.text, Catch::Contains("saving, then stopping; a second Ctrl-C ends without saving\n") &&
                              Catch::Contains("cloze: stopped at step "));
}

TEST_CASE("a signal removes the folder that a verb was filling, and all in it", "[cli]") {
  const auto& w = world();
  TempDir dir;
  std::string pairs;
  for (int i = 0; i < 200'000; ++i)
    pairs += R"({"sentence_good": "The cat number )" + std::to_string(i) +
             R"( sat.", "sentence_bad": "The cat sit."})"
             "\n";
  const auto suite = dir.write("pairs.jsonl", pairs);
  const auto evaluate = "evaluate " + w.run + " --suite " + suite + " --out " + dir / "results";
  for (const auto& [signal, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}, std::pair{"HUP", 129}}) {
    INFO(signal);
    const auto stopped = "timeout --preserve-status -k 60 -s " + std::string(signal) + " 5 ";
    CHECK(cloze(evaluate, stopped).code == code);
    CHECK(std::distance(fs::directory_iterator(dir.path), fs::directory_iterator{}) == 1);
  }
}

TEST_CASE("a message does not repeat a value of any length", "[cli]") {
  const auto& w = world();
  TempDir dir;
  const std::string value(100'000, 'b');
  dir.write("long.yaml", "model: {kind: " + value + "}\n");
  for (const auto& arguments : {"describe " + dir / "long.yaml", "describe " + value, value, "evaluate " + value,
                                "describe " SOURCE_DIR "/configs/bert/tiny.yaml --set model.hidden_act=" + value,
                                "prepare x --format " + value + " --out y", "fill " + w.run + " " + value}) {
    const auto answer = cloze(arguments);
    INFO(arguments.substr(0, 100) << "\n" << answer.text.substr(0, 2000));
    CHECK(answer.code > 0);
    CHECK(answer.text.size() < 1500);
    CHECK_THAT(answer.text, Catch::Contains("bbb..."));
  }
}

TEST_CASE("a failed prepare names standard input, and leaves no folder without work", "[cli]") {
  TempDir dir;
  const auto out = " --vocab-size 60 --out " + dir / "out";
  const auto refused = [&](const std::string& text, const std::string& options, const std::string& sentence) {
    const auto answer = cloze("prepare - " + options + out, "printf '" + text + "' | ");
    INFO(answer.text);
    CHECK(answer.code == 1);
    CHECK_THAT(answer.text, Catch::Contains("error: standard input" + sentence));
    CHECK(fs::is_empty(dir.path));
  };
  refused("", "", ": has no text");
  refused("a\\0b", "", ":1: a NUL byte: the file looks binary");
  refused("{\"tex\": \"a\"}\\n", "--format jsonl", ":1: has no key ");
  refused("%%PDF-1.7\\n", "", ": is a PDF; extract its text in the pipe: ... | pdftotext - - | ...");
  check_refused("prepare " + world().dir / "text.txt" + " --tokenizer " + dir.path.string() + " --out " + dir / "out",
                1, "has no tokenizer");
  CHECK(fs::is_empty(dir.path));
}

TEST_CASE("invalid UTF-8 of standard input is named with its line, and converted in the pipe", "[cli]") {
  TempDir dir;
  const auto answer = cloze("prepare - --vocab-size 40 --held-out 0 --out " + dir / "out",
                            "printf 'the cat sat\\non the mat \\351\\n' | ");
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK_THAT(answer.text,
             Catch::Contains("1 invalid UTF-8 sequence was replaced by U+FFFD, in standard input:2; if the "
                             "text has another encoding, name it (--encoding latin1), or have such lines refused "
                             "with --invalid-utf8 refuse"));
}

TEST_CASE("a verb that waits for its input ends at the first signal, and leaves nothing", "[cli]") {
  const auto& w = world();
  const auto unread =
      cloze("tokenize " + w.tokens + "/tokenizer", "sleep 4 | timeout --foreground --preserve-status -s TERM 1 ");
  CHECK(unread.code == 128 + 15);
  CHECK_THAT(unread.text, Catch::Contains("stopped before the end of standard input"));
  const auto unspooled =
      cloze("prepare - --out " + w.dir / "unspooled", "sleep 4 | timeout --foreground --preserve-status -s TERM 1 ");
  CHECK(unspooled.code == 130);
  CHECK_THAT(unspooled.text, Catch::Contains("stopped before the end of standard input"));
  check_refused("prepare - --out " + w.dir / "unspooled" + " < /", 1, "standard input: cannot be read (");
  check_refused("prepare - --valid - --out " + w.dir / "unspooled" + " < " + w.dir / "text.txt", 2,
                "standard input: is named twice, but can be read only once; name a file");
  CHECK_FALSE(fs::exists(w.dir / "unspooled.partial"));
  // Its reader is late, so that the signal comes while it waits to write.
  cloze("tokenize " + w.tokens + "/tokenizer; echo $? > " + w.dir / "code" + "; } | { sleep 2; cat; } > /dev/null",
        "yes word | { timeout --foreground --preserve-status -s HUP 1 ");
  CHECK(read_file(w.dir / "code") == "129\n");
}
