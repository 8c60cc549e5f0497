// Suites of embeddings: files, cosines, analogies, and the numbers of a tiny run.
#include <ATen/ATen.h>

#include <cmath>

#include "evaluation/suites/analogies.h"
#include "evaluation/suites/embedding_scores.h"
#include "evaluation/suites/similarity.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"
#include "tests/support/trained.h"

using namespace cloze;

namespace {

template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

bool has_part(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Cosine by loops.
double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  return ab / std::sqrt(aa * bb);
}

Tensor matrix(const std::vector<std::vector<double>>& rows) {
  std::vector<Tensor> tensors;
  for (const auto& row : rows) tensors.push_back(at::tensor(row, at::kDouble));
  return at::stack(tensors);
}

}  // namespace

TEST_CASE("judged pairs are read with tabs and with spaces, and a folder is a suite of its files") {
  const TempDir dir;
  dir.write("words/a.txt", "cup mug 9.5\ncup tree 1\nred blue 4\nsun moon 5\n");
  dir.write("words/b.txt", "cup\tmug\t9.5\ncup\ttree\t1\nred\tblue\t4\nsun\tmoon\t5\n");
  const auto one = read_word_similarity(dir / "words/a.txt"), all = read_word_similarity(dir / "words");
  REQUIRE(one);
  REQUIRE(all);
  CHECK((one->files[0].pairs == all->files[1].pairs));
  CHECK((one->files[0].pairs[1] == JudgedPair{"cup", "tree", 1}));
  CHECK(all->files[1].name == "b");
}

TEST_CASE("files of other kinds are no judged pairs") {
  const TempDir dir;
  CHECK_FALSE(read_word_similarity(dir.write("a.txt", ": capitals\na b c d\n")));
  CHECK_FALSE(read_word_similarity(dir.write("b.jsonl", "{\"a\": 1}\n")));
  CHECK_FALSE(read_sentence_similarity(dir.write("c.txt", "cup mug 9.5\n")));
  CHECK_FALSE(read_analogies(dir.write("d.txt", "cup mug 9.5\n")));
}

TEST_CASE("a damaged line of an embedding suite is named with its place") {
  const TempDir dir;
  const auto words_file = dir.write("a.txt", "cup mug 9.5\ncup mug\n");
  CHECK(has_part(error_of([&] { read_word_similarity(words_file); }),
                 "a.txt:2: is not two words and a number, the judgement of people"));
  const auto few = dir.write("few.txt", "cup mug 9.5\n");
  CHECK(has_part(error_of([&] { read_word_similarity(few); }), "has 1 pairs, too few for a correlation"));
  const auto questions = dir.write("q.txt", ": capitals\na b c d\na b c\n");
  CHECK(has_part(error_of([&] { read_analogies(questions); }),
                 "q.txt:3: is not a question of four words; write `a b c d`"));
  const auto twice = dir.write("t.txt", ": capitals\na b c d\n: capitals\na b c d\n");
  CHECK(
      has_part(error_of([&] { read_analogies(twice); }), "t.txt:3: the section 'capitals' is there twice, first in "));
  const auto table = dir.write("s.tsv", "sentence1\tsentence2\tscore\nA cup.\tA mug.\thigh\n");
  CHECK(has_part(error_of([&] { read_sentence_similarity(table); }), "s.tsv:2: 'high' is not a number"));
  const auto empty = dir.write("e.tsv", "sentence1\tsentence2\tscore\n\tA mug.\t3\n");
  CHECK(has_part(error_of([&] { read_sentence_similarity(empty); }), "e.tsv:2: one of the two sentences is empty"));
  const auto blank = dir.write("b.tsv", "sentence1\tsentence2\tscore\nA cup.\t \t3\n");
  CHECK(has_part(error_of([&] { read_sentence_similarity(blank); }), "b.tsv:2: one of the two sentences is empty"));
}

