#include "evaluation/evaluate.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/interrupt.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/report/clusters.h"
#include "core/text.h"
#include "evaluation/source_losses.h"
#include "objectives/objective.h"
#include "run/device.h"
#include "run/records/held_out_record.h"
#include "run/records/log_line.h"

namespace cloze {

namespace {

using nlohmann::json;

/// Adds the predictions of a batch to their sequences; `first` is the index of the batch's first sequence.
void add_predictions(std::vector<SequenceLoss>& sequences, int64_t first, const LossPart& part) {
  const auto rows = part.single.row.to(at::kCPU).contiguous();
  const auto losses = part.single.loss.to(at::kCPU, at::kDouble).contiguous();
  const auto weights = part.weights.defined() ? part.weights.to(at::kCPU, at::kDouble).contiguous() : Tensor();
  for (int64_t i = 0; i < rows.numel(); ++i) {
    auto& sequence = sequences[static_cast<size_t>(first + rows.data_ptr<int64_t>()[i])];
    const double weight = weights.defined() ? weights.data_ptr<double>()[i] : 1;
    sequence.sum += weight * losses.data_ptr<double>()[i];
    sequence.count += weight;
    ++sequence.predictions;
  }
}

constexpr uint64_t no_document = UINT64_MAX;  ///< of a sequence of batches that another process computes

}  // namespace

/// The sums of one loss over the batches so far.
struct LossSums {
  HeldOut held_out;
  std::optional<BinaryCounts> binary{};
  double weight = 0;  ///< of all predictions

  /// Adds a batch, of which `first` is the index of the first of all `sequences`, with the draws of its rows.
  void add(const LossPart& part, int64_t first, int64_t sequences, const std::vector<RowDraws>& rows,
           const TokenStore& store) {
    held_out.name = part.name;
    held_out.of_rewrite = part.of_rewrite;
    held_out.weight = part.weight;
    if (part.has_accuracy) held_out.accuracy = held_out.accuracy.value_or(0) + static_cast<double>(part.correct());
    held_out.count += part.count;
    weight += part.total_weight();
    held_out.sequences.resize(static_cast<size_t>(sequences), SequenceLoss{.document = no_document});
    for (size_t i = 0; i < rows.size(); ++i) {
      auto& sequence = held_out.sequences[static_cast<size_t>(first) + i];
      sequence.document = rows[i].document;
      sequence.bytes = label_bytes(store, rows[i]);
    }
    if (part.single.loss.defined()) add_predictions(held_out.sequences, first, part);
    add(part.binary());
  }

  /// Adds the sums of batches of other sequences.
  void add(const LossSums& others) {
    const auto& added = others.held_out;
    if (added.accuracy) held_out.accuracy = held_out.accuracy.value_or(0) + *added.accuracy;
    held_out.count += added.count;
    weight += others.weight;
    for (size_t i = 0; i < added.sequences.size(); ++i)
      if (added.sequences[i].document != no_document) held_out.sequences[i] = added.sequences[i];
    add(others.binary);
  }

  void add(const std::optional<BinaryCounts>& counts) {
    if (!counts) return;
    if (!binary) binary.emplace();
    *binary += *counts;
  }

