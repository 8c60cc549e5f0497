// The verb `score`.
#include <cmath>

#include "tests/cli/program.h"

namespace {

using nlohmann::json;

/// The lines of standard output as JSON.
std::vector<json> lines_of(const Answer& answer) {
  INFO(answer.text);
  REQUIRE(answer.code == 0);
  std::vector<json> lines;
  std::istringstream in(answer.text);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("{")) lines.push_back(json::parse(line));
  return lines;
}

double sum_of(const json& line) {
  double sum = 0;
  for (const auto& token : line["log_probabilities"]) sum += token["log_probability"].get<double>();
  return sum;
}

}  // namespace

TEST_CASE("score prints a line for each text, with its tokens where they are asked for", "[cli][score]") {
  const auto& w = world();
  const std::string texts = "The cat sat.\n\nThen it woke.\n";
  const auto file = w.dir.write("sentences.txt", texts);
  const auto lines = lines_of(cloze("score " + w.run + " " + file + " --json --tokens"));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0]["text"] == "The cat sat.");
  CHECK(lines[0]["words"] == 3);
  CHECK(lines[0]["bytes"] == 12);
  REQUIRE(lines[0]["log_probabilities"].size() == lines[0]["tokens"]);
  CHECK(lines[0]["log_probabilities"].back()["end"] == 12);
  CHECK(lines[0]["sum"].get<double>() == Approx(sum_of(lines[0])).epsilon(1e-12));
  // The same texts as JSON lines, from a pipe and from a cache.
  const auto keyed = w.dir.write("sentences.jsonl", "{\"text\": \"The cat sat.\"}\n{\"text\": \"Then it woke.\"}\n");
  CHECK(lines_of(cloze("score " + w.run + " " + keyed + " --json --tokens")) == lines);
  CHECK(lines_of(cloze("score " + w.run + " - --json --tokens", "cat " + file + " | ")) == lines);
  const auto cached = "score " + w.run + " " + file + " --json --tokens --cache " + w.dir / "scores";
  CHECK(lines_of(cloze(cached)) == lines);
  CHECK(lines_of(cloze(cached)) == lines);
  const auto table = cloze("score " + w.run + " " + file + " --normalise token");
  char first[64];
  std::snprintf(first, sizeof first, "%.4f\tThe cat sat.\n",
                lines[0]["sum"].get<double>() / lines[0]["tokens"].get<double>());
  CHECK_THAT(table.text, Catch::Contains(first) && Catch::Contains("each token masked in turn (Salazar et al. 2020)"));
  const double sum = lines[0]["sum"].get<double>() + lines[1]["sum"].get<double>();
  char bits[64];
  std::snprintf(bits, sizeof bits, "; %.4f bits per byte", -sum / (12 + 13) / std::log(2));
  CHECK_THAT(table.text, Catch::Contains(bits) && Catch::Contains("pseudo-perplexity "));
}

TEST_CASE("a text with a line break is one line of the table", "[cli][score]") {
  const auto& w = world();
  const auto file = w.dir.write("broken.jsonl", "{\"text\": \"The cat\\nsat.\"}\n{\"text\": \"It woke.\"}\n");
  const auto table = cloze("score " + w.run + " " + file);
  CHECK(table.code == 0);
  CHECK_THAT(table.text, Catch::Contains("\tThe cat sat.\n") && Catch::Contains("\tIt woke.\n"));
}

TEST_CASE("a long text is shortened in the table, and whole in JSON with its normalised score", "[cli][score]") {
  const auto& w = world();
  std::string text = "The cat";
  for (int i = 0; i < 40; ++i) text += " sat on mat";
  const auto score = "score " + w.run + " " + w.dir.write("book.txt", text + "\n") + " --stride 10 --normalise word";
  const auto table = cloze(score);
  CHECK(table.code == 0);
  CHECK_THAT(table.text, Catch::Contains("\tThe cat sat on mat") && !Catch::Contains(text));
  const auto line = lines_of(cloze(score + " --json")).at(0);
  CHECK(line["text"] == text);
  CHECK(line["normalised"].get<double>() == Approx(line["sum"].get<double>() / 122));
}

