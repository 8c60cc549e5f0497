#include "data/prepare/split.h"

#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "core/error.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "data/prepare/document_pool.h"
#include "data/prepare/near_duplicates.h"
#include "data/reading/sentences.h"
#include "data/reading/text_lines.h"

namespace cloze {

namespace {

/// The facts of a document that are kept in memory.
struct Facts {
  uint64_t hash = 0;
  uint32_t bytes = 0;
  bool divisible = false;  // has two sentences or more
  bool visible = false;    // has a character that can be seen
  uint32_t group = 0;      // index of the first document of its group of near-duplicates
};

struct Surveyed {
  Facts facts;
  Sketch sketch;
};

/// Collects the facts of every document of a text.
class Survey {
 public:
  Survey(const PrepareOptions& options, NearDuplicates& near) : options_(options), near_(near) {}

  void read(const std::vector<std::string>& inputs, const std::vector<std::string>& targets) {
    DocumentReader reader(reader_of(options_, inputs, targets));
    const bool sentences_given = reader.sentences_given();
    DocumentPool<std::vector<Surveyed>> pool(threads_of(options_), [&](const RawBatch& batch) {
      std::vector<Surveyed> out;
      for (const auto& document : batch.documents) out.push_back(survey(document, sentences_given));
      return out;
    });
    const uint64_t total = input_bytes(inputs);
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
      show(reader.bytes(), total);
    }
  }

  std::vector<Facts> documents;

 private:
  static Surveyed survey(const RawDocument& document, bool sentences_given) {
    bool divisible = document.lines.size() > 1;
    if (!divisible && !sentences_given) {
      std::vector<std::string_view> sentences;
      split_sentences(document.lines.front(), sentences);
      divisible = sentences.size() > 1;
    }
    const bool visible = std::any_of(document.lines.begin(), document.lines.end(), has_visible_text);
    return {{.hash = content_hash(document),
             .bytes = static_cast<uint32_t>(document.bytes),
             .divisible = divisible,
             .visible = visible},
            sketch_of(document.lines)};
  }

  void show(uint64_t done, uint64_t total) {
    const double now = seconds_since(start_);
    if (now - shown_ < 0.5) return;
    shown_ = now;
    const auto read = static_cast<double>(done), all = static_cast<double>(total);
    log_progress(Progress{{"[data]    comparing documents", bytes(read) + (total > 0 ? " of " + bytes(all) : ""),
                           counted(documents.size(), "document")},
                          total > 0 ? read / all : -1},
                 false);
  }

  const PrepareOptions& options_;
  NearDuplicates& near_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double shown_ = 0;
};

/// Documents that share an assignment.
struct Group {
  uint64_t hash = 0;
  uint64_t bytes = 0;
  uint32_t first = 0;
  bool held_out = false;
};

/// Which documents share an assignment, in order of preference.
enum class Grouping { near_duplicates, duplicates, none };

/// The groups of the documents that are not removed, and the group index of each document.
struct Groups {
  std::vector<Group> all{};
  std::vector<uint32_t> of{};
};

Groups grouped(const std::vector<Facts>& documents, const std::vector<Assignment>& assignments, Grouping grouping) {
  Groups groups{.of = std::vector<uint32_t>(documents.size())};
  std::unordered_map<uint64_t, uint32_t> first_of_hash;
  const auto first_of = [&](uint32_t d) {
    if (grouping == Grouping::near_duplicates) return documents[d].group;
    if (grouping == Grouping::duplicates) return first_of_hash.try_emplace(documents[d].hash, d).first->second;
    return d;
  };
  for (uint32_t d = 0; d < documents.size(); ++d) {
    if (assignments[d] == Assignment::removed) continue;
    const uint32_t first = first_of(d);
    if (first == d) {
      groups.of[d] = static_cast<uint32_t>(groups.all.size());
      groups.all.push_back({.hash = documents[d].hash, .first = d});
    }
    groups.of[d] = groups.of[first];
    groups.all[groups.of[d]].bytes += documents[d].bytes;
  }
  return groups;
}

Group& smallest_open(std::vector<Group>& groups) {
  return *std::min_element(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return std::tuple(a.held_out, a.bytes, a.hash, a.first) < std::tuple(b.held_out, b.bytes, b.hash, b.first);
  });
}

