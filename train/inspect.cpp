#include "train/inspect.h"

#include <cmath>
#include <filesystem>

#include "core/file.h"
#include "core/log.h"
#include "objectives/collator.h"
#include "objectives/masking.h"
#include "objectives/writing.h"
#include "train/process.h"

namespace cloze {

namespace {

using nlohmann::json;

constexpr double least_p = 1e-4;

/// P(chi-square of k degrees >= x).
double chi_square_tail(double x, double k) { return at::special_gammaincc(at::tensor(k / 2, at::kDouble), at::tensor(x / 2, at::kDouble)).item<double>(); }
/// P(|normal| >= z).
double normal_tail(double z) { return std::erfc(std::abs(z) / std::sqrt(2.0)); }

/// What is counted over all sequences.
struct Counts {
  int64_t sequences = 0, places = 0, tokens = 0, candidates = 0, predicted = 0, special_touched = 0, unknown = 0, pairs = 0, second = 0, forced = 0, wrong_counts = 0, empty = 0;
  int64_t masked = 0, random = 0, kept = 0;      // by draw
  double bernoulli_expected = 0;
};

class Inspector {
 public:
  explicit Inspector(const RunConfig& config)
      : config_(config), store_(config.data.tokens, "train"), vocabulary_(store_.tokenizer()), masking_(masking_of(config.objectives) ? std::optional(*masking_of(config.objectives)) : std::nullopt),
        collator_(store_, config.objectives, config.data, Rng(static_cast<uint64_t>(config.train.seed)), "train", encoder_of(config.model), {config.train.batch_size, config.train.accumulation}) {}

  Inspection run(int64_t examples, int64_t sequences) {
    const int64_t rows = config_.train.batch_size;   // model.bi_data: the second half of a batch runs backwards
    for (int64_t first = 0; first < sequences; first += rows) {
      const auto batch = collator_.batch(static_cast<uint64_t>(first), std::min(rows, sequences - first));
      const int64_t width = batch.input_ids.size(1);
      counts_.places += batch.input_ids.numel(), counts_.forced += batch.forced_pairs;
      std::vector<int64_t> labels(static_cast<size_t>(batch.input_ids.numel()), -100);
      const bool permuted = batch.target_places.defined();   // places of targets are listed row by row, and rows are padded on the left
      for (int64_t i = 0; batch.positions.defined() && i < batch.positions.numel(); ++i) {
        auto place = batch.positions.data_ptr<int64_t>()[i];
        if (permuted) place = place / batch.target_places.size(1) * width + batch.target_places.data_ptr<int64_t>()[place];
        labels[static_cast<size_t>(place)] = batch.labels.data_ptr<int64_t>()[i];
      }
      for (int64_t row = 0; row < batch.input_ids.size(0); ++row) {
        const int64_t length = batch.attention_mask.defined() ? batch.attention_mask[row].sum().item<int64_t>() : width;
        InspectedExample e;
        const int64_t begin = row * width + (permuted ? width - length : 0);
        const auto *ids = batch.input_ids.data_ptr<int64_t>() + begin, *types = batch.token_type_ids.data_ptr<int64_t>() + begin;
        e.input_ids.assign(ids, ids + length), e.token_type_ids.assign(types, types + length);
        e.labels.assign(labels.begin() + begin, labels.begin() + begin + length);
        if (batch.pair_label.defined()) e.pair_label = batch.pair_label.data_ptr<int64_t>()[row];
        count(e);
        if (static_cast<int64_t>(found_.examples.size()) >= examples) continue;
        describe_in_words(e);
        found_.examples.push_back(std::move(e));
      }
    }
    conclude();
    return std::move(found_);
  }

 private:
  int64_t original(const InspectedExample& e, size_t i) const { return e.labels[i] == -100 ? e.input_ids[i] : e.labels[i]; }
  bool special(int64_t id) const { return vocabulary_.is_special[static_cast<size_t>(id)] != 0; }

