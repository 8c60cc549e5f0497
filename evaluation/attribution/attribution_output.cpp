#include "evaluation/attribution/attribution_output.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/report/report.h"
#include "core/spelling.h"
#include "core/text.h"

namespace cloze {

namespace {

constexpr double shown_share = 0.1, strong_share = 0.5;  // of the most

double most_of(const std::vector<double>& values) {
  double most = 0;
  for (const auto value : values) most = std::max(most, std::abs(value));
  return most;
}

std::string signed_digits(double value) { return (value > 0 ? "+" : "") + digits(value, 3); }

/// `probability 0.98, score 3.21, baseline -0.1`
std::string numbers_of(const ShownScore& shown) {
  const auto& [values, score, baseline, probability, check, points] = shown.attribution;
  const bool has_probability = probability != score;
  return concat(has_probability ? concat("probability ", fixed(probability, 3), ", ") : "", "score ", digits(score, 4),
                ", baseline ", digits(baseline, 4));
}

/// `dev:3: good, right`
std::string heading_of(const Explained& of) {
  const auto& shown = of.label.empty() ? of.predicted : of.label;
  const bool is_other = of.part.empty() && shown != of.predicted;
  return concat(of.name, of.part.empty() ? "" : " (" + of.part + ")", ": ", shown,
                is_other ? ", predicted is " + of.predicted : "",
                of.gold.empty()           ? ""
                : of.gold == of.predicted ? ", right"
                                          : ", right is " + of.gold);
}

/// A word of the text form.
std::string marked(const std::string& word, double value, double most, bool has_colours) {
  if (std::abs(value) < shown_share * most || most == 0) return visible(word);
  if (!has_colours) return concat(visible(word), "(", signed_digits(value), ")");
  const auto* bold = std::abs(value) >= strong_share * most ? "\033[1m" : "";
  return concat(bold, value > 0 ? "\033[32m" : "\033[31m", visible(word), "\033[0m");
}

std::string shares_text(const Faithfulness::ByShare& values) {
  std::string text;
  for (const auto value : values) text += (text.empty() ? "" : " / ") + fixed(value, 3);
  return text;
}

}  // namespace

const char* const faithfulness_words =
    "Comprehensiveness: by how much the probability falls when the words of the highest values are replaced by the "
    "baseline (much is good); sufficiency: when all others are (little is good). Differences are those from words in "
    "random order, with 95 % intervals over items.";

std::string words_of(AttributionMethod method) {
  std::string name = name_of(method);
  std::ranges::replace(name, '-', ' ');
  return name;
}

std::string check_words(AttributionMethod method, const Attribution& attribution) {
  if (!attribution.check) return "";
  if (method == AttributionMethod::lime) return "R^2 " + fixed(*attribution.check, 3);
  const auto percent = digits(100 * *attribution.check, 2) + " %";
  return (method == AttributionMethod::shap ? "efficiency error " : "completeness error ") + percent;
}

std::string text_of(const ShownScore& shown, AttributionMethod method, bool has_colours, int64_t columns) {
  const auto& values = shown.attribution.values;
  const double most = most_of(values);
  std::string words;
  for (size_t w = 0; w < values.size(); ++w) {
    const auto& word = shown.explained.words[w];
    const bool begins_second = word.is_second && (w == 0 || !shown.explained.words[w - 1].is_second);
    words += concat(w > 0 ? " " : "", begins_second ? "| " : "", marked(word.text, values[w], most, has_colours));
  }
  const auto check = check_words(method, shown.attribution);
  return wrapped("", concat(heading_of(shown.explained), "; ", numbers_of(shown), check.empty() ? "" : "; " + check),
                 columns, 2) +
         wrapped("  ", words, columns, 2);
}

nlohmann::ordered_json json_of(const ShownScore& shown, AttributionMethod method) {
  const auto& [explained, attribution, faithfulness] = shown;
  nlohmann::ordered_json made{{"item", explained.name}};
  if (!explained.part.empty()) made["part"] = explained.part;
  if (!explained.label.empty()) made["label"] = explained.label;
  made["predicted"] = explained.predicted;
  if (!explained.gold.empty()) made["gold"] = explained.gold;
  made["method"] = name_of(method);
  made["score"] = attribution.score;
  made["baseline"] = attribution.baseline;
  if (attribution.probability != attribution.score) made["probability"] = attribution.probability;
  if (attribution.check)
    made[method == AttributionMethod::lime   ? "r_squared"
         : method == AttributionMethod::shap ? "efficiency_error"
                                             : "completeness_error"] = *attribution.check;
  if (attribution.points > 0) made["points"] = attribution.points;
  const bool is_pair = std::ranges::any_of(explained.words, &RowWord::is_second);
  auto& words = made["words"] = nlohmann::ordered_json::array();
  for (size_t w = 0; w < explained.words.size(); ++w) {
    auto& word = words.emplace_back(nlohmann::ordered_json{{"word", explained.words[w].text}});
    if (is_pair) word["text"] = explained.words[w].is_second ? 2 : 1;
    word["value"] = attribution.values[w];
  }
  made["faithfulness"] = to_json(faithfulness);
  return made;
}

std::string html_of(const ShownScore& shown, AttributionMethod method) {
  const auto& values = shown.attribution.values;
  const double most = most_of(values);
  auto html = concat("<p class=\"kicker\">", escaped_html(heading_of(shown.explained)), "</p>\n<p class=\"words\">");
  for (size_t w = 0; w < values.size(); ++w) {
    const auto& word = shown.explained.words[w];
    const bool begins_second = word.is_second && (w == 0 || !shown.explained.words[w - 1].is_second);
    html += concat(begins_second ? "<b>|</b> " : "", "<span class=\"", values[w] < 0 ? "against" : "for",
                   "\" style=\"--v: ", fixed(most > 0 ? std::abs(values[w]) / most : 0, 3), "\" title=\"",
                   signed_digits(values[w]), "\">", escaped_html(visible(word.text)), "</span> ");
  }
  const auto check = check_words(method, shown.attribution);
  const auto& f = shown.faithfulness;
  return html + "</p>\n" +
         html_note(concat(numbers_of(shown), check.empty() ? "" : "; " + check, "; comprehensiveness ",
                          shares_text(f.comprehensiveness), " (random order ", shares_text(f.random_comprehensiveness),
                          "), sufficiency ", shares_text(f.sufficiency), " (", shares_text(f.random_sufficiency), ")"));
}

std::string page_of(const AttributionFacts& facts, const std::string& body, const FaithfulnessMeans& means) {
  constexpr const char* style = R"css(<style>
.words { max-width: none; line-height: 1.9; }
.words span { border-radius: 3px; padding: .1rem .2rem; }
.words .for { background: rgb(0 114 178 / calc(var(--v) * .7)); }
.words .against { background: rgb(213 94 0 / calc(var(--v) * .7)); }
</style>
)css";
  const auto note = html_note(
      "Words over blue raise the score, words over orange lower it, the darker the more; a word shows its value under "
      "the pointer. Faithfulness below each text is that at 10, 20 and 50 % of its words.");
  return to_html(
      Report{.title = "Words that answers rest on",
             .question = concat("What ", facts.run, " reads, by ", words_of(facts.method)),
             .facts = {{"items", std::to_string(facts.items)}, {"baseline", facts.baseline}},
             .parts = {{.heading = "Texts", .chart = style + note + body},
                       {.heading = "Faithfulness", .tables = {means.table()}, .sentences = {faithfulness_words}}}});
}

}  // namespace cloze
