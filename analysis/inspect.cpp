#include "analysis/inspect.h"

#include <cmath>
#include <filesystem>
#include <numeric>

#include "analysis/masking_checks.h"
#include "core/file.h"
#include "core/log.h"
#include "objectives/collator.h"
#include "objectives/masking.h"
#include "objectives/generative_rows.h"
#include "run/process.h"

namespace cloze {

namespace {

using nlohmann::json;

class Inspector {
 public:
  explicit Inspector(const RunConfig& config)
      : config_(config),
        store_(config.data.tokens, "train"),
        vocabulary_(store_.tokenizer()),
        maskings_(maskings_of(config.objectives)),
        steps_{config.train.batch_size, config.train.accumulation, config.train.budget.steps},
        collator_(store_, config.objectives, config.data, row_streams(config.train), "train", config.model, steps_) {}

  Inspection run(int64_t examples, int64_t sequences) {
    const int64_t rows = config_.train.batch_size;
    for (const auto& objective : config_.objectives)
      if (const auto* plm = std::get_if<PlmConfig>(&objective)) plm_ = plm;
    counts_.resize(std::max<size_t>(1, maskings_.size())), found_.lengths.resize(counts_.size());
    for (size_t m = 0; mixes() && m < maskings_.size(); ++m) found_.lengths[m].name = words("mixture.", m);
    std::vector<RowDraws> draws;
    for (int64_t first = 0; first < sequences; first += rows) {
      const auto batch = collator_.batch(static_cast<uint64_t>(first), std::min(rows, sequences - first), &draws);
      const int64_t width = batch.input_ids.size(1);
      positions_ += batch.input_ids.numel(), forced_ += batch.forced_pairs;
      std::vector<int64_t> labels(static_cast<size_t>(batch.input_ids.numel()), -100);
      const bool permuted =
          batch.target_positions.defined();  // targets are listed by row, and rows are padded on the left
      for (int64_t i = 0; batch.positions.defined() && i < batch.positions.numel(); ++i) {
        auto position = batch.positions.data_ptr<int64_t>()[i];
        if (permuted)
          position =
              position / batch.target_positions.size(1) * width + batch.target_positions.data_ptr<int64_t>()[position];
        labels[static_cast<size_t>(position)] = batch.labels.data_ptr<int64_t>()[i];
      }
      for (int64_t row = 0; row < batch.input_ids.size(0); ++row) {
        const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width;
        InspectedExample e;
        const int64_t begin = row * width + (permuted ? width - length : 0);
        const auto *ids = batch.input_ids.data_ptr<int64_t>() + begin,
                   *types = batch.token_type_ids.data_ptr<int64_t>() + begin;
        e.input_ids.assign(ids, ids + length), e.token_type_ids.assign(types, types + length);
        e.labels.assign(labels.begin() + begin, labels.begin() + begin + length);
        if (batch.pair_label.defined()) e.pair_label = batch.pair_label.data_ptr<int64_t>()[row];
        const auto& drawn = draws[static_cast<size_t>(row)];
        text_ += drawn.example_tokens;
        read_ += drawn.used_tokens;
        if (mixes()) e.masking = static_cast<int64_t>(drawn.masking);
        count(e, drawn, static_cast<uint64_t>(first));
        if (static_cast<int64_t>(found_.examples.size()) >= examples) continue;
        add_text(e);
        found_.examples.push_back(std::move(e));
      }
    }
    summarize();
    return std::move(found_);
  }

 private:
  bool mixes() const { return maskings_.size() > 1; }
  int64_t original(const InspectedExample& e, size_t i) const {
    return e.labels[i] == -100 ? e.input_ids[i] : e.labels[i];
  }

  void count(const InspectedExample& e, const RowDraws& drawn, uint64_t sequence) {
    auto& c = counts_[drawn.masking];
    const bool masks = !maskings_.empty();
    auto masking = masks ? maskings_[drawn.masking] : MaskingPart();
    if (masks) masking.mlm_probability = masking_share(masking, steps_, sequence);
    const int64_t predicted =
        count_row(c, found_.lengths[drawn.masking], {e.input_ids, e.labels, drawn.lengths, plm_ != nullptr},
                  masks ? &masking : nullptr, vocabulary_);
    if (e.pair_label >= 0) ++pairs_, second_ += e.pair_label;
    if (!plm_) return;
    // [SEP] and [CLS] may be chosen, but are not predicted.
    const auto length = static_cast<int64_t>(e.input_ids.size());
    const auto separators = std::count_if(e.input_ids.begin(), e.input_ids.end(), [&](int64_t id) {
      return id == vocabulary_.special.sep || id == vocabulary_.special.cls;
    });
    const int64_t wanted =
        std::min(length, plm_->num_predict > 0 ? plm_->num_predict : std::max<int64_t>(1, length / 6));
    c.wrong_counts += predicted > wanted || predicted < wanted - separators;
  }