  void count(const InspectedExample& e) {
    ++counts_.sequences;
    const auto length = static_cast<int64_t>(e.input_ids.size());
    counts_.tokens += length;
    int64_t candidates = 0, predicted = 0, run = 0, run_words = 0;
    const auto end_run = [&] {
      if (run == 0) return;
      const auto note = [](std::vector<int64_t>& histogram, int64_t n) {
        if (static_cast<int64_t>(histogram.size()) <= n) histogram.resize(static_cast<size_t>(n) + 1);
        ++histogram[static_cast<size_t>(n)];
      };
      note(found_.run_lengths, run), note(found_.word_lengths, std::max<int64_t>(run_words, 1));
      run = run_words = 0;
    };
    for (size_t i = 0; i < e.input_ids.size(); ++i) {
      const int64_t text = original(e, i);
      candidates += !special(text) || (masking_ && masking_->mask_special);
      counts_.unknown += text == vocabulary_.special.unk;
      if (e.labels[i] == -100) {
        end_run();
        continue;
      }
      ++predicted;
      counts_.special_touched += special(text);
      const bool starts = vocabulary_.starts_word[static_cast<size_t>(text)] != 0;
      // One draw for each token, word or run, as the rules say.
      const bool draw = !masking_ || masking_->draw_per == "token" || run == 0 || (masking_->draw_per == "word" && starts);
      if (draw) ++(e.input_ids[i] == vocabulary_.special.mask ? counts_.masked : e.input_ids[i] == text ? counts_.kept : counts_.random);
      ++run, run_words += starts;
    }
    end_run();
    counts_.candidates += candidates, counts_.predicted += predicted, counts_.empty += predicted == 0;
    if (masking_) check_count(length, candidates, predicted);
    if (e.pair_label >= 0) ++counts_.pairs, counts_.second += e.pair_label;
  }

  /// Holds one sequence's number of predictions against the rule.
  void check_count(int64_t length, int64_t candidates, int64_t predicted) {
    const auto& m = *masking_;
    const double share = m.mlm_probability * static_cast<double>(m.count_special ? length : candidates);
    if (m.count == "bernoulli") {
      counts_.bernoulli_expected += m.mlm_probability * static_cast<double>(candidates);
      return;
    }
    int64_t least = m.count == "ceil" ? std::llround(std::ceil(share - 1e-9)) : m.count == "rounded" ? std::max<int64_t>(1, std::llrint(share)) : static_cast<int64_t>(share), most = least;
    if (m.count == "stochastic") most = least + 1;
    if (m.mlm_probability == 0) least = most = 0;
    if (m.max_predictions_per_seq > 0) least = std::min(least, m.max_predictions_per_seq), most = std::min(most, m.max_predictions_per_seq);
    least = std::min(least, candidates), most = std::min(most, candidates);
    if (m.unit == "word" || m.unit == "ngram") least = 0;   // a unit that would overshoot is passed over
    counts_.wrong_counts += predicted < least || predicted > most;
  }

  void describe_in_words(InspectedExample& e) const {
    const auto& tokenizer = store_.tokenizer();
    std::vector<int64_t> whole;
    for (size_t i = 0; i < e.input_ids.size(); ++i) {
      const int64_t text = original(e, i);
      whole.push_back(text);
      auto piece = tokenizer.piece(e.input_ids[i]);
      if (e.labels[i] != -100) {
        piece = e.input_ids[i] == vocabulary_.special.mask ? "{" + piece + "}" : e.input_ids[i] == text ? "(" + piece + ")" : "<" + piece + ">";
        e.targets += (e.targets.empty() ? "" : " ") + tokenizer.piece(text);
      }
      e.corrupted += (e.corrupted.empty() ? "" : " ") + piece;
    }
    e.text = tokenizer.decode(whole);
  }

