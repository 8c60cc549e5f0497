// Texts that are longer than the model.
#include <set>

#include "data/word_starts.h"
#include "inference/scoring/encoded_passage.h"
#include "inference/scoring/rows.h"
#include "tests/inference/scoring/random_run.h"

using namespace cloze;

namespace {

std::string long_text(int words) {
  std::string text;
  for (int i = 0; i < words; ++i)
    text += (i ? " " : "") + std::string(i % 3 == 0 ? "the" : i % 3 == 1 ? "cats" : "see");
  return text;
}

EncodedPassage passage_of(size_t tokens, size_t begin, size_t end) {
  EncodedPassage passage;
  passage.tokens.resize(tokens);
  passage.begin = begin;
  passage.end = end;
  return passage;
}

}  // namespace

TEST_CASE("windows end a stride apart, and each scores what the one before has not", "[scoring]") {
  using Windows = std::vector<Window>;
  CHECK((windows_of(passage_of(10, 0, 10), 10, 0) == Windows{{0, 10, 0}}));
  CHECK(windows_of(passage_of(11, 0, 11), 10, 0).empty());
  const Windows five{{0, 10, 0}, {4, 14, 10}, {8, 18, 14}, {12, 22, 18}, {15, 25, 22}};
  CHECK((windows_of(passage_of(25, 0, 25), 10, 4) == five));
  CHECK((windows_of(passage_of(25, 20, 23), 10, 4) == Windows{{12, 22, 18}, {15, 25, 22}}));
  CHECK((windows_of(passage_of(20, 0, 20), 10, 10) == Windows{{0, 10, 0}, {10, 20, 10}}));
}

TEST_CASE("a text longer than the model is refused with its lengths, or scored in windows", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "gpt2");  // 40 positions
  const auto text = long_text(60);
  const auto ids = ids_of(run, text);
  CHECK_THROWS_WITH(Scorer(run, {}).score(whole({"the cat", text})),
                    Catch::StartsWith("the text 'the cats see") &&
                        Catch::Contains(concat("' has ", ids.size(),
                                               " tokens, and runs/random reads at most 40 of a text; "
                                               "shorten it, or score it in windows with a stride")));
  CHECK_THROWS_AS(Scorer(run, {}).score(whole({text})), DataError);
  const auto score = Scorer(run, {.stride = 7}).score(whole({text}))[0];
  std::vector<double> wanted;
  const auto logits_at = [&](size_t begin, size_t end, bool separator) {
    const Ids part(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end));
    return logits_of(run, {.input_ids = row_of(separator ? joined({{run.tokenizer.special().sep}, part}) : part)})[-1];
  };
  for (size_t at = 0; at < ids.size(); ++at) {
    const size_t end = at < 40 ? 40 : std::min(ids.size(), 40 + ((at - 40) / 7 + 1) * 7), begin = end - 40;
    wanted.push_back(log_probability(logits_at(begin, at, begin == 0), ids[at]));
  }
  check_values(values_of(score), wanted);
}

TEST_CASE("tokens that are masked together are not scored in several windows", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto text = long_text(60);
  const Scorer spans(run, {.form = ScoringForm::pll_span, .stride = 7});
  CHECK_THROWS_WITH(spans.score(whole({text})), Catch::EndsWith("shorten it, or take a model that reads more"));
  CHECK(spans.score(std::vector<Passage>{{.left = text, .scored = " a dog"}})[0].tokens.size() == 2);
}

TEST_CASE("windows of masked models are framed like whole texts", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");
  const auto text = long_text(45);
  const auto ids = ids_of(run, text);
  const auto& special = run.tokenizer.special();
  const auto score = Scorer(run, {.stride = 10}).score(whole({text}))[0];
  REQUIRE(score.tokens.size() == ids.size());
  const size_t at = 43, begin = 48 - 38, end = 48;
  Ids part(ids.begin() + static_cast<std::ptrdiff_t>(begin), ids.begin() + static_cast<std::ptrdiff_t>(end));
  part[at - begin] = special.mask;
  const auto logits = logits_of(run, {.input_ids = row_of(joined({{special.cls}, part, {special.sep}}))});
  CHECK(score.tokens[at].log_probability == Approx(log_probability(logits[at - begin + 1], ids[at])).margin(2e-5));
}

TEST_CASE("rows of a long text are made in parts, which ask for each of its tokens once", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "bert");  // 40 positions
  const auto rows = make_scoring_rows(run, ScoringForm::pll);
  const auto encoded_text = [&](int words) {
    return encode(run.tokenizer, {.scored = long_text(words)}, PassageText::whole);
  };
  std::vector<EncodedPassage> passages{encoded_text(3), {}, encoded_text(200), encoded_text(2)};
  const size_t all = passages[0].tokens.size() + passages[2].tokens.size() + passages[3].tokens.size();
  constexpr size_t limit = 500, stride = 10;
  std::set<std::pair<uint32_t, uint32_t>> asked;
  size_t parts = 0;
  for (WindowPlace next; next.passage < passages.size(); ++parts) {
    const auto made = next_rows(*rows, passages, stride, limit, next);
    size_t tokens = 0;
    for (const auto& row : made) {
      tokens += row.ids.size();
      for (const auto& one : row.predictions) CHECK(asked.emplace(one.passage, one.token).second);
    }
    CHECK(tokens < limit + (parts == 0 ? 38 : stride) * 40);  // a window of the text is not cut
  }
  CHECK(parts > 10);
  CHECK(asked.size() == all);
  CHECK(passages[2].tokens.empty());
}

