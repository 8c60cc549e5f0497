#include "cli/engine/training_counts.h"

#include <filesystem>

#include "core/error.h"
#include "data/manifest.h"

namespace cloze {

TrainingCounts training_counts(const std::string& tokens, const Tokenizer& tokenizer) {
  if (tokens.empty()) return {.why = "its training tokens are not named"};
  std::error_code error;
  if (!std::filesystem::exists(tokens + "/manifest.json", error))
    return {.why = words("its training tokens, ", tokens, error ? ", cannot be reached" : ", no longer exist")};
  try {
    auto manifest = read_manifest(tokens);
    if (!tokenizer.has_fingerprint(manifest.tokenizer_fingerprint))
      return {.why = words(tokens, " has another tokenizer")};
    TrainingCounts found{.counts = std::move(manifest.counts)};
    if (!found.counts.empty()) found.counts.resize(static_cast<size_t>(tokenizer.size()));
    return found;
  } catch (const DataError& e) {
    return {.why = e.what()};
  }
}

}  // namespace cloze