  void conclude() {
    const auto& c = counts_;
    const auto share = [](int64_t part, int64_t all) { return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0; };
    found_.facts = {{"sequences", c.sequences}, {"tokens", c.tokens}, {"padding_share", 1 - share(c.tokens, c.places)}, {"unknown_share", share(c.unknown, c.tokens)},
                    {"special_tokens_predicted", c.special_touched}, {"sequences_without_prediction", c.empty}, {"predicted_share", share(c.predicted, c.tokens)},
                    {"predicted_share_of_candidates", share(c.predicted, c.candidates)}};
    const auto add = [&](std::string name, double observed, double expected, double p) { found_.checks.push_back({std::move(name), observed, expected, p, p >= least_p}); };
    if (c.pairs > 0) {
      found_.facts["pair_label_1_share"] = share(c.second, c.pairs);
      double probability = 0;
      for (const auto& o : config_.objectives) {
        if (const auto* nsp = std::get_if<NspConfig>(&o)) probability = nsp->random_next_prob;
        if (const auto* sop = std::get_if<SopConfig>(&o)) probability = sop->swap_prob;
      }
      // A single sentence always gets another document's: its label is not drawn.
      const double drawn = static_cast<double>(c.pairs - c.forced), expected = static_cast<double>(c.forced) + drawn * probability, deviation = std::sqrt(drawn * probability * (1 - probability));
      const double off = static_cast<double>(c.second) - expected;
      add("pairs with label 1", static_cast<double>(c.second), expected, deviation > 0 ? normal_tail(off / deviation) : off == 0 ? 1 : 0);
    }
    if (!masking_) return;
    const auto& m = *masking_;
    const double draws = static_cast<double>(c.masked + c.random + c.kept), vocabulary = static_cast<double>(vocabulary_.size);
    found_.facts["split"] = {{"mask", share(c.masked, c.masked + c.random + c.kept)}, {"random", share(c.random, c.masked + c.random + c.kept)}, {"keep", share(c.kept, c.masked + c.random + c.kept)}};
    if (m.count == "bernoulli" && m.unit == "token") {
      const double deviation = std::sqrt(c.bernoulli_expected * (1 - m.mlm_probability));
      add("predicted tokens", static_cast<double>(c.predicted), c.bernoulli_expected, deviation > 0 ? normal_tail((static_cast<double>(c.predicted) - c.bernoulli_expected) / deviation) : 1);
    } else if (m.count != "bernoulli") {
      add("sequences with another number of predictions than the rule gives", static_cast<double>(c.wrong_counts), 0, c.wrong_counts == 0 ? 1 : 0);
    }
    if (draws > 0) {
      // A random token may be the text's own, or [MASK].
      const double hits_mask = m.random_from == "vocabulary" ? m.random_prob / vocabulary : 0, hits_text = m.random_from == "unigram" ? 0 : m.random_prob / vocabulary;
      const double mask = m.mask_prob + hits_mask, random = m.random_prob - hits_mask - hits_text, keep = 1 - m.mask_prob - m.random_prob + hits_text;
      double chi = 0, degrees = -1;
      for (const auto& [got, wanted] : {std::pair{static_cast<double>(c.masked), mask}, {static_cast<double>(c.random), random}, {static_cast<double>(c.kept), keep}})
        if (wanted * draws >= 1) chi += (got - wanted * draws) * (got - wanted * draws) / (wanted * draws), degrees += 1;
      if (degrees > 0 && m.random_from != "unigram") add("split into mask, random, keep (chi-square)", chi, degrees, chi_square_tail(chi, degrees));
    }
    if (!m.mask_special) add("special tokens predicted", static_cast<double>(c.special_touched), 0, c.special_touched == 0 ? 1 : 0);
  }