TEST_CASE("every token of a long text has one score, in every family and with any stride", "[scoring]") {
  const auto name = GENERATE("bert", "electra", "gpt2", "bart", "pegasus", "transformer", "modernbert", "t5", "xlnet");
  const TempDir dir;
  INFO(name);
  auto run = random_run(dir, name);
  run.config.data.max_seq_length = 40;  // the rows of t5 and xlnet, which have no limit
  const auto text = long_text(50);
  const auto count = ids_of(run, text).size();
  for (const int64_t stride : {1, 16, 36})
    for (const auto form : {ScoringForm::pll, ScoringForm::likelihood, ScoringForm::detection}) {
      if (!scoring_fault(run.config, form).empty()) continue;
      const auto score = Scorer(run, {.form = form, .stride = stride}).score(whole({text}))[0];
      CHECK(score.tokens.size() == count);
      for (const double value : values_of(score)) CHECK(value < 0);
    }
  CHECK_THROWS_WITH(Scorer(run, {.stride = 41}), Catch::Contains("and the stride is 41; choose one from 1 to "));
}

TEST_CASE("a model without a limit reads windows of its training rows, and says so", "[scoring]") {
  const TempDir dir;
  auto run = random_run(dir, "xlnet");
  run.config.data.max_seq_length = 20;
  const auto text = long_text(30);
  const auto ids = ids_of(run, text);
  const Scorer scorer(run, {.stride = 4});
  CHECK_THAT(scorer.description(), Catch::EndsWith(", in windows of 20 tokens (data.max_seq_length)"));
  const auto values = values_of(scorer.score(whole({text}))[0]);
  REQUIRE(values.size() == ids.size());
  // The window that ends 4 tokens after the first one, which has 18 tokens and two special ones, as a text of its own.
  const auto placed = run.tokenizer.encode_with_offsets(text);
  const auto part = text.substr(placed[4].begin, placed[21].end - placed[4].begin);
  const auto second = values_of(Scorer(run, {}).score(whole({part}))[0]);
  REQUIRE(second.size() == 18);
  for (size_t k = 14; k < 18; ++k) CHECK(values[k + 4] == Approx(second[k]).margin(2e-5));
  CHECK_THROWS_WITH(
      Scorer(run, {.stride = 19}),
      Catch::Contains("reads 18 tokens of a text at once, and the stride is 19; choose one from 1 to 18"));
}

TEST_CASE("a text whose attention would fill the memory is refused for a model without a limit", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, GENERATE("t5", "xlnet"));
  const auto text = long_text(12000);
  for (const auto form : {ScoringForm::pll, ScoringForm::likelihood}) {
    if (!scoring_fault(run.config, form).empty()) continue;
    CHECK_THROWS_WITH(Scorer(run, {.form = form}).score(whole({text})),
                      Catch::Contains(" of a text in a gigabyte of attention scores; shorten it, or score it in "
                                      "windows with a stride (--stride N)"));
    Scorer(run, {.form = form, .stride = 64}).check_fit(whole({text}));
  }
}

TEST_CASE("windows over a completion have what is before them as their source", "[scoring]") {
  const TempDir dir;
  const auto run = random_run(dir, "pegasus");
  const auto text = long_text(50);
  const auto ids = ids_of(run, text);
  const auto score = Scorer(run, {.stride = 10}).score(whole({text}))[0];
  const auto& special = run.tokenizer.special();
  const size_t room = 40 - 2, begin = room, at = begin + 3;
  const auto slice = [&](size_t from, size_t to) {
    return Ids(ids.begin() + static_cast<std::ptrdiff_t>(from), ids.begin() + static_cast<std::ptrdiff_t>(to));
  };
  const auto logits = logits_of(
      run, {.input_ids = row_of(joined({slice(0, begin), {special.sentence_mask, special.sep}})),
            .decoder_input_ids =
                row_of(joined({{decoding_ids_of(run.config.model).decoder_start_token_id}, slice(begin, at)}))});
  CHECK(score.tokens[at].log_probability == Approx(log_probability(logits[-1], ids[at])).margin(2e-5));
}

TEST_CASE("the words of a text are separated by white space", "[scoring]") {
  CHECK(count_words("") == 0);
  CHECK(count_words("  two\twords\n") == 2);
  CHECK(count_words("no\xC2\xA0"
                    "break\xE3\x80\x80space") == 3);
}
