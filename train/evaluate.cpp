#include <cmath>

#include "train/trainer.h"

namespace cloze {

std::vector<HeldOut> evaluate(Network& network, const Collator& collator, int64_t sequences, int64_t batch_size, at::Device device) {
  at::NoGradGuard no_grad;
  const bool was_training = network.is_training();
  network.eval();
  std::vector<HeldOut> found;
  const auto available = static_cast<int64_t>(collator.size());
  for (int64_t first = 0; first < std::min(sequences, available); first += batch_size) {
    auto batch = collator.batch(static_cast<uint64_t>(first), std::min({batch_size, sequences - first, available - first}));
    for (auto* tensor : batch.tensors())
      if (tensor->defined()) *tensor = tensor->to(device);
    const auto parts = network.losses(batch, static_cast<uint64_t>(first));   // the key names what rtd draws
    found.resize(parts.size());
    for (size_t k = 0; k < parts.size(); ++k) {
      found[k].name = parts[k].name, found[k].weight = parts[k].weight;
      found[k].loss += parts[k].sum.item<double>();
      found[k].accuracy += static_cast<double>(parts[k].correct);
      found[k].count += parts[k].count;
    }
  }
  for (auto& part : found) {
    const double n = std::max<double>(1, static_cast<double>(part.count));
    part.loss /= n, part.accuracy /= n;
  }
  network.train(was_training);
  return found;
}

uint64_t label_bytes(const Collator& collator, int64_t sequences, int64_t batch_size) {
  const auto& tokenizer = collator.store().tokenizer();
  uint64_t bytes = 0;
  const auto available = static_cast<int64_t>(collator.size());
  for (int64_t first = 0; first < std::min(sequences, available); first += batch_size) {
    const auto batch = collator.batch(static_cast<uint64_t>(first), std::min({batch_size, sequences - first, available - first}));
    const auto* labels = batch.labels.data_ptr<int64_t>();
    for (int64_t begin = 0; begin < batch.labels.numel();) {
      int64_t end = begin;   // texts are told apart by their ends
      while (end < batch.labels.numel() && !tokenizer.is_special(labels[end])) ++end;
      if (end > begin) bytes += tokenizer.decode(std::span(labels + begin, static_cast<size_t>(end - begin))).size() + (tokenizer.starts_word(labels[begin]) && !tokenizer.keeps_spaces() ? 1 : 0);   // the space that such a decoding leaves out
      begin = end + 1;
    }
  }
  return bytes;
}

HeldOut unigram_baseline(const Collator& collator, int64_t sequences, int64_t batch_size) {
  const auto& counts = collator.store().train_counts();
  const auto& tokenizer = collator.store().tokenizer();
  std::vector<double> answers(counts.size());   // of what is predicted, each token's number
  int64_t labels_seen = 0;
  const auto available = static_cast<int64_t>(collator.size());
  for (int64_t first = 0; first < std::min(sequences, available); first += batch_size) {
    const auto batch = collator.batch(static_cast<uint64_t>(first), std::min({batch_size, sequences - first, available - first}));
    const auto labels = batch.labels.accessor<int64_t, 1>();
    for (int64_t i = 0; i < labels.size(0); ++i) ++answers[static_cast<size_t>(labels[i])];
    labels_seen += labels.size(0);
  }
  const double n = std::max(1.0, static_cast<double>(labels_seen));
  const auto unseen = [&](size_t id) { return tokenizer.is_special(static_cast<int64_t>(id)) && counts[id] == 0; };
  double words = 0, specials = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const bool special = unseen(id);
    (special ? specials : words) += special ? answers[id] : static_cast<double>(counts[id]) + 1;   // add-one smoothing: no word is impossible
  }
  HeldOut found{.name = "unigram", .count = labels_seen};
  double most = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    const double share = unseen(id) ? answers[id] / n : (1 - specials / n) * (static_cast<double>(counts[id]) + 1) / words;
    if (answers[id] > 0) found.loss -= answers[id] / n * std::log(share);
    if (share > most) most = share, found.accuracy = answers[id] / n;
  }
  return found;
}

}  // namespace cloze