  HeldOut result() {
    const double all = weight > 0 ? weight : 1;
    for (const auto& sequence : held_out.sequences) held_out.loss += sequence.sum / all;
    if (held_out.accuracy) *held_out.accuracy /= std::max<double>(1, static_cast<double>(held_out.count));
    held_out.standard_error = standard_error(held_out.sequences);
    if (binary) held_out.baseline = majority_baseline(binary->positives, held_out.count);
    if (binary && binary->detects) held_out.f1 = f1_score(*binary);
    return std::move(held_out);
  }
};

template <class V>
void describe(V& v, SequenceLoss& sequence) {
  v("sum", sequence.sum);
  v("count", sequence.count);
  v("document", sequence.document);
  v("predictions", sequence.predictions);
  v.maybe("bytes", sequence.bytes);
}
/// What processes tell each other.
template <class V>
void describe(V& v, LossSums& sums) {
  auto& loss = sums.held_out;
  v("name", loss.name);
  v("of_rewrite", loss.of_rewrite);
  v("weight", loss.weight);
  v.maybe("correct", loss.accuracy);
  v("count", loss.count);
  v("total", sums.weight);
  v.maybe("binary", sums.binary);
  v("sequences", loss.sequences);
}

namespace {

/// The sums of the batches of all processes. Throws Interrupted where one of them has not computed all of its own.
std::vector<LossSums> joined(std::vector<LossSums> own, bool is_complete, Communicator& processes) {
  if (processes.size() == 1 && is_complete) return own;
  std::vector<LossSums> all;
  for (const auto& received : exchange_json(processes, is_complete ? json(own) : json())) {
    if (received.is_null()) throw Interrupted("stopped in a held-out evaluation");
    const auto sums = received.get<std::vector<LossSums>>();
    for (size_t k = 0; k < sums.size(); ++k)
      if (k < all.size())
        all[k].add(sums[k]);
      else
        all.push_back(sums[k]);
  }
  return all;
}

/// Losses of the first `sequences` sequences; `losses` computes the parts of a batch from the batch and the key of its
/// random draws.
template <class Losses>
std::vector<HeldOut> score(Network& network, const Collator& collator, int64_t sequences, int64_t batch_size,
                           at::Device device, Communicator& processes, const Losses& losses) {
  const at::NoGradGuard no_grad;
  const bool was_training = network.is_training();
  network.eval();
  const auto available = std::min(sequences, static_cast<int64_t>(collator.size()));
  std::vector<LossSums> sums;
  const int64_t own = processes.rank() * batch_size, step = processes.size() * batch_size;
  bool is_complete = true;
  for (int64_t first = own; first < available; first += step) {
    if (interrupted) {
      is_complete = false;
      break;
    }
    std::vector<RowDraws> rows;
    const auto made = collator.batch(static_cast<uint64_t>(first), std::min(batch_size, available - first), &rows);
    const auto batch = to_device(made, device);
    const auto parts = losses(batch, static_cast<uint64_t>(first));  // the key seeds the draws of `rewrite`
    sums.resize(parts.size());
    for (size_t k = 0; k < parts.size(); ++k) sums[k].add(parts[k], first, available, rows, collator.store());
  }
  network.train(was_training);
  std::vector<HeldOut> results;
  for (auto& part : joined(std::move(sums), is_complete, processes)) results.push_back(part.result());
  return results;
}

}  // namespace

std::vector<Measure> held_out_measures(const RunConfig& config, const TokenStore& store) {
  return held_out_measures(config, store, store.train_counts());
}

std::vector<Measure> held_out_measures(const RunConfig& config, const TokenStore& store,
                                       const std::vector<uint64_t>& train_counts) {
  const bool has_counts =
      std::any_of(train_counts.begin(), train_counts.end(), [](uint64_t count) { return count > 0; });
  const auto evaluation = resolved_evaluation(config);
  const auto model = held_out_model(config.model);
  const auto rows = held_out_data(config);
  std::vector<Measure> measures;
  for (const auto& objective : evaluation.objectives) {
    const auto objectives = row_objectives(objective);
    const Collator collator(store, objectives, rows, Rng(static_cast<uint64_t>(evaluation.seed)), "valid", model);
    const auto scored = std::min(evaluation.sequences, static_cast<int64_t>(collator.size()));
    const double weight = as_kind(objective).weight;
    auto& measure = measures.emplace_back(Measure{.name = short_form(objective),
                                                  .head = head_of(objective),
                                                  .weight = weight,
                                                  .collator = collator,
                                                  .sequences = scored});
    const bool of_tokens = masks_tokens(objectives) || measure.head == "lm";
    if (of_tokens && has_counts)
      measure.unigram = unigram_baseline(collator, train_counts, scored, config.train.batch_size);
  }
  return measures;
}

std::string missing_sequences(const std::vector<Measure>& measures, int64_t requested) {
  std::string text;
  for (const auto& measure : measures) {
    if (measure.sequences >= requested) continue;
    const auto available = concat(thousands(static_cast<uint64_t>(measure.sequences)), " of ",
                                  thousands(static_cast<uint64_t>(requested)), " sequences exist");
    text += (text.empty() ? "" : ", ") + (measures.size() > 1 ? measure.name + ": " : "") + available;
  }
  return text;
}

std::vector<HeldOut> evaluate(Network& network, const std::vector<Measure>& measures, int64_t batch_size,
                              at::Device device, bool active_only, Communicator& processes) {
  std::vector<HeldOut> all;
  for (const auto& measure : measures) {
    const auto& objective = *network.objective_at(measure.head);
    if (active_only && !objective.active()) continue;
    const auto losses = [&](const Batch& batch, uint64_t key) { return network.losses_at(measure.head, batch, key); };
    auto parts = score(network, measure.collator, measure.sequences, objective.scored_batch_size(batch_size), device,
                       processes, losses);
    if (parts.size() > 1)  // of a hybrid's two losses, these rows have one
      std::erase_if(parts, [](const HeldOut& part) { return part.count == 0; });
    for (auto& part : parts) {
      if (!part.baseline) part.baseline = measure.unigram;
      if (!part.of_rewrite) part.weight = measure.weight;
      // `generator:0.25` of `rtd:0.25`
      part.name = part.of_rewrite ? part.name + measure.name.substr(objective.name().size()) : measure.name;
      part.sources = losses_by_source(part, measure.collator.store().sources());
      all.push_back(std::move(part));
    }
  }
  return all;
}

std::vector<HeldOut> evaluate(Network& network, const Collator& collator, int64_t sequences, int64_t batch_size,
                              at::Device device) {
  return score(network, collator, sequences, batch_size, device, alone(),
               [&](const Batch& batch, uint64_t key) { return network.losses(batch, key); });
}

std::optional<double> standard_error(const std::vector<SequenceLoss>& sequences) {
  std::vector<uint64_t> documents;
  std::vector<double> sums, counts;
  for (const auto& sequence : sequences) {
    if (sequence.count == 0) continue;
    documents.push_back(sequence.document);
    sums.push_back(sequence.sum);
    counts.push_back(sequence.count);
  }
  const auto clusters = cluster_examples(documents, sums.size());
  return clustered_mean(clusters.sums(sums), clusters.sums(counts)).error;
}

Baseline majority_baseline(int64_t positives, int64_t count) {
  const double fraction = count > 0 ? static_cast<double>(positives) / static_cast<double>(count) : 0;
  const auto term = [](double p) { return p > 0 ? -p * std::log(p) : 0.0; };
  return {.name = "majority",
          .loss = term(fraction) + term(1 - fraction),
          .accuracy = std::max(fraction, 1 - fraction),
          .count = count};
}

double f1_score(const BinaryCounts& counts) {
  const auto both = static_cast<double>(counts.true_positives),
             all = static_cast<double>(counts.positives + counts.predicted);
  return all > 0 ? 2 * both / all : 0;
}

json to_json(const std::vector<HeldOut>& losses) {
  json document = json::object();
  for (const auto& part : losses) {
    json entry{{"loss", part.loss},
               {"perplexity", std::exp(part.loss)},
               {"count", part.count},
               {"sequences", part.sequences.size()}};
    if (part.accuracy) entry["accuracy"] = *part.accuracy;
    if (part.standard_error) entry["standard_error"] = *part.standard_error;
    if (part.baseline)
      entry["baseline"] = {
          {"name", part.baseline->name}, {"loss", part.baseline->loss}, {"accuracy", part.baseline->accuracy}};
    if (part.f1) entry["f1"] = *part.f1;
    if (const auto bits = bits_per_byte(part)) entry["bits_per_byte"] = *bits;
    if (!part.sources.empty()) entry["sources"] = to_json(part.sources);
    for (const auto& source : part.sources) entry["sources"][source.name]["documents"] = scored_documents(source);
    document[part.name] = entry;
  }
  return document;
}

std::string to_text(const std::vector<HeldOut>& losses) {
  std::string text;
  for (const auto& part : losses) {
    text += concat("  ", part.name, " loss ", fixed(part.loss, 4));
    if (part.standard_error) text += " +- " + fixed(*part.standard_error, 4);
    if (part.accuracy) text += " accuracy " + fixed(*part.accuracy, 4);
    if (part.f1) text += " F1 " + fixed(*part.f1, 4);
    if (part.baseline)
      text += concat(" (", part.baseline->name, " ", fixed(part.baseline->loss, 4), ", ",
                     fixed(part.baseline->accuracy, 4), ")");
  }
  return text;
}

std::optional<uint64_t> label_bytes(const TokenStore& store, const RowDraws& row) {
  uint64_t sum = 0;
  for (const int64_t token : row.label_offsets) {
    if (token < 0) continue;
    const auto bytes = store.source_bytes(static_cast<uint64_t>(token));
    if (!bytes) return std::nullopt;
    sum += *bytes;
  }
  return sum;
}

std::optional<double> bits_per_byte(const HeldOut& loss) {
  uint64_t bytes = 0;
  for (const auto& sequence : loss.sequences) {
    if (!sequence.bytes) return std::nullopt;
    bytes += *sequence.bytes;
  }
  if (bytes == 0) return std::nullopt;
  return loss.loss * static_cast<double>(loss.count) / std::log(2.0) / static_cast<double>(bytes);
}

Baseline unigram_baseline(const Collator& collator, const std::vector<uint64_t>& counts, int64_t sequences,
                          int64_t batch_size) {
  const auto& tokenizer = collator.store().tokenizer();
  std::vector<double> label_counts(counts.size());  // how often each token is a label
  int64_t num_labels = 0;
  const auto available = static_cast<int64_t>(collator.size());
  for (int64_t first = 0; first < std::min(sequences, available); first += batch_size) {
    const auto batch =
        collator.batch(static_cast<uint64_t>(first), std::min({batch_size, sequences - first, available - first}));
    const auto labels = batch.labels.accessor<int64_t, 1>();
    for (int64_t i = 0; i < labels.size(0); ++i) ++label_counts[static_cast<size_t>(labels[i])];
    num_labels += labels.size(0);
  }
  const double n = std::max(1.0, static_cast<double>(num_labels));
  const auto unseen = [&](size_t id) { return tokenizer.is_special(static_cast<int64_t>(id)) && counts[id] == 0; };
  double words = 0, specials = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const bool special = unseen(id);
    (special ? specials : words) +=
        special ? label_counts[id]
                : static_cast<double>(counts[id]) + 1;  // add-one smoothing: no word has probability 0
  }
  Baseline baseline{.name = "unigram", .count = num_labels};
  double max_share = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const double fraction =
        unseen(id) ? label_counts[id] / n : (1 - specials / n) * (static_cast<double>(counts[id]) + 1) / words;
    if (label_counts[id] > 0) baseline.loss -= label_counts[id] / n * std::log(fraction);
    if (fraction <= max_share) continue;
    max_share = fraction;
    baseline.accuracy = label_counts[id] / n;
  }
  return baseline;
}