/// The share to hold out, in bytes.
struct HeldOutTarget {
  double total = 0, wanted = 0, max = 0;
  bool is_met_by(double held) const { return held >= wanted / 2; }
};

/// Holds groups out in the order of their hashes, and the smallest one if that reaches less than half of the share and
/// the smallest one does not exceed the maximum; returns their bytes.
double hold_out_groups(std::vector<Group>& groups, const HeldOutTarget& target) {
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
    if (held + static_cast<double>(group->bytes) <= target.wanted)
      hold(*group);
    else if (held >= 0.9 * target.wanted)
      break;
  }
  if (groups.size() == 1 || target.is_met_by(held)) return held;
  auto& smallest = smallest_open(groups);
  if (held + static_cast<double>(smallest.bytes) <= target.max) hold(smallest);
  return held;
}

constexpr uint64_t no_document = ~uint64_t{0};

/// The rank of a document whose end can be held out: those without near-duplicates come first, then the longest.
std::pair<bool, uint32_t> rank_of(const Facts& document, const std::vector<uint32_t>& group_size) {
  return std::pair(group_size[document.group] == 1, document.bytes);
}

/// The first divisible document by rank that is not held out; or no_document.
uint64_t longest_open(const std::vector<Facts>& documents, const Split& split, const Groups& groups,
                      const std::vector<uint32_t>& group_size) {
  uint64_t longest = no_document;
  for (uint32_t d = 0; d < documents.size(); ++d) {
    const bool is_open = split.documents[d] != Assignment::removed && !groups.all[groups.of[d]].held_out;
    if (!is_open || !documents[d].divisible) continue;
    if (longest == no_document || rank_of(documents[d], group_size) > rank_of(documents[longest], group_size))
      longest = d;
  }
  return longest;
}

/// Chooses the held-out part of the text.
void hold_out(const PrepareOptions& options, const std::vector<Facts>& documents, Split& split) {
  HeldOutTarget target;
  std::vector<uint32_t> group_size(documents.size());  // documents of a group of near-duplicates
  for (uint32_t d = 0; d < documents.size(); ++d) {
    if (split.documents[d] == Assignment::removed) continue;
    ++group_size[documents[d].group];
    target.total += documents[d].bytes;
  }
  target.wanted = options.held_out * target.total;
  target.max = std::max(2 * options.held_out, 0.05) * target.total;
  Groups groups;
  double held = 0;
  uint64_t longest = no_document;
  for (const auto grouping : {Grouping::near_duplicates, Grouping::duplicates, Grouping::none}) {
    groups = grouped(documents, split.documents, grouping);
    held = hold_out_groups(groups.all, target);
    if (options.format != TextFormat::pairs) longest = longest_open(documents, split, groups, group_size);
    if (target.is_met_by(held)) break;
    if (longest != no_document && rank_of(documents[longest], group_size).first) break;
  }
  const bool single = groups.all.size() == 1;
  if (!target.is_met_by(held) && longest != no_document) {
    split.tail_document = longest;
    split.tail_bytes = static_cast<uint64_t>((single ? target.max : target.wanted) - held);
    log_info(
        "data",
        concat(single
                   ? "the text is one document: its last sentences are held out"
                   : "no document is short enough for that share: the last sentences of the longest one are held out"));
  } else if (!target.is_met_by(held) && !single) {  // documents of one sentence each
    smallest_open(groups.all).held_out = true;
  }
  for (uint32_t d = 0; d < documents.size(); ++d)
    if (split.documents[d] != Assignment::removed && groups.all[groups.of[d]].held_out)
      split.documents[d] = Assignment::valid;
}

/// Counts the documents of the text, the first `own`, that are copies of others, and those that nearly are.
void count_duplicates(const std::vector<Facts>& all, uint32_t own, Split& split) {
  std::vector<uint64_t> hashes;
  for (uint32_t d = 0; d < own; ++d) {
    split.near_duplicates += all[d].group != d;
    hashes.push_back(all[d].hash);
  }
  std::sort(hashes.begin(), hashes.end());
  split.copies = hashes.size() - static_cast<uint64_t>(std::unique(hashes.begin(), hashes.end()) - hashes.begin());
  split.near_duplicates -= std::min(split.near_duplicates, split.copies);
}

