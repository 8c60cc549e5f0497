#include <set>

#include "tests/cli/program.h"

namespace {

/// A translator, trained once, of a table of pairs.
struct Translator {
  std::string tokens = world().dir / "pairs", run = world().dir / "translator";
  Translator() {
    const auto& w = world();
    std::string pairs;
    for (int i = 0; i < 60; ++i)
      pairs += "The cat number " + std::to_string(i) + " slept.\tIt woke " + std::to_string(i) + ".\n";
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
  }
};
const std::string& translator() {
  static const Translator made;
  return made.run;
}

}  // namespace

TEST_CASE("texts to generate from come from arguments, a file or a pipe, and are UTF-8", "[cli]") {
  const auto& w = world();
  const auto& run = translator();
  const auto generated =
      cloze("generate " + run + " 'The cat number 3 slept.' 'The cat' --num-beams 3 --max-new-tokens 7 --json");
  CHECK(generated.code == 0);
  CHECK_THAT(generated.text, Catch::Contains("\"generated\":[{\"ids\":["));
  const auto one = json_of(cloze("generate " + run + " 'The cat' --json --max-new-tokens 5"))["generated"][0];
  CHECK(cloze("--quiet generate " + run + " --max-new-tokens 5", "printf 'The cat\\n' | ").text ==
        one["text"].get<std::string>() + "\n");
  CHECK(cloze("--quiet generate " + run + " --file " + w.dir.write("one.txt", "The cat\n") + " --max-new-tokens 5")
            .text == one["text"].get<std::string>() + "\n");
  const auto old = w.dir.write("old.txt", "The cat\rThe cat\r");  // of an old Macintosh
  CHECK(cloze("--quiet generate " + run + " --file " + old + " --max-new-tokens 5").text ==
        one["text"].get<std::string>() + "\n" + one["text"].get<std::string>() + "\n");
  check_refused("fill " + w.run + " --file " + w.dir.write("wide.txt", {"\xFF\xFE[\0", 4}), 1,
                "wide.txt: is UTF-16; convert it");
  check_refused("generate " + run + " --file " + w.dir.write("latin.txt", "The cat\nThe \xE9t\xE9\n"), 1,
                "latin.txt:2: byte 5 is not UTF-8; convert the text to UTF-8");
  check_refused("fill " + w.run + " --file " + w.dir.write("nul.txt", std::string("a [MASK]\na\0 [MASK]\n", 19)), 1,
                "nul.txt:2: a NUL byte: the file looks binary; name a text file (UTF-8)");
  CHECK_THAT(cloze("fill " + w.run, "printf 'a\\0 [MASK]\\n' | ").text,
             Catch::Contains("error: standard input:1: a NUL byte"));
  check_refused("generate " + run + " 'caf\xE9'", 2, "byte 4 of a text argument is not UTF-8; convert it to UTF-8");
  check_refused("fill " + w.run + " 'caf\xE9 [MASK]'", 2, "byte 4 of a text argument is not UTF-8");
  check_refused("generate " + run + " --file " + w.dir.path.string(), 1,
                ": is a folder; name a file with one text per line");
  CHECK_THAT(cloze("generate " + run, "true | ").text,
             Catch::Contains("standard input: is empty; write one text per line"));
}

TEST_CASE("options of a search that is not made are refused", "[cli]") {
  const auto& run = translator();
  check_refused("generate " + run + " 'The cat' --top-k 3", 2,
                "--top-k applies to sampling only; add --do-sample, or leave it out");
  check_refused("evaluate " + run + " --generate --temperature 0.5", 2,
                "--temperature applies to sampling only; add --do-sample, or leave it out");
  CHECK(cloze("generate " + run + " 'The cat' --do-sample --top-k 3 --max-new-tokens 5").code == 0);
  check_refused("generate " + run + " 'The cat' --length-penalty 2", 2,
                "--length-penalty applies to beam search only; set --num-beams above 1, or leave it out");
}

TEST_CASE("pairs are scored alike from two columns, from those of a larger table, and from a pipe", "[cli]") {
  const auto& w = world();
  const auto& run = translator();
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
}

TEST_CASE("generated text is scored against the raw text of files, or that of the tokens", "[cli]") {
  const auto& w = world();
  const auto& run = translator();
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
}

TEST_CASE("an export to TorchScript generates as the run does", "[cli]") {
  const auto& w = world();
  const auto& run = translator();
  CHECK_THAT(cloze("export " + run + " --to torchscript --out " + w.dir / "translator.pt").text,
             Catch::Contains("generate, 3 beams: max difference 0.0e+00"));
  CHECK_THAT(cloze("inspect objective " + run + "/run.yaml --sequences 20").text, Catch::Contains("target     "));
  check_refused("export " + run + " --to huggingface --out " + w.dir / "x", 2,
                "transformer has no class at Hugging Face; export to torchscript");
}