TEST_CASE("a file of JSON lines is never read as raw text, and a bad line is refused with its place", "[cli][score]") {
  const auto& w = world();
  const auto refused = [&](const std::string& name, const std::string& content, const std::string& sentence) {
    check_refused("score " + w.run + " " + w.dir.write(name, content), 1, sentence);
  };
  const std::string good = "{\"text\": \"It woke.\"}\n";
  refused("headcut.jsonl", "xt\": \"The cat\"}\n" + good, "headcut.jsonl:1: is not a JSON object (column ");
  refused("list.jsonl", "[1]\n" + good, "list.jsonl:1: is not a JSON object; a file NAME.jsonl");
  refused("tail.txt", "  " + good + "It woke.\n", "tail.txt:2: is not a JSON object (");
  refused("doubled.jsonl", good + "{\"text\": \"a\", \"text\": \"b\"}\n",
          "doubled.jsonl:2: has the key `text` twice; remove one of the two");
  refused("both.jsonl", good + "{\"text\": \"a\", \"context\": \"b\", \"completion\": \"c\"}\n",
          "both.jsonl:2: has both `text` and `context`, which do not go together; write `text` alone");
  refused("scored.jsonl", good + "{\"context\": \"a\", \"scored\": \"b\"}\n",
          "scored.jsonl:2: has both `context` and `scored`");
  const auto led = lines_of(cloze("score " + w.run + " " + w.dir.write("led.txt", " " + good) + " --json"));
  CHECK(led.at(0)["text"] == "It woke.");
}

TEST_CASE("a completion is scored after its context, in each form of a line", "[cli][score]") {
  const auto& w = world();
  const auto tabs = lines_of(cloze("score " + w.run + " - --json --tokens", "printf 'The cat\\tsat on mat' | "));
  const auto keys = lines_of(cloze("score " + w.run + " - --json --tokens",
                                   "echo '{\"context\": \"The cat\", \"completion\": \"sat on mat\"}' | "));
  const auto parts = lines_of(
      cloze("score " + w.run + " - --json --tokens", "echo '{\"left\": \"The cat \", \"scored\": \"sat on mat\"}' | "));
  REQUIRE(tabs.size() == 1);
  CHECK(keys == tabs);
  CHECK(parts == tabs);
  CHECK(tabs[0]["text"] == "The cat sat on mat");
  CHECK(tabs[0]["bytes"] == 10);
  for (const auto& token : tabs[0]["log_probabilities"]) CHECK(token["end"].get<int>() > 8);
}

TEST_CASE("the name of a file says that its lines have tabs, and a tab in a text is refused", "[cli][score]") {
  const auto& w = world();
  const auto tabs = lines_of(
      cloze("score " + w.run + " " + w.dir.write("named.tsv", "context\tcompletion\nThe cat\tsat.\n") + " --json"));
  REQUIRE(tabs.size() == 1);
  CHECK(tabs[0]["bytes"] == 4);
  check_refused("score " + w.run + " " + w.dir.write("first.tsv", "The cat sat.\nThe cat\tsat.\n"), 1,
                "first.tsv:1: does not have one tab between a context and its completion");
  check_refused("score " + w.run + " " + w.dir.write("later.txt", "The cat sat.\nThe cat\tsat.\n"), 1,
                "later.txt:2: has a tab, and the first line is a text without one");
  check_refused("score " + w.run + " " + w.dir.write("latin-1.txt", "The c\xE4t sat.\n"), 1,
                "latin-1.txt:1: byte 6 is not UTF-8; convert the text to UTF-8");
}

TEST_CASE("a text longer than the model is scored in windows, and text without known tokens is reported",
          "[cli][score]") {
  const auto& w = world();
  std::string text = "The cat";
  for (int i = 0; i < 40; ++i) text += " sat on mat";
  const auto longest = w.dir.write("longest.txt", "It woke.\n" + text + "\n");
  check_refused("score " + w.run + " " + longest, 1, "shorten it, or score it in windows with a stride (--stride N)");
  check_refused("score " + w.run + " " + longest, 1, "longest.txt:2: the text 'The cat");
  CHECK(lines_of(cloze("score " + w.run + " " + longest + " --stride 10 --json")).size() == 2);
  const auto unknown =
      cloze("score " + w.run + " " + w.dir.write("unknown.txt", "The \xE7\x8C\xAB sat.\n\xE2\x80\x8B\n"));
  CHECK(unknown.code == 0);
  CHECK_THAT(
      unknown.text,
      Catch::Contains(
          "tokens are unknown to the tokenizer, and were scored as [UNK], so that the bits per byte are too low") &&
          Catch::Contains("texts without tokens, which score 0 and make the bits per byte too low: 1"));
  const auto silent = cloze("score " + w.run + " " + w.dir.write("silent.txt", "\xE2\x80\x8B\n"));
  CHECK(silent.code == 0);
  CHECK_THAT(silent.text, !Catch::Contains("perplexity "));
  std::string letters;
  for (int i = 0; i < 40; ++i) letters += "cat";
  const auto word = cloze("score " + w.run + " " + w.dir.write("word.txt", letters + "\n"));
  CHECK_THAT(word.text,
             Catch::Matches("[^]*pseudo-perplexity [0-9.]+ by token, [0-9][.][0-9]{3}e[+][0-9]+ by word[^]*"));
}
