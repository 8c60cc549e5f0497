// `babylm collate`.
#include "babylm/collate.h"

#include <filesystem>

#include "babylm/results.h"
#include "cli/engine/parts.h"
#include "core/log.h"
#include "suites/suite.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The results and the model of a command: named, or a folder of one model.
std::pair<std::string, std::string> model_of(const CollateCommand& c) {
  if (!c.model.empty()) return {c.results, babylm_model_name(c.model)};
  auto folder = fs::absolute(c.results).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  require<ConfigError>(fs::is_directory(folder), c.results,
                       ": no such folder; `cloze evaluate RUN --suite babylm` writes the results of a model");
  require<ConfigError>(
      fs::is_directory(folder / c.revision), c.results, ": has no folder ", c.revision,
      "; evaluate the model (`cloze evaluate RUN --suite babylm`), or name one in it with --model, or its "
      "revision with --revision");
  return {folder.parent_path().string(), folder.filename().string()};
}

/// The only backend of a model's results. Throws ConfigError for none and for several.
BabylmBackend only_backend(const fs::path& zero_shot) {
  std::vector<BabylmBackend> found;
  for (const auto& choice : choices(BabylmBackend{}))
    if (fs::is_directory(zero_shot / choice.name)) found.push_back(choice.value);
  require<ConfigError>(found.size() == 1, zero_shot.string(), found.empty() ? ": has no results" : ": has results",
                       " of ", found.empty() ? "any backend; evaluate the model" : "several backends; name one",
                       found.empty() ? " with `cloze evaluate RUN --suite babylm`" : " with --backend");
  return found[0];
}

}  // namespace

int run_collate(const CollateCommand& c) {
  const auto [results, model] = model_of(c);
  const auto data = c.data.empty() ? suites_folder() + "/babylm" : c.data;
  const auto collation = collate_babylm(
      {.results = results,
       .model = model,
       .revision = c.revision,
       .backend = c.backend ? *c.backend : only_backend(fs::path(results) / model / c.revision / "zero_shot"),
       .track = c.track,
       .fast = c.fast,
       .fast_data = data + "/fast_eval",
       .partial = c.partial});
  for (const auto& fault : collation.faults) log_warning("babylm", fault);
  print_data(collation.file + "\n");
  return 0;
}

}  // namespace cloze