TEST_CASE("blanks are filled by generative models, with sentinels and without", "[cli]") {
  const auto& w = world();
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
  std::string cats;
  for (int i = 0; i < 200; ++i) cats += "cat ";
  check_refused("fill " + w.dir / "bart" + " --file " + w.dir.write("cats.txt", "a [MASK]\n" + cats + "[MASK]\n"), 2,
                "cats.txt:2: the text has 803 tokens, the model reads at most 128; shorten it");
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
}

TEST_CASE("a token of a script without spaces is filled in without a dash", "[cli]") {
  TempDir dir;
  std::string text;
  for (int i = 0; i < 10; ++i)
    for (const std::string animal : {"猫", "鸟", "鼠", "马"}) {
      text += animal + "坐在垫子上。然后" + animal + "睡着了。\n";
      text += "狗对着月亮叫，" + animal + "就醒了。\n\n";
    }
  const auto tokens = dir / "tokens", run = dir / "run";
  REQUIRE(cloze("prepare " + dir.write("text.txt", text) + " --vocab-size 30 --held-out 0.2 --out " + tokens).code ==
          0);
  REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/bert/tiny.yaml --set data.tokens=" + tokens +
                " --set model.hidden_size=32 --set model.intermediate_size=32 --set data.max_seq_length=32 --set "
                "train.budget.steps=2 --set train.batch_size=2 --set evaluation.sequences=4 --run " +
                run)
              .code == 0);
  const auto filled = cloze("--quiet fill " + run + " '狗坐在[MASK]上。' --top 1000");
  INFO(filled.text);
  CHECK(filled.code == 0);
  CHECK_THAT(filled.text, Catch::Contains("子 ") && !Catch::Contains("-"));
}

TEST_CASE("a decoder whose attention has no cache generates no text", "[cli]") {
  const auto& w = world();
  const auto estimates = w.dir / "performer";
  REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/performer/tiny.yaml --set data.tokens=" + w.tokens +
                " --set model.hidden_size=32 --set model.intermediate_size=32 --set model.architecture=decoder --set "
                "'objectives=[{kind: clm}]' --set train.budget.steps=2 --set schedule.warmup=0 --run " +
                estimates)
              .code == 0);
  check_refused("generate " + estimates + " 'The cat'", 2,
                "this model's attention has no key-value cache, so it generates no text; train one with "
                "model.attention.kind: full, model.relative_positions: 0 and a position table");
}

TEST_CASE("a text that leaves no room for what is to be generated is told both numbers", "[cli]") {
  std::string longest;
  for (int i = 0; i < 300; ++i) longest += "cat ";
  const auto refused = cloze("generate " + translator() + " '" + longest + "' --max-new-tokens 1");
  CHECK(refused.code == 2);
  CHECK_THAT(refused.text, Catch::Contains(" tokens, the model reads at most "));
  check_refused("generate " + translator() + " cat --max-new-tokens 5000", 2,
                "text 1 has 1 token and is to get 5000 more, the model has ");
}

TEST_CASE("generate ends at the first signal while it waits for texts", "[cli]") {
  const auto& run = translator();
  const auto stopped = cloze(
      "generate " + run,
      "sleep 4 | timeout --foreground --preserve-status -s INT 1 ");  // --foreground: else its group is signalled too,
                                                                      // and a second signal ends a program at once
  CHECK(stopped.code == 130);
  CHECK_THAT(stopped.text, Catch::Contains("stopped before the end of standard input"));
}

TEST_CASE("a text that a signal stops ends its line, and the sentence has one of its own", "[cli]") {
  const auto& w = world();
  const auto run = w.dir / "endless";
  REQUIRE(cloze("pretrain " SOURCE_DIR "/configs/gpt2/tiny.yaml --set data.tokens=" + w.tokens +
                " --set model.hidden_size=32 --set model.intermediate_size=32 --set data.max_seq_length=32 --set "
                "model.max_position_embeddings=16384 --set train.budget.steps=2 --set schedule.warmup=0 --run " +
                run)
              .code == 0);
  const auto stopped = cloze("--quiet generate " + run + " 'The cat' --max-new-tokens 16000 --min-new-tokens 16000",
                             "timeout --foreground --preserve-status -k 60 -s INT 3 ");
  INFO(stopped.text);
  CHECK(stopped.code == 130);
  CHECK(stopped.text.starts_with("The cat"));
  CHECK(stopped.text.ends_with("\ncloze: stopped\n"));
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
