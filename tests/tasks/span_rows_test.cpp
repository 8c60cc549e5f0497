// Questions and windows of contexts: places of answers in the original text, and answers that are substrings of it.
#include <algorithm>
#include <filesystem>

#include "tasks/scores/span_answer.h"
#include "tasks/kinds/spans/rows.h"
#include "tests/support/catch.h"
#include "tests/tasks/task_items.h"

using namespace cloze;

namespace {

struct SpanRows {
  std::vector<TaskRow> rows{};
  RowCounts counts{};
};

TaskItem question(std::string asked, std::string context, std::vector<AnswerSpan> answers) {
  return {.id = "q",
          .text = std::move(asked),
          .second = std::move(context),
          .is_pair = true,
          .gold = spans_answer(std::move(answers))};
}

SpanRows read(const Tokenizer& tokenizer, const TaskItem& item, int64_t length,
              const Truncation& cut = Windows{.stride = 2}, int64_t max_question = 64) {
  SpanRows rows;
  TaskRowMaker(tokenizer, special_token_template(tokenizer),
               {.kind = "spans", .max_length = length, .truncation = cut, .max_question = max_question})
      .add(item, 0, rows.rows, rows.counts);
  return rows;
}

std::string text_at(const TaskItem& item, const TaskRow& row) {
  const auto begin = row.bytes[static_cast<size_t>(row.gold.labels[0])][0],
             end = row.bytes[static_cast<size_t>(row.gold.labels[1])][1];
  return item.second.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
}

Tokenizer family_tokenizer(const TempDir& dir, const std::string& name, const std::string& config) {
  std::filesystem::create_directories(dir / name);
  std::filesystem::copy_file(SOURCE_DIR "/tests/data/tokenizers/families/" + name + ".model",
                             dir / (name + "/spiece.model"));
  dir.write(name + "/config.json", config);
  return Tokenizer::open(dir / name);
}

}  // namespace

TEST_CASE("every window has the question, and every token of the context is in one, with its bytes", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto item = question("a b", "cxy d e f a b c d", {{"f a", 8}});
  const auto found = read(tokenizer, item, 10);
  std::vector<bool> seen(item.second.size());
  size_t right = 0;
  for (const auto& row : found.rows) {
    CHECK((std::equal(row.ids.begin(), row.ids.begin() + 4, std::vector<int32_t>{2, 5, 6, 3}.begin())));
    CHECK(row.second_begin == 4);
    for (size_t i = 0; i < row.ids.size(); ++i) {
      const auto [begin, end] = row.bytes[i];
      const auto at = static_cast<int64_t>(i);
      REQUIRE((begin >= 0) == (at >= row.second_begin && at < row.second_end));
      for (auto byte = begin; byte < end; ++byte) seen[static_cast<size_t>(byte)] = true;
    }
    if (row.gold.labels[0] == 0) {
      CHECK(row.gold.labels[1] == 0);
      continue;
    }
    ++right;
    CHECK(text_at(item, row) == "f a");
  }
  for (size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == (item.second[i] != ' '));
  CHECK(right >= 1);
  CHECK(found.counts.windows_without_answer == found.rows.size() - right);
  CHECK(found.counts.lost_answers == 0);
  // The question keeps so many tokens, and half of a row at most.
  CHECK(read(tokenizer, item, 10, Windows{.stride = 2}, 1).rows[0].first_end == 2);
  CHECK(read(tokenizer, question(repeated("a ", 30), "b", {}), 13).rows[0].first_end == 6);
  CHECK(read(tokenizer, question(repeated("a ", 30), "b", {}), 13).counts.first.cut_tokens == 25);
}

TEST_CASE("no window loses or doubles an answer: whole in each window that says so, else at the class token",
          "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const std::string context = repeated("a b c d e f ", 5);
  for (int64_t begin = 0; begin + 5 < static_cast<int64_t>(context.size()); begin += 2) {
    const auto item = question("a", context, {{context.substr(static_cast<size_t>(begin), 5), begin}});
    const auto found = read(tokenizer, item, 14, Windows{.stride = 4});
    size_t right = 0;
    for (const auto& row : found.rows) {
      REQUIRE(row.gold.labels.size() == 2);
      if (row.gold.labels[0] == row.class_token) continue;
      ++right;
      REQUIRE(row.bytes[static_cast<size_t>(row.gold.labels[0])][0] == begin);
      REQUIRE(row.bytes[static_cast<size_t>(row.gold.labels[1])][1] == begin + 5);
    }
    REQUIRE(right >= 1);
    REQUIRE(found.counts.windows_without_answer == found.rows.size() - right);
  }
  const auto split = read(tokenizer, question("a", context, {{context.substr(0, 39), 0}}), 14, Windows{.stride = 4});
  CHECK(split.counts.lost_answers == 1);
  CHECK(split.counts.split_answers >= 2);
}

