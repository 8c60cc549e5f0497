#include "evaluation/babylm/collate.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/error.h"
#include "core/file.h"
#include "evaluation/babylm/fast_scores.h"
#include "evaluation/babylm/results.h"
#include "evaluation/suites/json_lines.h"
#include "evaluation/suites/suite.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

std::string in_lower_case(std::string name) {
  for (auto& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

/// Whether a part has this name in lower case.
bool has_part(const PythonJson::Dict& parts, const std::string& name) {
  return std::any_of(parts.begin(), parts.end(), [&](const auto& part) { return in_lower_case(part.first) == name; });
}

/// A task of a submission and the folder of its predictions.
struct Part {
  const char* task;
  const char* folder;  ///< below zero_shot/BACKEND
};
constexpr std::array full_parts{Part{"blimp", "blimp/blimp_filtered"},
                                Part{"blimp_supplement", "blimp/supplement_filtered"},
                                Part{"ewok", "ewok/ewok_filtered"},
                                Part{"entity_tracking", "entity_tracking/entity_tracking"},
                                Part{"wug_adj", "wug_adj/wug_adj_nominalization"},
                                Part{"wug_past", "wug_past/wug_past_tense"},
                                Part{"comps", "comps/comps"},
                                Part{"reading", "reading"}};
constexpr std::array fast_parts{Part{"blimp", "blimp/blimp_fast"},
                                Part{"blimp_supplement", "blimp/supplement_fast"},
                                Part{"ewok", "ewok/ewok_fast"},
                                Part{"entity_tracking", "entity_tracking/entity_tracking_fast"},
                                Part{"wug_adj", "wug_adj/wug_adj_nominalization"},
                                Part{"wug_past", "wug_past/wug_past_tense"},
                                Part{"reading", "reading"}};
constexpr std::array finetuned{"boolq", "mnli", "mrpc", "multirc", "qqp", "rte", "wsc"};

class PredictionCollator {
 public:
  PredictionCollator(const CollateRequest& request, const BabylmSizes& sizes) : request_(request), sizes_(sizes) {}

  PythonJson::Dict document() {
    PythonJson::Dict fields;
    if (request_.backend)
      fields = zero_shot_parts();
    else
      fault(request_.results, "/", request_.model, ": has no answers to questions; ", evaluated_by_cloze);
    fields.emplace_back("glue", glue());
    if (request_.fast && request_.backend) fields.emplace_back("fast_eval_results", fast());
    return fields;
  }

  std::vector<std::string> faults;

 private:
  static constexpr const char* evaluated_by_cloze = "`cloze evaluate RUN --suite babylm` writes it";
  static constexpr const char* fine_tuned_by_cloze = "`cloze babylm finetune RUN DATA` writes it";

  PythonJson::Dict zero_shot_parts() {
    PythonJson::Dict fields;
    for (const auto& [task, folder] : full_parts)
      if (auto predictions =
              sized(zero_shot(request_.revision) / folder / "predictions.json", task, sizes_.full, evaluated_by_cloze))
        fields.emplace_back(task, std::move(*predictions));
    if (auto surprisals = acquisition()) fields.emplace_back("aoa", std::move(*surprisals));
    return fields;
  }

  template <class... Words>
  void fault(const Words&... parts) {
    faults.push_back(concat(parts...));
  }

  std::string fast_data() const { return request_.data + "/fast_eval"; }

  fs::path zero_shot(const std::string& revision) const {
    return zero_shot_folder(request_.results, request_.model, revision, *request_.backend);
  }

  /// Throws DataError where results before were of another network. What the published program wrote has no note.
  void check_network(const fs::path& file) {
    for (const auto& [revision, weights] : noted_weights(file.string())) {
      const auto& first = networks_.emplace(revision, std::pair(file.string(), weights)).first->second;
      require<DataError>(first.second == weights, file.string(), ": is of another network (weights ", weights,
                         ") than ", first.first, " (", first.second,
                         "); write both from one checkpoint (`cloze evaluate RUN --suite babylm`, `cloze babylm "
                         "finetune RUN DATA`), or give each network its own --results");
    }
  }

  /// The JSON of a file; none, and a fault with `mend`, if it is not there.
  std::optional<PythonJson> read(const fs::path& file, const char* mend) {
    if (!fs::exists(file)) {
      fault(file.string(), ": is not there; ", mend);
      return {};
    }
    check_network(file);
    return parse_python_json(read_text(file.string()), file.string());
  }

  /// The predictions of a task, with a fault for each part that is missing or has another size.
  std::optional<PythonJson> sized(const fs::path& file, const std::string& task,
                                  const std::map<std::string, TaskSize>& sizes, const char* mend) {
    auto json = read(file, mend);
    if (!json) return {};
    require<DataError>(json->dict() != nullptr, file.string(), ": is no JSON object of parts");
    for (const auto& [name, part] : *json->dict()) {
      const auto* predictions = part.find("predictions");
      require<DataError>(predictions && predictions->list(), file.string(), ": part '", name,
                         "' has no list of `predictions`");
      check_size(file, name, static_cast<int64_t>(predictions->list()->size()), sizes.at(task));
    }
    check_parts(file, *json->dict(), sizes.at(task));
    return json;
  }

  /// A fault for each part of the published data that is missing, which the published program does not look for.
  void check_parts(const fs::path& file, const PythonJson::Dict& fields, const TaskSize& expected) {
    if (fields.empty() && expected.parts.empty()) fault(file.string(), ": has no predictions");
    for (const auto& [name, due] : expected.parts)
      if (!has_part(fields, name))
        fault(file.string(), ": has no '", name, "', of which the published data have ", due, " items");
  }

  void check_size(const fs::path& file, const std::string& part, int64_t size, const TaskSize& expected) {
    const auto found = expected.parts.find(in_lower_case(part));
    if (!expected.parts.empty() && found == expected.parts.end())
      return fault(file.string(), ": '", part, "' is no part of the published data");
    const auto due = expected.parts.empty() ? expected.each : found->second;
    if (size != due)
      fault(file.string(), ": '", part, "' has ", size, " predictions, and the published data ", due, " items");
  }

  /// The fine-tuned tasks in one object.
  PythonJson::Dict glue() {
    PythonJson::Dict all;
    for (const auto* task : finetuned) {
      const auto file =
          fs::path(request_.results) / request_.model / request_.revision / "finetune" / task / "predictions.json";
      const auto predictions = sized(file, task, sizes_.full, fine_tuned_by_cloze);
      if (!predictions) continue;
      for (const auto& [name, part] : *predictions->dict()) {
        const auto same = [&](const auto& other) { return other.first == name; };
        const auto at = std::find_if(all.begin(), all.end(), same);
        if (at == all.end())
          all.emplace_back(name, part);
        else
          at->second = part;
      }
    }
    return all;
  }

  std::optional<PythonJson> acquisition() {
    const auto file = zero_shot(request_.revision) / "AoA_word" / "surprisal.json";
    auto json = read(file, evaluated_by_cloze);
    if (!json) return {};
    const auto* results = json->find("results");
    require<DataError>(results && results->list(), file.string(), ": has no list of `results`");
    std::map<std::string, int64_t> counts;
    for (const auto& line : *results->list()) {
      const auto* step = line.find("step");
      require<DataError>(step && step->text(), file.string(), ": a result has no `step`");
      ++counts[*step->text()];
    }
    check_checkpoints(file, counts);
    return json;
  }

  void check_checkpoints(const fs::path& file, const std::map<std::string, int64_t>& counts) {
    const auto due = babylm_revisions(request_.track);
    if (counts.size() != due.size())
      return fault(file.string(), ": has ", counts.size(), " checkpoints, and track ", name_of(request_.track), " ",
                   due.size(), " (--track names another)");
    for (const auto& revision : due) {
      const auto found = counts.find(revision);
      if (found == counts.end()) return fault(file.string(), ": has no checkpoint ", revision);
      if (found->second != sizes_.acquisition)
        return fault(file.string(), ": has ", found->second, " surprisals of ", revision, ", and the published data ",
                     sizes_.acquisition, " contexts");
    }
  }

  /// A fault for each file of right answers without predictions: the parts of these tasks are files.
  void check_files(const fs::path& file, const PythonJson::Dict& fields, const std::string& task) {
    if (task != "blimp" && task != "blimp_supplement" && task != "ewok") return;
    const auto answers = fs::path(fast_data()) / file.parent_path().filename();
    std::set<std::string> names;
    std::error_code ignored;  // a folder that is not there is reported where its answers are read
    for (const auto& entry : fs::directory_iterator(answers, ignored))
      if (is_json_lines(entry.path().filename().string())) names.insert(suite_name(entry.path().string()));
    for (const auto& name : names)
      if (!has_part(fields, in_lower_case(name)))
        fault(file.string(), ": has no '", name, "', which is in ", answers.string());
  }

  PythonJson::Dict fast() {
    std::vector<PythonJson::List> scores(fast_parts.size());
    for (const auto& revision : babylm_revisions(request_.track)) {
      if (!fs::exists(zero_shot(revision))) {
        fault(zero_shot(revision).string(),
              ": is not there; `cloze evaluate RUN --suite babylm --fast --all-checkpoints` writes it");
        continue;
      }
      for (size_t p = 0; p < fast_parts.size(); ++p) {
        const auto& [task, folder] = fast_parts[p];
        const auto file = zero_shot(revision) / folder / "predictions.json";
        const auto predictions = sized(file, task, sizes_.fast, evaluated_by_cloze);
        if (!predictions) continue;
        check_files(file, *predictions->dict(), task);
        scores[p].push_back(fast_scores(task, *predictions, fast_data()));
      }
    }
    PythonJson::Dict fields;
    for (size_t p = 0; p < fast_parts.size(); ++p) fields.emplace_back(fast_parts[p].task, std::move(scores[p]));
    return fields;
  }

  const CollateRequest& request_;
  const BabylmSizes& sizes_;
  std::map<std::string, std::pair<std::string, std::string>> networks_;  ///< first file and weights, by revision
};

/// Sentences in lines of their own, the first of many.
std::string on_lines(const std::vector<std::string>& sentences) {
  constexpr size_t most = 20;
  std::string text;
  for (size_t i = 0; i < std::min(most, sentences.size()); ++i) text += "\n  " + sentences[i];
  return sentences.size() > most ? text + concat("\n  and ", sentences.size() - most, " more") : text;
}

/// The results and the model of a request: named, or a folder of one model.
std::pair<std::string, std::string> named_model(const CollateRequest& c) {
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

/// The only backend of a model's results; none, where that is allowed, without such results. Throws ConfigError for
/// none otherwise, and for several.
std::optional<BabylmBackend> only_backend(const fs::path& zero_shot, bool may_lack) {
  std::vector<BabylmBackend> backends;
  for (const auto& choice : choices(BabylmBackend{}))
    if (fs::is_directory(zero_shot / choice.name)) backends.push_back(choice.value);
  if (may_lack && backends.empty()) return std::nullopt;
  require<ConfigError>(backends.size() == 1, zero_shot.string(),
                       backends.empty() ? ": has no results" : ": has results", " of ",
                       backends.empty() ? "any backend; evaluate the model" : "several backends; name one",
                       backends.empty() ? " with `cloze evaluate RUN --suite babylm`" : " with --backend");
  return backends[0];
}

}  // namespace

Collation collate_babylm(const CollateRequest& named, const BabylmSizes& sizes) {
  auto request = named;
  std::tie(request.results, request.model) = named_model(named);
  const auto folder = fs::path(request.results) / request.model;
  if (!request.backend) request.backend = only_backend(folder / request.revision / "zero_shot", request.partial);
  if (request.data.empty()) request.data = suites_folder() + "/babylm";
  require<DataError>(fs::is_directory(folder), folder.string(),
                     ": is not there; `cloze evaluate RUN --suite babylm` writes results of a run");
  PredictionCollator collator(request, sizes);
  const PythonJson document = collator.document();
  const auto& faults = collator.faults;
  require<DataError>(faults.empty() || request.partial, folder.string(),
                     ": is no complete submission; --partial writes what is there", on_lines(faults));
  const std::string begin = faults.empty() ? "all_full" : "partial_full";
  const auto backend = request.backend ? concat("_", *request.backend) : "";
  const auto file = folder / (begin + "_preds_and_fast_scores" + backend + ".json");
  write_atomic(file.string(), python_json(document));
  return {.file = file.string(), .faults = faults};
}

}  // namespace cloze