  void add_text(InspectedExample& e) const {
    const auto& tokenizer = store_.tokenizer();
    std::vector<int64_t> whole;
    for (size_t i = 0; i < e.input_ids.size(); ++i) {
      const int64_t text = original(e, i);
      whole.push_back(text);
      auto piece = tokenizer.piece(e.input_ids[i]);
      if (e.labels[i] != -100) {
        piece = e.input_ids[i] == vocabulary_.special.mask ? "{" + piece + "}"
                : e.input_ids[i] == text                   ? "(" + piece + ")"
                                                           : "<" + piece + ">";
        e.targets += (e.targets.empty() ? "" : " ") + tokenizer.piece(text);
      }
      e.corrupted += (e.corrupted.empty() ? "" : " ") + piece;
    }
    e.text = tokenizer.decode(whole);
  }

  void summarize() {
    MaskingCounts all;
    for (const auto& c : counts_) all += c;
    found_.facts = facts_of(all);
    found_.facts["padding_share"] = 1 - share(all.tokens, positions_),
    found_.facts["unknown_share"] = share(all.unknown, all.tokens);
    found_.facts["full_share"] = share(all.tokens, all.sequences * config_.data.max_seq_length);
    found_.facts["read_share"] = collator_.text_share() * (text_ > 0 ? share(read_, text_) : 1);
    if (pairs_ > 0) {
      found_.facts["pair_label_1_share"] = share(second_, pairs_);
      double swapped = 0;
      for (const auto& o : config_.objectives)
        if (const auto* sop = std::get_if<SopConfig>(&o)) swapped = sop->swap_prob;
      // `share` of the pairs of an epoch has B from another document; swapped pairs are drawn among the others.
      const auto rows = static_cast<double>(pairs_), drawn = static_cast<double>(pairs_ - forced_),
                 share = collator_.random_next_share();
      found_.checks.push_back(sum_check("pairs with text of another document", static_cast<double>(forced_),
                                        rows * share, rows * share * (1 - share)));
      if (swapped > 0)
        found_.checks.push_back(sum_check("pairs with label 1", static_cast<double>(second_),
                                          static_cast<double>(forced_) + drawn * swapped,
                                          drawn * swapped * (1 - swapped)));
    }
    if (plm_) {
      found_.checks.push_back(strict_check(wrong_number_of_predictions, counts_[0].wrong_counts));
      found_.lengths[0].unit = "tokens";
      fit_lengths(found_.lengths[0], ngram_lengths(plm_->max_ngram), "drawn n-gram lengths in tokens (chi-square)",
                  found_);
    }
    if (!maskings_.empty()) found_.facts["split"] = mask_split_of(all);
    std::vector<double> rows, shares;
    for (size_t i = 0; i < maskings_.size(); ++i) {
      rows.push_back(static_cast<double>(counts_[i].sequences)),
          shares.push_back(maskings_[i].share * static_cast<double>(all.sequences));
      test_masking(maskings_[i], counts_[i], found_.lengths[i], vocabulary_, found_);
      if (!mixes()) continue;
      auto facts = facts_of(counts_[i]);
      facts["share"] = share(counts_[i].sequences, all.sequences), facts["split"] = mask_split_of(counts_[i]);
      found_.facts["mixture"].push_back(facts);
    }
    if (mixes()) found_.checks.push_back(fit_check("rows per masking (chi-square)", rows, shares));
  }

