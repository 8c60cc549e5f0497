#include <filesystem>
#include <fstream>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

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
                "a vocabulary of 17 pieces is too small for this text, whose special tokens and characters are ");
  check_refused("fill " + w.run + " --tpo 3 '[MASK]'", 2, "did you mean '--top'?");
  CHECK(cloze("fill " + w.run + " '[MASK] sat on [MASK]'").code == 0);
  check_refused("pretrain " + w.config() + " --run " + w.run, 2,
                "exists; continue it with --resume, or name another folder with --run");
  check_refused("pretrain " + w.config() + " --set data.tokens=" + w.dir / "none" + " --run " + w.dir / "x", 1,
                "none: no such folder; create it with `cloze prepare`");
  check_refused("pretrain " + w.config() + " --set model.vocab_size=7 --run " + w.dir / "x", 2,
                "raise it, or leave it out");
  check_refused("pretrain " + w.config() + " --set model.num_attention_heads=5 --run " + w.dir / "x", 2,
                "choose a width that is divisible by the number of heads");
  check_refused("pretrain " + w.config() + " --set data.max_seq_length=999 --run " + w.dir / "x", 2,
                "is longer than model.max_position_embeddings");
  check_refused("pretrain " + w.config() + " --run /proc/none", 1, "/proc/none: cannot be created");
  check_refused("generate " + w.run + " 'The cat'", 2, "was not trained to generate text; train it with clm");
  check_refused("generate " + w.run + " 'The cat' --num-beams 0", 2, "--num-beams is 0; give 1 or more");
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
  check_refused("export " + w.run + " --to torchscript --revisions --out x", 2,
                "--revisions writes Hugging Face folders, and --to is torchscript");
  check_refused("export " + w.run + " --to huggingface --revisions --out " + w.dir / "x", 1,
                "keeps no checkpoint for a number of words; train with checkpoint.at_words");
  check_refused("import " + w.dir / "text.txt" + " --out " + w.dir / "x", 1, "is a file, not a Hugging Face folder");
  REQUIRE(cloze("export " + w.run + " --to huggingface --out " + w.dir / "no-case").code == 0);
  check_refused("verify parity " + w.dir / "no-case", 1,
                "is not a golden case, it lacks inputs.safetensors; a case has config.json, model.safetensors, "
                "inputs.safetensors and expected.safetensors");
  check_refused("verify parity " + w.tokens, 1, "is prepared text, not a golden case; name the folder of one");
  check_refused("export " + w.run + " --to huggingface --part generator --out " + w.dir / "x", 2, "has no generator");
  CHECK_FALSE(fs::exists(w.dir / "x"));
  check_refused(
      "prepare " + w.dir / "text.txt" + " --train byte_bpe --vocab-size 100 --out " + w.dir / "small", 2,
      "--vocab-size 100 is too small for byte-level BPE, which has 261 tokens before the first merge; raise it");
  check_refused("inspect objective " SOURCE_DIR "/configs/bert/tiny.yaml", 2,
                "data.tokens is not given; prepare text with `cloze prepare`");
  check_refused("tokenize " + w.dir / "none" + " x", 1, "no such tokenizer");
  const auto bomb = w.dir.write("bomb.yaml", std::string(5000, '['));
  check_refused("pretrain " + bomb, 2, "brackets are nested deeper than 64");
}

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
  check_refused(
      "inspect objective " + w.config() + " --sequences 99999999999999999999", 2,
      "--sequences: '99999999999999999999' is not a whole number from -9223372036854775808 to 9223372036854775807");
  check_refused("generate " + w.run + " x --sample --seed -1", 2,
                "--seed: '-1' is not a whole number from 0 to 18446744073709551615");
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

TEST_CASE("a branch needs a folder of its own and a run to continue", "[cli]") {
  TempDir dir;
  check_refused("pretrain --branch-from " + dir / "nowhere", 2,
                "--branch-from makes a new run; name its folder with --run");
  check_refused("pretrain --branch-from " + dir / "nowhere" + " --run " + dir / "b", 1,
                "is neither a run directory nor a step folder of one");
  check_refused("pretrain --branch-from " + dir / "nowhere" + " --resume --run " + dir / "b", 2, "--resume");
  CHECK_FALSE(fs::exists(dir / "b"));
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
  TempDir dir;
  const auto waits = cloze("evaluate " + world().run + " --text -",
                           "export TMPDIR=" + dir.path.string() + "; sleep 5 | timeout --preserve-status -s TERM 2 ");
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
                             "text has another encoding, convert it (Latin-1: ... | iconv -f latin1 -t "
                             "utf-8 | ...), or have such lines refused"));
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
