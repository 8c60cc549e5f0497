// The verb `view`.
#include <filesystem>

#include "tests/cli/program.h"

namespace fs = std::filesystem;

TEST_CASE("view writes one page that needs nothing outside it, and its figures as JSON", "[cli][view]") {
  const auto& w = world();
  const auto file = w.dir.write("viewed.txt", "The cat sat.\n\nThe cat number 3 slept & <woke>.\nThen it woke.\n");
  const auto page = w.dir / "view.html";
  const auto view = "view " + w.run + " " + file + " --out " + page;
  const auto found = json_of(cloze(view + " --json"));
  CHECK(found["texts"] == 3);
  CHECK(found["projection"]["points"].size() == 3);
  CHECK(found["calibration"]["count"] > 20);
  int64_t tokens = 0;
  for (const auto& group : found["by_position"]) tokens += group["count"].get<int64_t>();
  int64_t by_frequency = 0;
  for (const auto& group : found["by_frequency"]) by_frequency += group["count"].get<int64_t>();
  CHECK(tokens == by_frequency);
  CHECK(found["frequency_of"] == "training");  // its tokens are where it was trained
  const auto html = read_file(page);
  CHECK_THAT(html, Catch::Contains("<html") && Catch::Contains("&lt;woke&gt;"));
  CHECK_THAT(html, !Catch::Contains("<script") && !Catch::Contains("http") && !Catch::Contains("<woke>"));
  CHECK_THAT(html, Catch::Contains("Loss by token") && Catch::Contains(" nats\">"));
  const auto again = cloze(view + " --sentence 'Then it slept.'");
  CHECK_THAT(again.text, Catch::Contains("3 texts, " + std::to_string(tokens) + " tokens, calibration error ") &&
                             Catch::Contains("view.html"));
  CHECK(read_file(page) != html);  // the attention of another sentence
}

TEST_CASE("a view of texts that the model cannot read leaves no page", "[cli][view]") {
  const auto& w = world();
  const auto page = w.dir / "refused.html";
  std::string longest = "The cat";
  for (int i = 0; i < 60; ++i) longest += " sat";
  check_refused("view " + w.run + " " + w.dir.write("longest.txt", "\n" + longest) + " --out " + page, 1,
                "longest.txt:2: the text 'The cat sat");
  check_refused("view " + w.run + " " + w.dir.write("control.txt", "\x01\n") + " --out " + page, 1,
                "the texts have no token that");
  CHECK_FALSE(fs::exists(page));
}

TEST_CASE("view reads JSON lines and tabs as score does, and a context with its completion as one text",
          "[cli][view]") {
  const auto& w = world();
  const auto scores = [&](const std::string& name, const std::string& content) {
    return json_of(cloze("view " + w.run + " " + w.dir.write(name, content) + " --json --out " + w.dir / "read.html"));
  };
  const auto plain = scores("plain.txt", "The cat sat.\nThen it woke.\n");
  CHECK(scores("keys.jsonl", "{\"text\": \"The cat sat.\"}\n{\"text\": \"Then it woke.\"}\n") == plain);
  CHECK(scores("tabs.tsv", "context\tcompletion\nThe cat\tsat.\nThen it\twoke.\n") == plain);
  check_refused("view " + w.run + " " + w.dir.write("cut.jsonl", "{\"text\": ") + " --out " + w.dir / "none.html", 1,
                "cut.jsonl:1: is not a JSON object (column 10: the text ends in the middle)");
}

TEST_CASE("a page may lie next to files of other programs, and is written over", "[cli][view]") {
  const auto& w = world();
  const TempDir others;
  others.write("manifest.json", "{}");
  others.write("vocab.txt", "mine\n");
  const auto view =
      "view " + w.run + " " + others.write("one.txt", "The cat sat.\n") + " --out " + others / "page.html";
  for (int times = 0; times < 2; ++times) CHECK(cloze(view).code == 0);
}
