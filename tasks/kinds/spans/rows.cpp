#include "tasks/kinds/spans/rows.h"

#include <algorithm>

#include "data/tokenizers/characters.h"
#include "data/tokenizers/utf8.h"

namespace cloze {

namespace {

bool is_inside_code_point(std::string_view text, size_t at) { return at < text.size() && (text[at] & 0xC0) == 0x80; }

/// The start of the last character before `end`.
size_t start_of_last(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && is_inside_code_point(text, end));
  return end;
}

/// White space, or a character without a form of its own (U+200B), which tokenizers read as such or leave out.
bool is_space_at(std::string_view text, size_t at) {
  const auto code = next_code_point(text, at);
  return is_white_space(code) || is_control(code);
}

/// Tokens [first, last] of a context around an answer; none: `first` is after `last`.
struct TokensOfAnswer {
  int64_t first = 0, last = -1;
  bool exists() const { return first <= last; }
  bool is_within(const TokenWindow& window) const { return exists() && first >= window.begin && last < window.end; }
  bool overlaps(const TokenWindow& window) const { return exists() && first < window.end && last >= window.begin; }
};

/// The fewest tokens that have all bytes of an answer that any token has.
TokensOfAnswer tokens_around(const std::vector<TokenSpan>& tokens, const AnswerSpan& answer) {
  const auto begin = static_cast<size_t>(answer.begin), end = begin + answer.text.size();
  const auto overlaps = [&](const TokenSpan& token) { return token.begin < end && token.end > begin; };
  const auto first = std::find_if(tokens.begin(), tokens.end(), overlaps);
  if (first == tokens.end()) return {};
  const auto last = std::find_if(tokens.rbegin(), tokens.rend(), overlaps);
  return {first - tokens.begin(), tokens.rend() - last - 1};
}

/// Notes the bytes of the tokens of a window that a row has.
void set_bytes(TaskRow& row, const std::vector<TokenSpan>& context, const TokenWindow& window) {
  row.bytes.assign(row.ids.size(), {-1, -1});
  for (auto at = window.begin; at < window.end; ++at) {
    const auto& token = context[static_cast<size_t>(at)];
    row.bytes[static_cast<size_t>(row.second_begin + at - window.begin)] = {static_cast<int64_t>(token.begin),
                                                                            static_cast<int64_t>(token.end)};
  }
}

}  // namespace

std::vector<TokenSpan> context_tokens(const Tokenizer& tokenizer, std::string_view text) {
  auto tokens = tokenizer.encode_with_offsets(text);
  for (auto& [id, begin, end, word] : tokens) {
    while (begin > 0 && is_inside_code_point(text, begin)) --begin;
    while (is_inside_code_point(text, end)) ++end;
    const auto all_begin = begin, all_end = end;
    while (begin < end && is_space_at(text, begin)) next_code_point(text, begin);
    while (begin < end && is_space_at(text, start_of_last(text, end))) end = start_of_last(text, end);
    if (begin == end) std::tie(begin, end) = std::pair(all_begin, all_end);  // a token of spaces
  }
  return tokens;
}

void add_context_rows(const TaskRowMaker& maker, const TaskItem& item, int64_t number, std::vector<TaskRow>& rows,
                      RowCounts& counts) {
  const auto question = maker.tokenizer().encode(item.text);
  const auto context = context_tokens(maker.tokenizer(), item.second);
  std::vector<int32_t> ids;
  for (const auto& token : context) ids.push_back(token.id);
  const auto length = static_cast<int64_t>(question.size()), read = static_cast<int64_t>(ids.size());
  const auto kept = std::min({length, maker.options().max_question, maker.room(true) / 2});
  const auto kept_question = std::span(question).first(static_cast<size_t>(kept));
  const auto places = maker.room(true) - kept;
  counts.first.add(length, kept);
  counts.second.add(read, read);

  const bool is_known = item.gold.is_known(), has_answer = !item.gold.spans.empty();
  counts.items_without_answer += is_known && !has_answer;
  const auto answer = has_answer ? tokens_around(context, item.gold.spans.front()) : TokensOfAnswer{};
  counts.answers_without_token += has_answer && !answer.exists();
  bool is_whole_anywhere = false;
  int64_t number_of_window = 0;
  for (const auto& window : stride_windows(read, places, step_of(maker.options().truncation, places))) {
    auto row = maker.framed(
        kept_question, std::span(ids).subspan(static_cast<size_t>(window.begin), static_cast<size_t>(window.size())),
        true);
    row.item = number;
    row.window = number_of_window++;
    set_bytes(row, context, window);
    row.class_token = position_of(maker.row_template().no_answer_place, static_cast<int64_t>(row.ids.size()));
    row.gold.form = item.gold.form;
    const bool is_whole = answer.is_within(window);
    is_whole_anywhere = is_whole_anywhere || is_whole;
    if (is_whole) {
      const auto before = row.second_begin - window.begin;
      row.gold.labels = {before + answer.first, before + answer.last};
    } else if (is_known && (!has_answer || answer.exists())) {
      row.gold.labels = {row.class_token, row.class_token};
    }
    counts.windows_without_answer += has_answer && !is_whole;
    counts.split_answers += !is_whole && answer.overlaps(window);
    rows.push_back(std::move(row));
  }
  counts.lost_answers += answer.exists() && !is_whole_anywhere;
}

}  // namespace cloze