TEST_CASE("sentence pairs are read from a table by its heads and from JSON lines") {
  const TempDir dir;
  const auto table = read_sentence_similarity(
      dir.write("s.tsv",
                "id\tsentence_A\tsentence_B\trelatedness_score\n1\tA cup.\tA mug.\t4\n2\tA cup.\tA tree.\t1\n"
                "3\tRed.\tBlue.\t2.5\n4\tSun.\tMoon.\t3\n"));
  const auto lines =
      read_sentence_similarity(dir.write("s.jsonl",
                                         "{\"sentence1\": \"A cup.\", \"sentence2\": \"A mug.\", \"score\": 4}\n"
                                         "{\"sentence1\": \"A cup.\", \"sentence2\": \"A tree.\", \"score\": 1}\n"
                                         "{\"sentence1\": \"Red.\", \"sentence2\": \"Blue.\", \"score\": 2.5}\n"
                                         "{\"sentence1\": \"Sun.\", \"sentence2\": \"Moon.\", \"score\": 3}\n"));
  REQUIRE(table);
  REQUIRE(lines);
  CHECK((table->files.at(0).pairs == lines->files.at(0).pairs));
}

TEST_CASE("a folder of JSON lines of sentence pairs is a suite of its files") {
  const TempDir dir;
  std::string lines;
  for (const auto* score : {"4", "1", "2.5", "3"})
    lines += std::string("{\"sentence1\": \"A cup.\", \"sentence2\": \"A mug.\", \"score\": ") + score + "}\n";
  dir.write("sts/dev.jsonl", lines);
  dir.write("sts/test.jsonl", lines);
  const auto suite = read_sentence_similarity(dir / "sts");
  REQUIRE(suite);
  REQUIRE(suite->files.size() == 2);
  CHECK(suite->files[1].name == "test");
  CHECK(suite->files[1].pairs.size() == 4);
  dir.write("sts/other.jsonl", "{\"text\": \"A cup.\"}\n");
  CHECK_FALSE(read_sentence_similarity(dir / "sts"));
}

TEST_CASE("the mean cosine is that over all pairs of different rows") {
  const std::vector<std::vector<double>> rows{{1, 2, 0}, {0, 1, -1}, {3, 0.5, 2}, {-1, 1, 1}};
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t j = 0; j < rows.size(); ++j) sum += i == j ? 0 : cosine(rows[i], rows[j]);
  CHECK(mean_cosine(matrix(rows)) == Approx(sum / 12).epsilon(1e-12));
}

TEST_CASE("an analogy is answered by the nearest vector to b - a + c that is not in the question") {
  // The offset from row 0 to row 1 leads from row 2 to row 3; row 2 itself is nearer.
  const auto vectors = matrix({{1, 0, 0.2}, {1, 0.3, 0.2}, {0, 0, 1}, {0, 0.4, 1}, {-1, -1, 0}});
  CHECK(nearest_analogies(vectors, {{0, 1, 2}}) == std::vector<int64_t>{3});
  CHECK(nearest_analogies(vectors, {{1, 0, 3}, {0, 1, 2}}) == std::vector<int64_t>{2, 3});
}

TEST_CASE("an embedding does not depend on the texts that it is computed with, nor on their order") {
  const auto run = open_run(trained());
  const std::vector<std::string> texts{"wa wb", "wc", "wa wb wc wd", "wc", "wd wa"},
      turned(texts.rbegin(), texts.rend());
  const auto forward = embed_texts(run, texts, {}), backward = embed_texts(run, turned, {.batch_size = 1});
  for (int64_t i = 0; i < 5; ++i) CHECK(at::allclose(forward[i], backward[4 - i], 1e-6, 1e-7));
  CHECK(at::equal(forward[1], forward[3]));
}

TEST_CASE("the pooled state is that of the network's own hidden states") {
  const auto run = open_run(trained());
  const at::NoGradGuard no_grad;
  const auto ids = framed_text(run, "wa wb wc");
  REQUIRE(ids.size() == 5);
  const auto hidden = run.network->backbone->hidden({.input_ids = at::tensor(ids, at::kLong).unsqueeze(0)})[0];
  const std::vector<std::string> text{"wa wb wc"};
  CHECK(at::allclose(embed_texts(run, text, {})[0], hidden.to(at::kDouble).mean(0), 1e-5, 1e-6));
  CHECK(at::allclose(embed_texts(run, text, {.pooling = Pooling::cls})[0], hidden[0].to(at::kDouble), 1e-5, 1e-6));
}