/// Counts the documents of a separate held-out text, those from `own` on, that are near-duplicates of the text, and
/// removes duplicates if that is wanted: of those in both texts it is the held-out one that stays.
void compare_held_out_text(const std::vector<Facts>& all, uint32_t own, bool dedup, Split& split) {
  constexpr uint32_t none = ~uint32_t{0};
  std::vector<uint32_t> first_valid(all.size(), none);  // of a group, by the index of its first document
  for (uint32_t d = own; d < all.size(); ++d) {
    auto& first = first_valid[all[d].group];
    if (first == none)
      first = d;
    else if (dedup)
      split.valid_documents[d - own] = Assignment::removed;
    split.leaked += all[d].group < own;
  }
  for (uint32_t d = 0; dedup && d < own; ++d)
    if (all[d].group != d || first_valid[d] != none) split.documents[d] = Assignment::removed;
  const auto removed_of = [](const std::vector<Assignment>& documents) {
    return static_cast<uint64_t>(std::count(documents.begin(), documents.end(), Assignment::removed));
  };
  split.removed = removed_of(split.documents);
  split.removed_valid = removed_of(split.valid_documents);
}

/// Counts the held-out documents with a near-duplicate in the training text.
void count_leaks(const std::vector<Facts>& documents, Split& split) {
  std::vector<uint32_t> training(documents.size());  // training documents of a group
  for (size_t d = 0; d < documents.size(); ++d) training[documents[d].group] += split.documents[d] == Assignment::train;
  for (size_t d = 0; d < documents.size(); ++d)
    split.leaked += split.documents[d] == Assignment::valid && training[documents[d].group] > 0;
  if (split.tail_document < documents.size()) split.leaked += training[documents[split.tail_document].group] > 1;
}

ComparedFile file_state(const std::string& path) {
  struct stat info{};
  stat(path.c_str(), &info);
  return {.path = path, .bytes = info.st_size, .seconds = info.st_mtim.tv_sec, .nanoseconds = info.st_mtim.tv_nsec};
}

}  // namespace

uint64_t Split::fingerprint() const {
  uint64_t hash = XXH3_64bits_withSeed(documents.data(), documents.size(), tail_document);
  return XXH3_64bits_withSeed(valid_documents.data(), valid_documents.size(), hash + tail_bytes);
}

void Split::require_unchanged() const {
  for (const auto& before : files) {
    const auto now = file_state(before.path);
    const bool same =
        std::tie(now.bytes, now.seconds, now.nanoseconds) == std::tie(before.bytes, before.seconds, before.nanoseconds);
    const auto how = now.bytes == before.bytes ? std::string("it was modified")
                                               : concat(before.bytes, " bytes before, ", now.bytes, " now");
    require<DataError>(same, before.path, ": has changed while it was prepared (", how,
                       "); prepare it again when nothing writes to it");
  }
}

Split split_text(const PrepareOptions& options, const std::string& folder) {
  std::vector<ComparedFile> files;
  for (const auto* inputs : {&options.inputs, &options.targets, &options.valid_inputs, &options.valid_targets})
    if (!inputs->empty())
      for (const auto& file : expand_inputs(*inputs)) files.push_back(file_state(file));
  NearDuplicates near(folder + "/sketches");
  Survey survey(options, near);
  survey.read(options.inputs, options.targets);
  auto& all = survey.documents;
  const auto own = static_cast<uint32_t>(all.size());  // of the text; those of the separate held-out text follow
  if (!options.valid_inputs.empty()) survey.read(options.valid_inputs, options.valid_targets);
  const auto groups = near.groups();
  for (size_t d = 0; d < all.size(); ++d) all[d].group = groups[d];

  Split split{.files = std::move(files),
              .documents = std::vector<Assignment>(own, Assignment::train),
              .valid_documents = std::vector<Assignment>(all.size() - own, Assignment::valid)};
  split.require_unchanged();
  split.has_visible_text =
      std::any_of(all.begin(), all.begin() + own, [](const Facts& facts) { return facts.visible; });
  count_duplicates(all, own, split);
  compare_held_out_text(all, own, options.dedup, split);
  all.resize(own);
  if (!options.valid_inputs.empty() || options.held_out == 0 || all.empty()) return split;
  hold_out(options, all, split);
  count_leaks(all, split);
  return split;
}

}  // namespace cloze