std::string evaluation_protocol(const RunConfig& config, const TokenStore& store) {
  const auto& evaluation = config.evaluation;
  std::string names;
  for (const auto& objective : evaluation.objectives) names += (names.empty() ? "" : " + ") + short_form(objective);
  if (!config.task.name.empty()) names += ", best by " + config.task.metric;
  return concat(names, ", ", evaluation.sequences, " sequences of ", evaluation.max_seq_length, " tokens, packing ",
                evaluation.packing, ", seed ", evaluation.seed, ", tokens ", store.split_fingerprint());
}

std::string held_out_file(int64_t step, const std::string& measured, const std::vector<HeldOut>& losses,
                          const std::vector<SourceSpan>& sources) {
  HeldOutRecord record{.step = step, .measured = measured, .sources = sources};
  for (const auto& part : losses) {
    auto& examples = record.losses[part.name];
    const bool has_bytes = bits_per_byte(part).has_value();
    for (const auto& sequence : part.sequences) {
      examples.sum.push_back(sequence.sum);
      examples.count.push_back(sequence.count);
      examples.document.push_back(sequence.document);
      if (has_bytes) examples.bytes.push_back(*sequence.bytes);
    }
  }
  record.xxh3 = hash_hex(json_text(nlohmann::json(record.losses)));
  record.seal = seal_of(record);
  return json_text(nlohmann::json(record)) + "\n";
}

}  // namespace cloze