  RunConfig config_;
  TokenStore store_;
  Vocabulary vocabulary_;
  std::vector<MaskingPart> maskings_;
  StepRows steps_;
  const PlmConfig* plm_ = nullptr;
  Collator collator_;
  std::vector<MaskingCounts> counts_;  // per masking, or over all rows
  int64_t positions_ = 0, pairs_ = 0, second_ = 0, forced_ = 0;
  int64_t text_ = 0, read_ = 0;  // tokens of the examples, and those used in rows
  Inspection found_;
};

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

Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences) {
  require<ConfigError>(
      !config.data.tokens.empty(),
      "data.tokens is not set; run `cloze prepare`, and name its folder with --set data.tokens=FOLDER");
  require<ConfigError>(examples >= 0 && sequences >= 1, "--examples must be at least 0, --sequences at least 1");
  if (first_of<MntpConfig>(config.objectives)) return inspect_mntp(config, examples, std::max(examples, sequences));
  if (generative_of(config.objectives)) return inspect_generative(config, examples, std::max(examples, sequences));
  return Inspector(config).run(examples, std::max(examples, sequences));
}

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
    for (size_t n = 0; n < counts.size(); ++n)
      all += static_cast<double>(counts[n]), sum += static_cast<double>(n) * static_cast<double>(counts[n]);
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
    histogram("runs", "tokens", lengths.runs), histogram(lengths.runs.empty() ? "runs" : "", "words", lengths.words);
    histogram("drawn", lengths.unit, lengths.drawn), histogram("expected", lengths.unit, lengths.expected);
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

void draw_lengths(const Inspection& found, const std::string& file) {
  const auto path = std::filesystem::absolute(file);
  const bool svg = path.extension() == ".svg";
  require<ConfigError>(svg || path.extension() == ".png", file, ": must end in .svg or .png");
  std::string data, plots;
  const size_t panels = std::max<size_t>(1, found.lengths.size());
  for (const auto& l : found.lengths) {
    // Each series as shares of its own sum, so that all fit one axis; lengths up to 30.
    struct Series {
      std::string title;
      const char* colour;
      std::vector<double> counts;
    };
    std::vector<Series> series;
    const auto add = [&](std::string title, const char* colour, const auto& counts) {
      std::vector<double> shares(counts.begin(), counts.end());
      const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
      for (auto& x : shares) x *= 100 / sum;
      if (sum > 0) series.push_back({std::move(title), colour, std::move(shares)});
    };
    add("runs found, tokens", "#1f5fa8", l.runs), add("runs found, words", "#c0392b", l.words),
        add(words("drawn, ", l.unit), "#8a8f98", l.drawn);
    const size_t bars = series.size();
    add(words("expected of the draws, ", l.unit), "#000000", l.expected);
    size_t longest = 1;
    for (const auto& s : series) longest = std::max(longest, std::min<size_t>(s.counts.size(), 31));
    const bool from_0 = !l.drawn.empty() && l.drawn[0] > 0;
    std::string plot;
    for (size_t k = 0; k < series.size(); ++k) {
      const std::string block = words("$p", data.size());
      data += block + " << EOD\n";
      for (size_t n = from_0 ? 0 : 1; n < std::min(longest, series[k].counts.size()); ++n)
        data += words(n, " ", series[k].counts[n], "\n");
      data += "EOD\n";
      const double width = 0.8 / static_cast<double>(bars), shift = k < bars
                                                                        ? (static_cast<double>(k) + 0.5) * width - 0.4
                                                                    : bars > 0 ? 0.4 - width / 2
                                                                               : 0;
      plot += words(k ? ", " : "plot ", block, " using ($1+", shift, "):2 ",
                    k < bars ? words("with boxes lc rgb '", series[k].colour, "'")
                             : "with linespoints lc rgb '#000000' pt 7 ps 0.6 lw 1.2",
                    " title '", series[k].title, "'");
      if (k == 0)
        plots += words("set boxwidth ", width, "\nset title '", l.name, "'\nset xrange [", from_0 ? -0.6 : 0.4, ":",
                       static_cast<double>(longest) - 0.4, "]\nset xtics nomirror ", longest > 20 ? 5 : 1, "\n");
    }
    if (!series.empty()) plots += plot + "\n";
  }
  require<ConfigError>(!plots.empty(), file,
                       ": this objective has no spans, so there are no lengths to plot; leave --picture out");
  const std::string script = words("set terminal ", svg ? "svg" : "pngcairo", " size 760,", 340 * panels + 40,
                                   " background 'white'\nset output '", path.filename().string(),
                                   "'\nset style fill solid 0.8 noborder\nset grid y lc rgb '#dddddd'\n",
                                   "set xlabel 'length'\nset ylabel 'share [%]'\nset yrange [0:*]\n", data,
                                   "set multiplot layout ", panels, ",1\n", plots, "unset multiplot\n");
  const auto name = path.string() + ".gnuplot";
  write_atomic(name, script);
  const bool drawn = run_gnuplot(path.parent_path().string(), path.filename().string() + ".gnuplot");
  std::filesystem::remove(name);
  require(drawn && std::filesystem::exists(path), file,
          ": not plotted; gnuplot is missing or failed (Debian: apt-get install gnuplot-nox)");
}

}  // namespace cloze