TEST_CASE("a layer that does not exist and a text that is too long are refused") {
  const auto run = open_run(trained());
  CHECK(has_part(embedding_fault(run.config, {.layer = 7}), "layer 7 does not exist"));
  std::string text;
  for (int i = 0; i < 40; ++i) text += "wa ";
  CHECK(has_part(error_of([&] { embed_texts(run, std::vector{text}, {}); }), "the model reads at most 32"));
}

TEST_CASE("word similarity and analogies of a run give figures by file and by section") {
  const TempDir dir;
  const auto run = open_run(trained());
  const auto pairs = read_word_similarity(dir.write("p.txt", "wa wb 9\nwa wc 1\nwb wd 4\nwc we 5\n"));
  const auto similarity = run_suite(run, *pairs, {});
  REQUIRE(similarity.scores.size() == 2);
  CHECK(similarity.scores[0].metric == "spearman");
  CHECK(similarity.scores[0].count == 4);
  CHECK(similarity.items.size() == 4);
  const auto questions = read_analogies(dir.write("q.txt", ": capitals\nwa wb wc wd\n: gram1\nwa wb we wf\n"));
  const auto analogies = run_suite(run, *questions, {});
  REQUIRE(analogies.scores.size() == 6);
  CHECK(analogies.scores[0].count == 2);
  CHECK(analogies.scores[2].group == "semantic");
}

TEST_CASE("a folder of texts of one kind is a suite, with a figure for each file") {
  const TempDir dir;
  const auto run = open_run(trained());
  const std::string head = "sentence_A\tsentence_B\trelatedness_score\n";
  dir.write("sick/train.txt", head + "wa\twb\t9\nwa\twc\t1\nwb\twd\t4\nwc\twe\t5\n");
  dir.write("sick/trial.txt", head + "wa\twc\t9\nwa\twb\t1\nwb\twd\t4\nwc\twe\t5\n");
  const auto pairs = read_sentence_similarity(dir / "sick");
  REQUIRE(pairs);
  const auto similar = run_suite(run, *pairs, {});
  REQUIRE(similar.scores.size() == 4);
  CHECK(similar.scores[0].count == 8);
  CHECK(similar.scores[0].value == Approx((similar.scores[2].value + similar.scores[3].value) / 2));
  CHECK(similar.scores[3].group == "trial");
  dir.write("analogies/words.txt", ": capitals\nwa wb wc wd\n");
  dir.write("analogies/phrases.txt", ": capitals\nwe wf wg wh\nwe wf wg wi\n");
  const auto questions = read_analogies(dir / "analogies");
  REQUIRE(questions);
  const auto answers = run_suite(run, *questions, {});
  CHECK(answers.scores[0].count == 3);
  CHECK(answers.scores[3].group == "phrases/capitals");
  // The only word of the file that is not in the question: words of other files are no answers.
  CHECK(answers.items[2]["answer"] == "wd");
  dir.write("mixed/a.txt", ": capitals\nwa wb wc wd\n");
  dir.write("mixed/b.txt", "wa wb 3\n");
  CHECK_FALSE(read_analogies(dir / "mixed"));
  CHECK_FALSE(read_sentence_similarity(dir / "mixed"));
}

TEST_CASE("a mean over the first layer and a later one is refused where there is no later one") {
  RunConfig config;
  const auto fault = [&](int64_t layers, std::optional<int64_t> layer) {
    backbone_of(config.model).num_hidden_layers = layers;
    return embedding_fault(config, {.layer = layer, .pooling = Pooling::first_last});
  };
  CHECK(fault(2, {}).empty());
  CHECK(fault(3, 2).empty());
  for (const int64_t layer : {0, 1})
    CHECK_THAT(fault(2, layer), Catch::Contains(concat("and layer ", layer,
                                                       " is none; take --pooling mean, or a --layer "
                                                       "from 2 on")));
  CHECK_THAT(fault(1, {}), Catch::EndsWith("and layer 1 is none; take --pooling mean"));
}

TEST_CASE("texts that are too long are known before any is embedded") {
  const TempDir dir;
  const auto run = open_run(trained());
  std::string text = "wa";
  for (int i = 0; i < 40; ++i) text += " wb";
  const auto pairs = read_sentence_similarity(
      dir.write("s.tsv", "sentence1\tsentence2\tscore\nwa\twb\t3\nwa\twc\t2\nwb\twc\t1\nwa\t" + text + "\t4\n"));
  CHECK(has_part(error_of([&] { check_fit(run, *pairs, {}); }), "the model reads at most 32; shorten it"));
}

