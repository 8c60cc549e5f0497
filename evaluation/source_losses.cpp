#include "evaluation/source_losses.h"

#include <algorithm>
#include <map>
#include <set>

namespace cloze {

namespace {

/// The source of a document.
class SourceOf {
 public:
  explicit SourceOf(const std::vector<SourceSpan>& spans) {
    uint64_t documents = 0;
    for (const auto& span : spans) {
      documents += span.documents;
      last_.emplace(documents - 1, &span.source);
    }
  }
  const std::string& operator()(uint64_t document) const { return *last_.lower_bound(document)->second; }

 private:
  std::map<uint64_t, const std::string*> last_;  // the last document of each span
};

void sum_up(HeldOut& part) {
  double sum = 0, weight = 0;
  for (const auto& sequence : part.sequences) {
    sum += sequence.sum;
    weight += sequence.count;
    part.count += sequence.predictions;
  }
  part.loss = sum / weight;
  part.standard_error = standard_error(part.sequences);
}

}  // namespace

std::vector<HeldOut> losses_by_source(const HeldOut& total, const std::vector<SourceSpan>& sources) {
  std::vector<HeldOut> parts;
  if (sources.empty()) return parts;
  std::map<std::string, size_t> index;
  for (const auto& span : sources)
    if (index.try_emplace(span.source, parts.size()).second) parts.push_back({.name = span.source});
  const SourceOf source_of(sources);
  for (const auto& sequence : total.sequences)
    if (sequence.count > 0) parts[index.at(source_of(sequence.document))].sequences.push_back(sequence);
  std::erase_if(parts, [](const HeldOut& part) { return part.sequences.empty(); });
  for (auto& part : parts) sum_up(part);
  return parts;
}

uint64_t scored_documents(const HeldOut& loss) {
  std::set<uint64_t> documents;
  for (const auto& sequence : loss.sequences)
    if (sequence.count > 0) documents.insert(sequence.document);
  return documents.size();
}

}  // namespace cloze
