#include "analysis/inspect.h"
#include "core/log.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

/// Colours the marks of predicted tokens.
std::string coloured(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = i == 0 || text[i - 1] == ' ', ends = i + 1 == text.size() || text[i + 1] == ' ';
    if (starts && (text[i] == '{' || text[i] == '<' || text[i] == '('))
      out += text[i] == '{' ? "\033[31m" : text[i] == '<' ? "\033[33m" : "\033[36m";
    out += text[i];
    if (ends && (text[i] == '}' || text[i] == '>' || text[i] == ')')) out += "\033[0m";
  }
  return out;
}

}  // namespace

std::string to_text(const Inspection& found, bool colour) {
  std::string out;
  for (const auto& e : found.examples) {
    const auto marked = [&](const std::string& tokens) { return colour ? coloured(tokens) : tokens; };
    if (e.token_type_ids.empty())
      out += "input      " + marked(e.corrupted) + "\ntarget     " + marked(e.targets) + "\n";  // of a decoder
    else
      out += "text       " + e.text + "\ninput      " + marked(e.corrupted) + "\npredicted  " + e.targets + "\n";
    if (e.pair_label >= 0)
      out += words("pair       ", e.pair_label == 0 ? "0: B follows A" : "1: B does not follow A", "\n");
    if (e.prefix >= 0) out += words("row        ", e.prefix == 0 ? "causal" : "masked, bidirectional", "\n");
    if (e.masking >= 0) out += words("masking    mixture.", e.masking, "\n");
    out += "\n";
  }
  const auto& f = found.facts;
  const auto predicted = [](const json& facts) {
    return words("predicted  ", percent(facts["predicted_share"]),
                 facts.contains("causal_share") ? " of the tokens of masked rows, " : " of all tokens, ",
                 percent(facts["predicted_share_of_candidates"]), " of the candidates; ",
                 facts["sequences_without_prediction"].get<int64_t>(), " sequences without predictions\n");
  };
  const auto split = [](const json& facts) {
    return facts.contains("split")
               ? words("split      mask ", percent(facts["split"]["mask"]), ", random ",
                       percent(facts["split"]["random"]), ", keep ", percent(facts["split"]["keep"]), "\n")
               : "";
  };
  if (f.contains("source_length")) {
    char lengths[160];
    std::snprintf(
        lengths, sizeof lengths, "lengths    %.1f source and %.1f target tokens on average; %.2f masks per source\n",
        f["source_length"].get<double>(), f["target_length"].get<double>(), f["masks_in_a_source"].get<double>());
    out += words("{mask token}\n\nsequences  ", thousands(f["sequences"].get<uint64_t>()), ", ",
                 thousands(f["tokens"].get<uint64_t>()), " tokens; padding ", percent(f["padding_share"]), ", unknown ",
                 percent(f["unknown_share"]), "; ", percent(f["as_long_as_allowed_share"]), " of maximum length\n",
                 lengths);
    if (f.contains("hidden_share"))
      out += words("corrupted  ", percent(f["hidden_share"]), " of the tokens are missing from the source\n");
  } else {
    out += words("{masked} <random> (kept)\n\nsequences  ", thousands(f["sequences"].get<uint64_t>()), ", ",
                 thousands(f["tokens"].get<uint64_t>()), " tokens; padding ", percent(f["padding_share"]), ", unknown ",
                 percent(f["unknown_share"]), "\n", predicted(f));
  }
  out += words("coverage   ", percent(f["read_share"]), " of the text is used per epoch; rows are ",
               percent(f["full_share"]), " full\n");
  out += split(f);
  if (f.contains("causal_share")) out += words("causal     ", percent(f["causal_share"]), " of the rows\n");
  if (f.contains("pair_label_1_share"))
    out += words("pairs      ", percent(f["pair_label_1_share"]), " with label 1\n");
  const auto histogram = [&](const char* name, const char* unit, const auto& counts) {
    double all = 0, sum = 0;
    for (size_t n = 0; n < counts.size(); ++n) {
      all += static_cast<double>(counts[n]);
      sum += static_cast<double>(n) * static_cast<double>(counts[n]);
    }
    if (all == 0) return;
    char text[64];
    std::snprintf(text, sizeof text, "%-10s %-7s ", name, unit);
    out += text;
    for (size_t n = counts[0] > 0 ? 0 : 1; n < counts.size() && n <= 10; ++n)
      out += words(n, ": ", percent(static_cast<double>(counts[n]) / all), "  ");
    std::snprintf(text, sizeof text, "mean %.2f\n", sum / all);
    out += text;
  };
  for (size_t i = 0; i < found.lengths.size(); ++i) {
    const auto& lengths = found.lengths[i];
    if (f.contains("mixture")) {
      const auto& facts = f["mixture"][i];
      out += words("\n", lengths.name, "  ", thousands(facts["sequences"].get<uint64_t>()), " sequences, ",
                   percent(facts["share"]), " of all\n", predicted(facts), split(facts));
    } else if (!lengths.name.empty()) {
      out += words("\n", lengths.name, "\n");
    }
    histogram("runs", "tokens", lengths.runs);
    histogram(lengths.runs.empty() ? "runs" : "", "words", lengths.words);
    histogram("drawn", lengths.unit, lengths.drawn);
    histogram("expected", lengths.unit, lengths.expected);
  }
  out += "\n";
  for (const auto& check : found.checks) {
    char line[200];
    std::snprintf(line, sizeof line, "%-4s %-66s %12s  expected %s  p %.3g\n", check.passed ? "ok" : "FAIL",
                  check.name.c_str(), significant(check.observed, 6).c_str(), significant(check.expected, 6).c_str(),
                  check.p_value);
    out += line;
  }
  return out;
}

json to_json(const Inspection& found) {
  json examples = json::array(), checks = json::array(), lengths = json::array();
  for (const auto& e : found.examples) {
    examples.push_back({{"input_ids", e.input_ids},
                        {"labels", e.labels},
                        {"token_type_ids", e.token_type_ids},
                        {"text", e.text},
                        {"corrupted", e.corrupted},
                        {"targets", e.targets}});
    if (e.pair_label >= 0) examples.back()["pair_label"] = e.pair_label;
    if (e.prefix >= 0) examples.back()["prefix"] = e.prefix;
    if (e.masking >= 0) examples.back()["masking"] = e.masking;
    if (!e.decoder_input_ids.empty()) examples.back()["decoder_input_ids"] = e.decoder_input_ids;
  }
  for (const auto& c : found.checks)
    checks.push_back({{"name", c.name},
                      {"observed", c.observed},
                      {"expected", c.expected},
                      {"p_value", c.p_value},
                      {"passed", c.passed}});
  for (const auto& l : found.lengths)
    lengths.push_back({{"name", l.name},
                       {"runs", l.runs},
                       {"words", l.words},
                       {"drawn", l.drawn},
                       {"expected", l.expected},
                       {"unit", l.unit}});
  return {{"examples", examples}, {"facts", found.facts}, {"checks", checks}, {"lengths", lengths}};
}

}  // namespace cloze
