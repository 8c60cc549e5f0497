#include "core/log.h"
#include "core/text.h"
#include "train/inspection/row_inspector.h"

namespace cloze {

namespace {

using nlohmann::json;

std::string percent(double fraction) { return fixed(100 * fraction, 2) + " %"; }

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

std::string example_text(const InspectedExample& e, bool colour) {
  const auto marked = [&](const std::string& tokens) { return colour ? coloured(tokens) : tokens; };
  std::string out;
  if (e.token_type_ids.empty())
    out += "input      " + marked(e.corrupted) + "\ntarget     " + marked(e.targets) + "\n";  // of a decoder
  else
    out += "text       " + e.text + "\ninput      " + marked(e.corrupted) + "\npredicted  " + e.targets + "\n";
  for (const auto& [name, value] : notes_of(e)) out += padded(name, 11) + value + "\n";
  return out + "\n";
}

std::string predicted_text(const json& facts) {
  return concat("predicted  ", percent(facts["predicted_share"]),
                facts.contains("causal_share") ? " of the tokens of masked rows, " : " of all tokens, ",
                percent(facts["predicted_share_of_candidates"]), " of the candidates; ",
                facts["sequences_without_prediction"].get<int64_t>(), " sequences without predictions\n");
}

std::string split_text(const json& facts) {
  if (!facts.contains("split")) return "";
  const auto& split = facts["split"];
  return concat("split      mask ", percent(split["mask"]), ", random ", percent(split["random"]), ", keep ",
                percent(split["keep"]), "\n");
}

/// The line on the number of sequences, up to the share of unknown tokens.
std::string sequences_text(const json& f) {
  return concat("sequences  ", thousands(f["sequences"].get<uint64_t>()), ", ", thousands(f["tokens"].get<uint64_t>()),
                " tokens; padding ", percent(f["padding_share"]), ", unknown ", percent(f["unknown_share"]));
}

/// Facts of rows of a source and a target.
std::string generative_text(const json& f) {
  const auto lengths = concat("lengths    ", fixed(f["source_length"], 1), " source and ", fixed(f["target_length"], 1),
                              " target tokens on average; ", fixed(f["masks_in_a_source"], 2), " masks per source\n");
  auto out = concat(sequences_text(f), "; ", percent(f["as_long_as_allowed_share"]), " of maximum length\n", lengths);
  if (f.contains("hidden_share"))
    out += concat("corrupted  ", percent(f["hidden_share"]), " of the tokens are missing from the source\n");
  return out;
}

std::string facts_text(const json& f) {
  std::string out =
      f.contains("source_length") ? generative_text(f) : concat(sequences_text(f), "\n", predicted_text(f));
  out += concat("coverage   ", percent(f["read_share"]), " of the text is used per epoch; rows are ",
                percent(f["full_share"]), " full\n", split_text(f));
  if (f.contains("texts"))
    for (const auto& text : f["texts"])
      out += concat("text       ", percent(text["read_share"]), " of the tokens are of ",
                    text["tokens"].get<std::string>(), ", whose share is ", percent(text["share"]), "\n");
  if (f.contains("causal_share")) out += concat("causal     ", percent(f["causal_share"]), " of the rows\n");
  if (f.contains("pair_label_1_share"))
    out += concat("pairs      ", percent(f["pair_label_1_share"]), " with label 1\n");
  return out;
}

/// A line of shares of lengths up to 10, with the mean of all; empty without counts.
template <class Count>
std::string histogram_text(const char* name, const std::string& unit, const std::vector<Count>& counts) {
  double all = 0, sum = 0;
  for (size_t n = 0; n < counts.size(); ++n) {
    all += static_cast<double>(counts[n]);
    sum += static_cast<double>(n) * static_cast<double>(counts[n]);
  }
  if (all == 0) return "";
  auto out = padded(name, 10) + " " + padded(unit, 7) + " ";
  for (size_t n = counts[0] > 0 ? 0 : 1; n < counts.size() && n <= 10; ++n)
    out += concat(n, ": ", percent(static_cast<double>(counts[n]) / all), "  ");
  return concat(out, "mean ", fixed(sum / all, 2), "\n");
}

std::string lengths_text(const LengthCounts& lengths) {
  return histogram_text("runs", "tokens", lengths.runs) +
         histogram_text(lengths.runs.empty() ? "runs" : "", "words", lengths.words) +
         histogram_text("drawn", lengths.unit, lengths.drawn) +
         histogram_text("expected", lengths.unit, lengths.expected);
}

std::string check_text(const RuleCheck& check) {
  return concat(check.passed ? "ok   " : "FAIL ", padded(check.name, 66), " ",
                aligned_right(significant(check.observed, 6), 12), "  expected ", significant(check.expected, 6),
                "  p ", digits(check.p_value, 3), "\n");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> notes_of(const InspectedExample& e) {
  std::vector<std::pair<std::string, std::string>> notes;
  if (e.pair_label >= 0) notes.emplace_back("pair", e.pair_label == 0 ? "0: B follows A" : "1: B does not follow A");
  if (e.prefix >= 0) notes.emplace_back("row", e.prefix == 0 ? "causal" : "masked, bidirectional");
  if (e.masking >= 0) notes.emplace_back("masking", concat("mixture.", e.masking));
  if (e.backward) notes.emplace_back("text", "reversed");
  return notes;
}

std::string counts_text(const Inspection& inspection) {
  auto out = facts_text(inspection.facts);
  for (size_t i = 0; i < inspection.lengths.size(); ++i) {
    const auto& lengths = inspection.lengths[i];
    if (inspection.facts.contains("mixture")) {
      const auto& facts = inspection.facts["mixture"][i];
      out += concat("\n", lengths.name, "  ", thousands(facts["sequences"].get<uint64_t>()), " sequences, ",
                    percent(facts["share"]), " of all\n", predicted_text(facts), split_text(facts));
    } else if (!lengths.name.empty()) {
      out += concat("\n", lengths.name, "\n");
    }
    out += lengths_text(lengths);
  }
  return out;
}

std::string checks_text(const Inspection& inspection) {
  std::string out;
  for (const auto& check : inspection.checks) out += check_text(check);
  return out;
}

std::string to_text(const Inspection& inspection, bool colour) {
  std::string out;
  for (const auto& example : inspection.examples) out += example_text(example, colour);
  const auto* marks = inspection.facts.contains("source_length") ? "{mask token}" : "{masked} <random> (kept)";
  return out + marks + "\n\n" + counts_text(inspection) + "\n" + checks_text(inspection);
}

namespace {

/// What the discriminator of rtd reads and predicts, and the numbers by which the generator draws.
void add_replacements(const InspectedExample& e, json& example) {
  if (!e.replacement_numbers.empty()) example["replacement_numbers"] = e.replacement_numbers;
  if (e.replacements.empty()) return;
  auto ids = e.input_ids;
  std::vector<int64_t> labels(ids.size());
  size_t predictions = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (e.labels[i] == -100) continue;
    ids[i] = e.replacements[predictions++];
    labels[i] = ids[i] != e.labels[i];
  }
  example["discriminator_input_ids"] = ids;
  example["discriminator_labels"] = labels;
}

void add_permutation(const InspectedExample& e, json& example) {
  if (e.query_rank.empty()) return;
  example["query_rank"] = e.query_rank;
  example["key_rank"] = e.key_rank;
  example["order"] = prediction_order(e);
  example["backward"] = e.backward;
  example["continues"] = e.continues;
}

}  // namespace

json to_json(const Inspection& inspection) {
  json examples = json::array(), checks = json::array(), lengths = json::array();
  for (const auto& e : inspection.examples) {
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
    add_replacements(e, examples.back());
    add_permutation(e, examples.back());
  }
  for (const auto& c : inspection.checks)
    checks.push_back({{"name", c.name},
                      {"observed", c.observed},
                      {"expected", c.expected},
                      {"p_value", c.p_value},
                      {"passed", c.passed}});
  for (const auto& l : inspection.lengths)
    lengths.push_back({{"name", l.name},
                       {"runs", l.runs},
                       {"words", l.words},
                       {"drawn", l.drawn},
                       {"expected", l.expected},
                       {"unit", l.unit}});
  return {{"examples", examples}, {"facts", inspection.facts}, {"checks", checks}, {"lengths", lengths}};
}

}  // namespace cloze
