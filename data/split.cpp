#include "data/split.h"

#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <unordered_map>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "data/document_pool.h"
#include "data/near_copies.h"
#include "data/sentences.h"

namespace cloze {

namespace {

/// What is known of a document without its text.
struct Facts {
  uint64_t hash = 0;
  uint32_t bytes = 0;
  bool divisible = false;  // it has two sentences
  uint32_t group = 0;      // the number of the first document like it
};

struct Surveyed {
  Facts facts;
  Sketch sketch;
};

/// Notes every document of a text.
class Survey {
 public:
  Survey(const PrepareOptions& options, NearCopies& near) : options_(options), near_(near) {}

  void read(const std::vector<std::string>& inputs, const std::vector<std::string>& targets) {
    DocumentReader reader(reader_of(options_, inputs, targets));
    const bool sentences_given = reader.sentences_given();
    DocumentPool<std::vector<Surveyed>> pool(threads_of(options_), [&](const RawBatch& batch) {
      std::vector<Surveyed> out;
      for (const auto& document : batch.documents) out.push_back(survey(document, sentences_given));
      return out;
    });
    bool more = true;
    while (more || !pool.idle()) {
      if (interrupted) throw Interrupted("stopped while documents were compared; nothing was written");
      if (more && !pool.full()) {
        auto batch = read_batch(reader, more, [](const RawDocument&) { return true; });
        if (!batch.documents.empty()) pool.send(std::move(batch));
        continue;
      }
      for (const auto& [facts, sketch] : pool.receive()) {
        documents.push_back(facts);
        near_.add(facts.hash, sketch);
      }
      show(reader.bytes());
    }
  }

  std::vector<Facts> documents;

 private:
  static Surveyed survey(const RawDocument& document, bool sentences_given) {
    bool divisible = document.lines.size() > 1;
    if (!divisible && !sentences_given) {
      std::vector<std::string_view> found;
      split_sentences(document.lines.front(), found);
      divisible = found.size() > 1;
    }
    return {{.hash = content_hash(document), .bytes = static_cast<uint32_t>(document.bytes), .divisible = divisible},
            sketch_of(document.lines)};
  }

  void show(uint64_t done) {
    const double now = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    if (now - shown_ < 0.5) return;
    shown_ = now;
    log_progress(words("[data]    comparing documents: ", bytes(static_cast<double>(done)), ", ",
                       thousands(documents.size()), " documents"),
                 false);
  }

