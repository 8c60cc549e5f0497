#include "cli/engine/evaluation_texts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "core/file.h"
#include "core/log.h"
#include "data/prepare.h"
#include "data/spool.h"
#include "objectives/config.h"

namespace cloze {

namespace fs = std::filesystem;

EvaluationTexts readable_texts(const EvaluateCommand& c, const ScratchFolder& scratch) {
  EvaluationTexts texts;
  if (!c.text.empty()) texts.sources = expand_inputs(c.text);
  if (!c.target.empty()) texts.targets = expand_inputs(c.target);
  spool(std::array{&texts.sources, &texts.targets}, scratch.path());
  return texts;
}

namespace {

/// The texts are pairs of a source and a target.
bool are_pairs(const EvaluateCommand& c) { return !c.target.empty() || !c.columns.empty() || c.format == "pairs"; }

/// The runs' objectives and the texts are both of pairs, or neither is.
void check_format(const EvaluationConfig& evaluation, const EvaluateCommand& c) {
  const bool of_pairs = any_that(evaluation.objectives, &ObjectiveKind::reads_text_pairs);
  require<ConfigError>(c.text.empty() || of_pairs == are_pairs(c),
                       of_pairs ? "this run is trained on pairs; name the targets of --text with --target, or use "
                                  "--format pairs for two columns"
                                : "this run is not trained on pairs; leave out --target and --format pairs");
}

/// Tokens of the texts by the run's tokenizer, in the folder `out`.
void prepare_texts(const EvaluatedRun& one, const EvaluateCommand& c, const EvaluationTexts& texts,
                   const std::string& out) {
  PrepareOptions options;
  options.inputs = texts.sources;
  options.targets = texts.targets;
  options.out = out;
  options.tokenizer = one.run.folder + "/tokenizer";
  options.held_out = 0;
  options.for_scoring = true;
  options.format = are_pairs(c) ? TextFormat::pairs : choice_of_option<TextFormat>("format", c.format);
  options.field = c.field;
  options.columns = c.columns;
  prepare(options);
}

/// Opens `one.tokens`, for the run's tokenizer.
void open_store(EvaluatedRun& one, const std::string& split) {
  one.store.emplace(one.tokens, split);
  if (!one.run.has_tokenizer) return;
  require<ConfigError>(one.store->tokenizer().fingerprint() == one.run.tokenizer.fingerprint(), one.tokens,
                       ": has another tokenizer than the run; prepare it with --tokenizer ", one.run.folder,
                       "/tokenizer");
  one.store = one.store->with_tokenizer(one.run.tokenizer);  // with sentinels of its own
}

/// Both runs are scored on the same text; that their losses per token differ in kind is said.
void check_same_text(const EvaluatedRun& one, const EvaluatedRun& first) {
  const bool same_tokenizer = one.store->tokenizer().fingerprint() == first.store->tokenizer().fingerprint();
  require<ConfigError>(same_sequences(one, first) || !same_tokenizer, one.path, " was trained on other tokens than ",
                       first.path, " (", one.tokens, ", ", first.tokens,
                       "); name the text to score both on with --text or --tokens");
  if (!same_tokenizer)
    log_warning("evaluate", words(one.path, " has another tokenizer than ", first.path,
                                  ": losses per token cannot be compared, bits per byte can"));
}

}  // namespace

void open_texts(std::vector<EvaluatedRun>& runs, const EvaluateCommand& c, const EvaluationTexts& texts,
                const ScratchFolder& scratch) {
  check_format(runs[0].config.evaluation, c);
  std::map<std::string, std::string> prepared;  // tokenizer -> folder
  for (auto& one : runs) {
    one.tokens = c.tokens.empty() ? one.run.config.data.tokens : c.tokens;
    if (!c.text.empty()) {
      require<CheckpointError>(one.run.has_tokenizer, one.path,
                               ": has no tokenizer, so it cannot read text; name prepared tokens with --tokens");
      const auto [folder, is_new] =
          prepared.emplace(one.run.tokenizer.fingerprint(), words(scratch.path(), "/tokens-", prepared.size()));
      one.tokens = folder->second;
      if (is_new) prepare_texts(one, c, texts, one.tokens);
    }
    require<ConfigError>(!one.tokens.empty(), one.path,
                         ": names no prepared tokens; give text with --text, or tokens with --tokens");
    require<DataError>(!c.tokens.empty() || fs::exists(one.tokens), one.path, ": its tokens, ", one.tokens,
                       ", are neither there nor near the run; name their folder with --tokens, or text with --text");
    open_store(one, c.text.empty() ? "valid" : "train");
    check_same_text(one, runs[0]);
  }
}

}  // namespace cloze