  RunConfig config_;
  TokenStore store_;
  Vocabulary vocabulary_;
  std::optional<MlmConfig> masking_;
  Collator collator_;
  Counts counts_;
  Inspection found_;
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

/// Marks of changed tokens in colour.
std::string coloured(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool starts = i == 0 || text[i - 1] == ' ', ends = i + 1 == text.size() || text[i + 1] == ' ';
    if (starts && (text[i] == '{' || text[i] == '<' || text[i] == '(')) out += text[i] == '{' ? "\033[31m" : text[i] == '<' ? "\033[33m" : "\033[36m";
    out += text[i];
    if (ends && (text[i] == '}' || text[i] == '>' || text[i] == ')')) out += "\033[0m";
  }
  return out;
}

}  // namespace

Inspection inspect_objective(const RunConfig& config, int64_t examples, int64_t sequences) {
  require<ConfigError>(!config.data.tokens.empty(), "data.tokens is not given; prepare text with `cloze prepare` and name its folder with --set data.tokens=FOLDER");
  require<ConfigError>(examples >= 0 && sequences >= 1, "--examples must be at least 0, --sequences at least 1");
  if (writing_of(config.objectives)) return inspect_writing(config, examples, std::max(examples, sequences));
  return Inspector(config).run(examples, std::max(examples, sequences));
}

std::string to_text(const Inspection& found, bool colour) {
  std::string out;
  for (const auto& e : found.examples) {
    const auto marked = [&](const std::string& pieces) { return colour ? coloured(pieces) : pieces; };
    if (e.token_type_ids.empty()) out += "read       " + marked(e.corrupted) + "\nwritten    " + marked(e.targets) + "\n";   // by a decoder
    else out += "text       " + e.text + "\nread       " + marked(e.corrupted) + "\npredicted  " + e.targets + "\n";
    if (e.pair_label >= 0) out += words("pair       ", e.pair_label == 0 ? "0: B follows A" : "1: it does not", "\n");
    out += "\n";
  }
  const auto& f = found.facts;
  if (f.contains("source_length")) {
    char lengths[160];
    std::snprintf(lengths, sizeof lengths, "lengths    %.1f tokens read, %.1f written on average; %.2f masks in a text read\n", f["source_length"].get<double>(), f["target_length"].get<double>(), f["masks_in_a_source"].get<double>());
    out += words("{what stands for hidden text}\n\nsequences  ", thousands(f["sequences"].get<uint64_t>()), ", ", thousands(f["tokens"].get<uint64_t>()), " tokens; padding ", percent(f["padding_share"]), ", unknown ",
                 percent(f["unknown_share"]), "; ", percent(f["as_long_as_allowed_share"]), " as long as they may be\n", lengths);
  } else {
    out += words("{masked} <random> (kept)\n\nsequences  ", thousands(f["sequences"].get<uint64_t>()), ", ", thousands(f["tokens"].get<uint64_t>()), " tokens; padding ", percent(f["padding_share"]), ", unknown ",
               percent(f["unknown_share"]), "\npredicted  ", percent(f["predicted_share"]), " of all tokens, ", percent(f["predicted_share_of_candidates"]), " of those that may be chosen; ",
               f["sequences_without_prediction"].get<int64_t>(), " sequences without any\n");
  }
  if (f.contains("split")) out += words("split      mask ", percent(f["split"]["mask"]), ", random ", percent(f["split"]["random"]), ", keep ", percent(f["split"]["keep"]), "\n");
  if (f.contains("pair_label_1_share")) out += words("pairs      ", percent(f["pair_label_1_share"]), " with label 1\n");
  const auto histogram = [&](const char* name, const std::vector<int64_t>& counts) {
    double all = 0, sum = 0;
    for (size_t n = 1; n < counts.size(); ++n) all += static_cast<double>(counts[n]), sum += static_cast<double>(n) * static_cast<double>(counts[n]);
    if (all == 0) return;
    out += name;
    for (size_t n = 1; n < counts.size() && n <= 10; ++n) out += words(n, ": ", percent(static_cast<double>(counts[n]) / all), "  ");
    char mean[32];
    std::snprintf(mean, sizeof mean, "mean %.2f\n", sum / all);
    out += mean;
  };
  histogram("runs       tokens  ", found.run_lengths);
  histogram("           words   ", found.word_lengths);
  for (const auto& check : found.checks) {
    char line[200];
    std::snprintf(line, sizeof line, "%-4s %-66s %12.6g  expected %.6g  p %.3g\n", check.passed ? "ok" : "FAIL", check.name.c_str(), check.observed, check.expected, check.p_value);
    out += line;
  }
  return out;
}

json to_json(const Inspection& found) {
  json examples = json::array(), checks = json::array();
  for (const auto& e : found.examples) {
    examples.push_back({{"input_ids", e.input_ids}, {"labels", e.labels}, {"token_type_ids", e.token_type_ids}, {"text", e.text}, {"corrupted", e.corrupted}, {"targets", e.targets}});
    if (e.pair_label >= 0) examples.back()["pair_label"] = e.pair_label;
    if (!e.decoder_input_ids.empty()) examples.back()["decoder_input_ids"] = e.decoder_input_ids;
  }
  for (const auto& c : found.checks) checks.push_back({{"name", c.name}, {"observed", c.observed}, {"expected", c.expected}, {"p_value", c.p_value}, {"passed", c.passed}});
  return {{"examples", examples}, {"facts", found.facts}, {"checks", checks}, {"run_lengths", found.run_lengths}, {"word_lengths", found.word_lengths}};
}

void draw_lengths(const Inspection& found, const std::string& file) {
  const auto path = std::filesystem::absolute(file);
  const bool svg = path.extension() == ".svg";
  require<ConfigError>(svg || path.extension() == ".png", file, ": must end in .svg or .png");
  std::string script = words("set terminal ", svg ? "svg" : "pngcairo", " size 760,420 background 'white'\nset output '", path.filename().string(), "'\nset style fill solid 0.8\nset boxwidth 0.4\nset grid y lc rgb '#dddddd'\n",
                             "set xlabel 'length of a run of predicted tokens'\nset ylabel 'runs'\nset xtics 1\n$data << EOD\n");
  const auto at = [](const std::vector<int64_t>& list, size_t n) { return n < list.size() ? list[n] : 0; };
  for (size_t n = 1; n < std::min<size_t>(std::max(found.run_lengths.size(), found.word_lengths.size()), 31); ++n) script += words(n, " ", at(found.run_lengths, n), " ", at(found.word_lengths, n), "\n");
  script += "EOD\nplot $data using ($1-0.2):2 with boxes lc rgb '#1f5fa8' title 'tokens', $data using ($1+0.2):3 with boxes lc rgb '#c0392b' title 'words'\n";
  const auto name = path.string() + ".gnuplot";
  write_atomic(name, script);
  const bool drawn = run_gnuplot(path.parent_path().string(), path.filename().string() + ".gnuplot");
  std::filesystem::remove(name);
  require(drawn && std::filesystem::exists(path), file, ": no picture, gnuplot is missing or failed (Debian: apt-get install gnuplot-nox)");
}

}  // namespace cloze