TEST_CASE("states that are not finite are refused with the run and the text by every suite of embeddings") {
  const TempDir dir;
  const auto run = open_run(trained());
  {
    const at::NoGradGuard no_grad;
    for (const auto& [key, param] : collect_params(*run.network))
      if (has_part(key, "norm")) param.value().fill_(3e38);  // finite weights, whose states overflow
  }
  const auto refused = [&](const auto& suite) {
    const auto message = error_of([&] { run_suite(run, suite, {}); });
    INFO(message);
    CHECK(message.starts_with(run.folder + ": its states for the text 'w"));
    CHECK(has_part(message, "' are not finite; the training diverged or the weights are damaged"));
  };
  refused(*read_word_similarity(dir.write("p.txt", "wa wb 9\nwa wc 1\nwb wd 4\nwc we 5\n")));
  refused(*read_analogies(dir.write("q.txt", ": capitals\nwa wb wc wd\n")));
  refused(*read_sentence_similarity(
      dir.write("s.tsv", "sentence1\tsentence2\tscore\nwa\twb\t3\nwa\twc\t2\nwb\twc\t1\nwa\twd\t4\n")));
}

TEST_CASE("a file without a correlation is noted with the reason, and is not in the mean of its folder") {
  const TempDir dir;
  const auto run = open_run(trained());
  dir.write("w/constant.txt", "wa wb 5\nwa wc 5\nwb wd 5\nwc we 5\n");
  dir.write("w/judged.txt", "wa wb 9\nwa wc 1\nwb wd 4\nwc we 5\n");
  const auto both = run_suite(run, *read_word_similarity(dir / "w"), {});
  const auto one = run_suite(run, *read_word_similarity(dir / "w/judged.txt"), {});
  CHECK(both.scores[0].value == one.scores[0].value);
  CHECK(both.scores[0].count == 4);
  CHECK(std::isnan(both.scores[2].value));
  CHECK(both.notes == std::vector<std::string>{
                          "no correlation of 'constant', for its judgements are all equal; the mean is without it"});
  CHECK(one.notes.empty());
  const auto same =
      run_suite(run, *read_word_similarity(dir.write("same.txt", "wa wa 9\nwa wa 1\nwa wa 4\nwa wa 5\n")), {});
  CHECK(std::isnan(same.scores[0].value));
  CHECK(same.notes.back() == "no correlation of 'same', for its similarities are all equal");
}

TEST_CASE("pairs and questions that a file repeats are counted each, and noted with their lines") {
  const TempDir dir;
  const auto run = open_run(trained());
  const auto pairs = dir.write("p.txt", "wa wb 9\nwa wc 1\n\nwb wa 4\nwc we 5\nwa wb 9\n");
  const auto similar = run_suite(run, *read_word_similarity(pairs), {});
  CHECK(similar.scores[0].count == 5);
  CHECK(similar.notes == std::vector<std::string>{concat("2 of 5 pairs repeat an earlier one, first 'wa wb' (", pairs,
                                                         ":4, as in line 1); each is counted")});
  const auto questions =
      dir.write("q.txt", ": capitals\nwa wb wc wd\nwe wf wg wh\n: gram1\nwa wb wc wd\nwb wa wc wd\n");
  const auto answers = run_suite(run, *read_analogies(questions), {});
  CHECK(answers.scores[0].count == 4);
  CHECK(answers.notes ==
        std::vector<std::string>{concat("1 of 4 questions repeat an earlier one, first 'wa wb wc wd' (", questions,
                                        ":5, as in line 2); each is counted")});
}

TEST_CASE("analogies with a single possible answer are noted") {
  const TempDir dir;
  const auto run = open_run(trained());
  dir.write("q/one.txt", ": capitals\nwa wb wc wd\nwa wa wb wd\n");
  dir.write("q/two.txt", ": capitals\nwa wb wc wd\nwa wb wc we\n");
  const auto notes = run_suite(run, *read_analogies(dir / "q"), {}).notes;
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("1 of 4 questions have a single possible answer"));
}