TEST_CASE("an answer that begins inside a token gives the fewest tokens around it", "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  auto item = question("a", "b axy c", {{"y c", 4}});  // a ##x ##y: from ##y on
  CHECK(text_at(item, read(tokenizer, item, 30).rows.at(0)) == "y c");
  item = question("a", "b cafe c", {{"fe", 4}});
  CHECK(text_at(item, read(tokenizer, item, 30).rows.at(0)) == "cafe");
  item = question("a", "b ZZ c", {{"Z", 3}});  // unknown
  CHECK(text_at(item, read(tokenizer, item, 30).rows.at(0)) == "ZZ");
}

TEST_CASE("without an answer a window points at the class token, and an answer without a token is not counted",
          "[tasks]") {
  TempDir dir;
  const auto tokenizer = small_wordpiece(dir);
  const auto none = read(tokenizer, question("a", "b c", {}), 30);
  CHECK((none.rows.at(0).gold.labels == std::vector<int64_t>{0, 0}));
  CHECK(none.counts.items_without_answer == 1);
  const auto lost = read(tokenizer, question("a", "b \u200B c", {{"\u200B", 2}}), 30);
  CHECK(lost.rows.at(0).gold.labels.empty());
  CHECK(lost.counts.answers_without_token == 1);
  const auto unknown = read(tokenizer, {.id = "u", .text = "a", .second = "b", .is_pair = true}, 30);
  CHECK(unknown.rows.at(0).gold.labels.empty());
  CHECK(read(tokenizer, question("a", "", {}), 30).rows.size() == 1);
}

TEST_CASE("bytes are those of the original text, through every normaliser", "[tasks]") {
  TempDir dir;
  const auto wordpiece = small_wordpiece(dir);
  const auto t5 = family_tokenizer(dir, "t5", R"({"model_type": "t5"})");
  const auto albert = family_tokenizer(dir, "albert", R"({"model_type": "albert"})");
  const auto xlnet = family_tokenizer(dir, "xlnet", R"({"model_type": "xlnet"})");
  const auto bytes = family_tokenizer(dir, "bytes", R"({"model_type": "t5"})");
  const std::string context =
      "The caf\u00E9 and the cafe\u0301, \u201Cquoted\u201D \u2014 x\u00BDy \uFB01ne \uFF21\uFF22 \U0001F600 1,200 "
      "\u4E2D\u6587 mat.";
  const std::vector<std::string> answers{
      "caf\u00E9",  "cafe\u0301", "\u201Cquoted\u201D", "quoted", "x\u00BDy", "\uFB01ne", "\uFF21\uFF22",
      "\U0001F600", "1,200",      "\u4E2D\u6587",       "mat",    "The",      "\u00BD",   "\U0001F600 1,200"};
  for (const auto& tokenizer : {wordpiece, t5, albert, xlnet, bytes}) {
    for (const auto& answer : answers) {
      const auto begin = static_cast<int64_t>(context.find(answer));
      const auto item = question("the", context, {{answer, begin}});
      const auto row = read(tokenizer, item, 400, Windows{.stride = 128}).rows.at(0);
      INFO(tokenizer.kind() << " " << answer);
      REQUIRE(row.gold.labels.size() == 2);
      // A model that is sure gives a substring of the context which has the answer.
      SpanLogits sure{.start = std::vector<double>(row.ids.size()), .end = std::vector<double>(row.ids.size())};
      sure.start[static_cast<size_t>(row.gold.labels[0])] = sure.end[static_cast<size_t>(row.gold.labels[1])] = 9;
      const auto found = answer_of(context, std::vector{row}, std::vector{sure}).n_best.at(0);
      CHECK(found.text ==
            context.substr(static_cast<size_t>(found.begin), static_cast<size_t>(found.end - found.begin)));
      CHECK(found.begin <= begin);
      CHECK(found.end >= begin + static_cast<int64_t>(answer.size()));
      CHECK(found.text.size() <= answer.size() + 14);
    }
  }
}

TEST_CASE("the text of every token is segmented into that token again", "[tasks]") {
  TempDir dir;
  const auto stripped = [](std::string piece) {
    for (const std::string mark : {"\u2581", "##", "\u0120"})
      if (piece.starts_with(mark)) piece.erase(0, mark.size());
    return piece;
  };
  const std::string text =
      "A bxy, cxy. D e f. The cat sat on the mat, and the cats saw a caf\u00E9 of 1,200 mats. \u201CTHE\u201D mat?";
  for (const auto& tokenizer : {small_wordpiece(dir), family_tokenizer(dir, "t5", R"({"model_type": "t5"})"),
                                family_tokenizer(dir, "albert", R"({"model_type": "albert"})"),
                                family_tokenizer(dir, "bigbird", R"({"model_type": "big_bird"})")}) {
    size_t compared = 0;
    for (const auto& token : context_tokens(tokenizer, text)) {
      if (tokenizer.is_special(token.id) || token.begin == token.end) continue;
      std::string again;
      for (const auto id : tokenizer.encode(text.substr(token.begin, token.end - token.begin)))
        again += stripped(tokenizer.piece(id));
      CHECK(again == stripped(tokenizer.piece(token.id)));
      ++compared;
    }
    CHECK(compared > 10);
  }
}