  const PrepareOptions& options_;
  NearCopies& near_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_ = 0;
};

/// Documents that share a fate.
struct Group {
  uint64_t hash = 0;
  uint64_t bytes = 0;
  uint32_t first = 0;
  bool held_out = false;
};

/// Chooses what is held out of the text.
void hold_out(const PrepareOptions& options, const std::vector<Facts>& documents, Split& split) {
  uint64_t total = 0;
  std::vector<uint64_t> alike(documents.size());  // bytes of a group of near copies
  for (uint32_t d = 0; d < documents.size(); ++d) {
    if (split.documents[d] == Fate::removed) continue;
    alike[documents[d].group] += documents[d].bytes;
    total += documents[d].bytes;
  }
  const double wanted = options.held_out * static_cast<double>(total);
  const double most = std::max(2 * options.held_out, 0.05) * static_cast<double>(total);
  std::vector<Group> groups;
  std::vector<uint32_t> group_of(documents.size());
  std::unordered_map<uint64_t, uint32_t> first_of_hash;
  for (uint32_t d = 0; d < documents.size(); ++d) {
    const auto& document = documents[d];
    if (split.documents[d] == Fate::removed) continue;
    const uint32_t first_copy = first_of_hash.try_emplace(document.hash, d).first->second;
    const uint32_t first = static_cast<double>(alike[document.group]) <= most ? document.group : first_copy;
    if (first == d) {
      group_of[d] = static_cast<uint32_t>(groups.size());
      groups.push_back({.hash = document.hash, .first = d});
    }
    group_of[d] = group_of[first];
    groups[group_of[d]].bytes += document.bytes;
  }
  std::vector<Group*> order;
  for (auto& group : groups) order.push_back(&group);
  std::sort(order.begin(), order.end(),
            [](const Group* a, const Group* b) { return std::pair(a->hash, a->first) < std::pair(b->hash, b->first); });
  double held = 0;
  const auto hold = [&](Group& group) {
    group.held_out = true;
    held += static_cast<double>(group.bytes);
  };
  for (auto* group : order) {
    if (held + static_cast<double>(group->bytes) <= wanted)
      hold(*group);
    else if (held >= 0.9 * wanted)
      break;
  }
  const auto smallest = std::min_element(order.begin(), order.end(), [](const Group* a, const Group* b) {
    return std::pair(a->held_out, a->bytes) < std::pair(b->held_out, b->bytes);
  });
  const bool is_open = groups.size() > 1 && held < wanted / 2;
  if (is_open && held + static_cast<double>((*smallest)->bytes) <= most) hold(**smallest);
  for (uint32_t d = 0; d < documents.size(); ++d)
    if (split.documents[d] != Fate::removed && groups[group_of[d]].held_out) split.documents[d] = Fate::valid;
  if (held >= wanted / 2) return;
  const auto rank = [&](uint64_t d) {  // no near copy of it is training text; the longest
    return std::pair(alike[documents[d].group] == documents[d].bytes, documents[d].bytes);
  };
  for (uint32_t d = 0; options.format != "pairs" && d < documents.size(); ++d) {
    if (split.documents[d] != Fate::train || !documents[d].divisible) continue;
    if (split.tail_document >= documents.size() || rank(d) > rank(split.tail_document)) split.tail_document = d;
  }
  if (split.tail_document < documents.size()) {
    const double share = groups.size() == 1 ? std::max(options.held_out, 0.05) : options.held_out;
    split.tail_bytes = static_cast<uint64_t>(share * static_cast<double>(total) - held);
    log_info(
        "data",
        words(groups.size() == 1
                  ? "the text is one document: its last sentences are held out"
                  : "no document is short enough for that share: the last sentences of the longest one are held out"));
    return;
  }
  if (!is_open) return;
  for (uint32_t d = 0; d < documents.size(); ++d)  // documents of one sentence each
    if (split.documents[d] == Fate::train && groups[group_of[d]].first == (*smallest)->first)
      split.documents[d] = Fate::valid;
}

}  // namespace

uint64_t Split::fingerprint() const {
  uint64_t hash = XXH3_64bits_withSeed(documents.data(), documents.size(), tail_document);
  return XXH3_64bits_withSeed(valid_documents.data(), valid_documents.size(), hash + tail_bytes);
}

Split split_text(const PrepareOptions& options, const std::string& folder) {
  NearCopies near(folder + "/sketches");
  Survey survey(options, near);
  survey.read(options.inputs, options.targets);
  auto& all = survey.documents;
  const auto own =
      static_cast<uint32_t>(all.size());  // documents of the text; those of held-out text of its own follow
  if (!options.valid_inputs.empty()) survey.read(options.valid_inputs, options.valid_targets);
  const auto groups = near.groups();
  for (size_t d = 0; d < all.size(); ++d) all[d].group = groups[d];

  Split split{.documents = std::vector<Fate>(own, Fate::train),
              .valid_documents = std::vector<Fate>(all.size() - own, Fate::valid)};
  std::vector<uint64_t> hashes;
  std::vector<uint32_t> first_valid(all.size(), ~uint32_t{0});  // of a group, by the number of its first document
  for (uint32_t d = 0; d < own; ++d) {
    split.near_copies += all[d].group != d;
    hashes.push_back(all[d].hash);
  }
  std::sort(hashes.begin(), hashes.end());
  split.copies = hashes.size() - static_cast<uint64_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
  split.near_copies -= std::min(split.near_copies, split.copies);
  for (uint32_t d = own; d < all.size(); ++d) {
    auto& first = first_valid[all[d].group];
    if (first == ~uint32_t{0})
      first = d;
    else if (options.dedup)
      split.valid_documents[d - own] = Fate::removed;
    split.leaked += all[d].group < own;
  }
  for (uint32_t d = 0; options.dedup && d < own; ++d)
    if (all[d].group != d || first_valid[d] != ~uint32_t{0}) split.documents[d] = Fate::removed;
  split.removed = static_cast<uint64_t>(std::count(split.documents.begin(), split.documents.end(), Fate::removed));
  split.removed_valid =
      static_cast<uint64_t>(std::count(split.valid_documents.begin(), split.valid_documents.end(), Fate::removed));
  all.resize(own);
  if (!options.valid_inputs.empty() || options.held_out == 0 || all.empty()) return split;
  hold_out(options, all, split);
  std::vector<uint8_t> has_training(own);  // of a group
  for (uint32_t d = 0; d < own; ++d) has_training[all[d].group] |= split.documents[d] == Fate::train;
  for (uint32_t d = 0; d < own; ++d) split.leaked += split.documents[d] == Fate::valid && has_training[all[d].group];
  return split;
}

}  // namespace cloze
