#include "run/run_tokenizer.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/log.h"
#include "data/tokenizer_impl.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// What brings back the tokenizer of a run: of an imported one that was not trained since, another import.
std::string tokenizer_remedy(const std::string& run) {
  const auto path = run + "/provenance.json";
  std::error_code unknown;
  const auto origin = fs::is_regular_file(path, unknown) ? parse_json(read_text(path, 16 << 20)) : json();
  const bool is_imported = origin.is_object() && origin.contains("imported_from") && !origin.contains("data");
  if (is_imported) return "import it again with its tokenizer files";
  return concat("restore ", run, "/tokenizer, or resume the run with its tokens");
}

/// The tokenizer of a run, whose fingerprint is that of its facts.
Tokenizer open_unchanged(const std::string& run) try {
  return Tokenizer::open(run + "/tokenizer");
} catch (const ChangedTokenizer& fault) {
  fail<CheckpointError>(fault.change, "; ",
                        tokenizer_remedy(run));  // without its facts a run would not be opened either
}

bool is_text_or_absent(const json& object, const char* key) { return !object.contains(key) || object[key].is_string(); }

}  // namespace

RecordedTokenizer recorded_tokenizer(const std::string& run) {
  const auto path = run + "/provenance.json";
  require<CheckpointError>(fs::exists(path), run,
                           ": provenance.json is missing, so nothing says that its tokenizer is the one it was trained "
                           "with; restore it");
  const auto recorded = parse_json(read_text(path, 16 << 20));
  const bool is_intact = recorded.is_object() && recorded.contains("cloze") && is_text_or_absent(recorded, "tokenizer");
  require<CheckpointError>(is_intact, path, ": is damaged, so that the tokenizer of the run is not known; restore it");
  const auto current = string_at(recorded, "/tokenizer");
  if (!current.empty()) return {.fingerprint = current, .is_current = true};
  return {.fingerprint = string_at(recorded, "/data/tokenizer")};
}

std::optional<Tokenizer> open_run_tokenizer(const std::string& run, const RecordedTokenizer& recorded) {
  const auto folder = run + "/tokenizer";
  const bool is_recorded = !recorded.fingerprint.empty(), exists = fs::exists(folder);
  if (!exists && is_recorded)
    fail<CheckpointError>(folder, ": is missing, and provenance.json records the tokenizer ", recorded.fingerprint,
                          "; ", tokenizer_remedy(run));
  if (!exists) return std::nullopt;
  const auto facts = folder + "/" + facts_file;
  if (!fs::exists(facts) && is_recorded)
    fail<CheckpointError>(facts, ": is missing, and without it texts may have other ids; ", tokenizer_remedy(run));
  auto tokenizer = is_recorded ? open_unchanged(run) : Tokenizer::open(folder);
  if (!is_recorded || tokenizer.has_fingerprint(recorded.fingerprint)) return tokenizer;
  const auto difference =
      concat(folder, ": has the fingerprint ", tokenizer.fingerprint(), ", provenance.json ", recorded.fingerprint);
  if (recorded.is_current)
    fail<CheckpointError>(difference, ", so that it is another tokenizer than that of the run; ",
                          tokenizer_remedy(run));
  log_warning("train", concat(difference, "; unless the run was resumed on other tokens, restore its tokenizer"));
  return tokenizer;
}

std::optional<Tokenizer> open_run_tokenizer(const std::string& run) {
  RecordedTokenizer recorded;
  try {
    recorded = recorded_tokenizer(run);
  } catch (const Error& e) {
    log_warning("train", e.what());
  }
  return open_run_tokenizer(run, recorded);
}

void require_fitting(const Tokenizer& tokenizer, int64_t vocab_size, const std::string& run) {
  if (tokenizer.size() <= vocab_size) return;
  fail<CheckpointError>(run, "/tokenizer: has ", tokenizer.size(), " tokens, the model has ", vocab_size,
                        ", so that it is another tokenizer than that of the run; ", tokenizer_remedy(run));
}

std::string no_tokenizer(const std::string& run) {
  return "has no tokenizer, so it cannot read text; " + tokenizer_remedy(run);
}

}  // namespace cloze
