#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/file.h"
#include "core/json.h"
#include "core/json_fields.h"
#include "core/log.h"
#include "core/spelling.h"
#include "core/tensor/safetensors.h"
#include "objectives/collator.h"
#include "run/checkpoints/checksums.h"
#include "run/config/load_config.h"
#include "run/folder.h"
#include "run/checkpoints/milestones.h"
#include "run/run.h"
#include "run/run_tokenizer.h"

namespace cloze {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string step_name(int64_t step) {
  char name[32];
  std::snprintf(name, sizeof name, "step-%08ld", static_cast<long>(step));
  return name;
}

/// A description of the damage to a step folder; empty for a valid one.
std::string find_damage(const std::string& folder) { return checksums_fault(folder, "manifest.json"); }

/// The same; none for a folder that the run has removed meanwhile.
std::optional<std::string> damage_if_there(const std::string& folder) {
  try {
    const auto damage = find_damage(folder);
    if (damage.empty() || !was_removed(folder)) return damage;
  } catch (const std::exception&) {
    if (!was_removed(folder)) throw;
  }
  return std::nullopt;
}

/// The first valid step folder of these names, or empty; damaged ones before it are warned of. None where the run has
/// removed one of them meanwhile, so that it has newer ones.
std::optional<std::string> find_intact(const std::string& run, const std::vector<std::string>& names) {
  for (const auto& name : names) {
    const auto folder = run + "/" + name;
    if (was_removed(folder)) return std::nullopt;
    if (!fs::is_directory(folder)) continue;
    const auto damage = damage_if_there(folder);
    if (!damage) return std::nullopt;
    if (damage->empty()) return folder;
    log_warning("train", concat(folder, ": ", *damage, "; this checkpoint is skipped"));
  }
  return "";
}

/// As `find_intact` of the names that `look` finds, until none of them is removed meanwhile.
template <class Look>
std::string find_among(const std::string& run, const Look& look) {
  for (int looks = 0; looks < most_looks; ++looks)
    if (const auto found = find_intact(run, look())) return *found;
  return "";
}

/// Why the file `latest` or `best`, which says `text`, names no step folder of the run; empty where it does.
std::string pointer_fault(const std::string& run, const std::string& text) {
  if (text.empty()) return "is empty";
  std::error_code none;
  if (is_step_name(text) && fs::is_directory(run + "/" + text, none)) return "";
  const auto prints = [](unsigned char byte) { return std::isprint(byte) != 0; };
  const bool is_shown = std::all_of(text.begin(), text.end(), prints);
  return is_shown ? concat("'", shortened(text), "' is no checkpoint of this run") : "names no checkpoint of this run";
}

/// The step folder that the file `name` (`latest`, `best`) names; empty without that file, and for one that names none,
/// which is warned of: the step folders themselves say which is the newest.
std::string read_pointer(const std::string& run, const std::string& name) {
  const auto path = run + "/" + name;
  std::error_code unknown;
  if (!fs::exists(fs::symlink_status(path, unknown))) return "";
  std::string text, before, fault;
  do {
    before = text;
    try {
      require(fs::exists(path, unknown), path, ": is a link that leads nowhere");
      require(fs::is_regular_file(path, unknown), path, ": is no file");
      text = read_text(path, 4096);
    } catch (const Error& e) {
      log_warning("train", concat(e.what(), "; it is ignored"));
      return "";
    }
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    fault = pointer_fault(run, text);
    if (fault.empty()) return text;
  } while (text != before);  // a run that trains may have written another one, and removed what this one named
  log_warning("train", concat(path, ": ", fault, "; it is ignored"));
  return "";
}

/// Gives a folder that stands where a run writes a file another name.
void move_aside(const std::string& path) {
  std::error_code error, unknown;
  auto aside = path + ".aside";
  for (int i = 2; fs::exists(fs::symlink_status(aside, unknown)); ++i) aside = concat(path, ".aside-", i);
  fs::rename(path, aside, error);
  require(!error, path, ": is a folder where the run writes a file, and cannot be moved (", error.message(),
          "); move it away");
  log_warning("train", concat(path, ": is a folder where the run writes a file; it is ", aside, " now"));
}

/// All tensors of a file; empty if the file does not exist.
StateDict read_tensors(const std::string& file) {
  StateDict tensors;
  if (!fs::exists(file)) return tensors;
  const auto stored = SafeTensors::open(file);
  for (const auto& name : stored.names()) tensors.emplace_back(name, stored.get(name));
  return tensors;
}

}  // namespace

void write_pointer(const std::string& run, const std::string& name, const std::string& step_folder) {
  const auto path = run + "/" + name;
  std::error_code unknown;
  if (fs::is_directory(fs::symlink_status(path, unknown))) move_aside(path);
  write_atomic(path, step_folder + "\n");
}

void save_checkpoint(const std::string& run, const TrainState& state, const std::vector<NamedParam>& params,
                     const StateDict& optimizer, const StateDict& mems, const std::vector<NamedParam>& iterate,
                     const MadeBy& made_by, const std::function<void()>& before_commit) {
  const auto name = step_name(state.step);
  auto now = state;
  now.row_rules = row_rules;
  try {
    StagedFolder staged(run + "/" + name);
    std::vector<NamedTensor> weights, last_weights, moments, mem_tensors;
    for (const auto& p : params) weights.push_back({p.name, p.param.value()});
    for (const auto& p : iterate) last_weights.push_back({p.name, p.param.value()});
    for (const auto& [key, tensor] : optimizer) moments.push_back({key, tensor});
    for (const auto& [key, tensor] : mems) mem_tensors.push_back({key, tensor});
    save_safetensors(staged.path() + "/weights.safetensors", weights);
    if (!moments.empty()) save_safetensors(staged.path() + "/optimizer.safetensors", moments);
    if (!mem_tensors.empty()) save_safetensors(staged.path() + "/memory.safetensors", mem_tensors);
    if (!last_weights.empty()) save_safetensors(staged.path() + "/iterate.safetensors", last_weights);
    json fields = now;
    fields.update(now.chosen);
    write_atomic(staged.path() + "/state.json", json_text(fields, 2) + "\n");
    if (!made_by.config.empty()) write_atomic(staged.path() + "/config.yaml", made_by.config);
    json facts{{"format", "cloze-checkpoint"}, {"version", 2}};
    if (!made_by.tokenizer.empty()) facts["tokenizer"] = made_by.tokenizer;
    write_checksums(staged.path(), "manifest.json", facts);
    if (before_commit) before_commit();
    staged.commit();
    write_pointer(run, "latest", name);
  } catch (const CheckpointError&) {
    throw;
  } catch (const Error& e) {
    throw CheckpointError(e.what());
  }
}

bool was_removed(const std::string& checkpoint) {
  std::error_code unknown;
  return !checkpoint.empty() && fs::symlink_status(checkpoint, unknown).type() == fs::file_type::not_found;
}

std::string find_checkpoint(const std::string& run, const std::string& which) {
  if (which != "latest") return find_intact(run, {step_name(std::atoll(which.c_str()))}).value_or("");
  return find_among(run, [&] { return step_folders(run); });
}

FoundCheckpoint find_best_checkpoint(const std::string& run) {
  std::string best;
  const auto folder = find_among(run, [&] {
    auto candidates = step_folders(run);
    best = read_pointer(run, "best");
    if (!best.empty()) {
      std::erase(candidates, best);
      candidates.insert(candidates.begin(), best);
    }
    return candidates;
  });
  return {.folder = folder, .is_best = !best.empty() && folder == run + "/" + best};
}

void require_intact(const std::string& step_folder) {
  const auto damage = find_damage(step_folder);
  require<CheckpointError>(damage.empty(), step_folder, ": ", damage, "; name another step, or the run");
}

void prune_checkpoints(const std::string& run, int64_t keep) {
  const auto best = read_pointer(run, "best"), latest = read_pointer(run, "latest");
  int64_t kept = 0;
  for (const auto& name : step_folders(run)) {
    if (name > latest) continue;  // damaged ones that a resume skipped do not count towards `keep`
    const auto words = kept_for(run + "/" + name);
    if (kept++ < keep || name == best || !words || !words->empty()) continue;
    const auto folder = run + "/" + name, removed = staged_name(folder);
    std::error_code error;
    fs::rename(folder, removed, error);  // who reads it finds it intact, or not at all
    if (!error) fs::remove_all(removed, error);
  }
}

void check_weights(const std::string& file, const std::vector<NamedParam>& params) {
  const auto stored = SafeTensors::open(file);
  const auto names = stored.names();
  std::set<std::string> unused(names.begin(), names.end());
  std::vector<std::string> mismatches;
  const bool suggests = names.size() < 10'000;  // each name is compared with all of them
  for (const auto& [name, param] : params) {
    if (unused.erase(name) == 0) {
      mismatches.push_back(concat("missing: ", name, suggests ? did_you_mean(name, names) : ""));
      continue;
    }
    const auto tensor = stored.get(name);
    if (tensor.sizes() != param.value().sizes())
      mismatches.push_back(concat(name, " has shape ", tensor.sizes(), ", the model needs ", param.value().sizes()));
  }
  for (const auto& name : unused)
    if (!is_of_distil(name))  // which a network that learns no more does not have
      mismatches.push_back("unexpected: " + shortened(name));
  constexpr size_t shown = 1000;
  std::string list;
  for (size_t i = 0; i < std::min(mismatches.size(), shown); ++i) list += "\n  " + mismatches[i];
  if (mismatches.size() > shown) list += concat("\n  and ", mismatches.size() - shown, " more");
  require<CheckpointError>(mismatches.empty(), file, ": does not fit the model:", list);
}

void load_weights(const std::string& file, const std::vector<NamedParam>& params) {
  check_weights(file, params);
  at::NoGradGuard no_grad;
  const auto stored = SafeTensors::open(file);
  for (const auto& [name, param] : params) {
    const auto tensor = stored.get(name);
    param.value().copy_(tensor);
    forget(tensor);  // pages of the file, which nobody reads again
  }
}

namespace {

/// The fields that are none of a run's own.
json others_in(json fields, const TrainState& state) {
  const json known = state;
  for (const auto& [key, value] : known.items()) fields.erase(key);
  return fields;
}

}  // namespace

TrainState load_state(const std::string& folder, StateDict* optimizer) {
  const auto path = folder + "/state.json";
  const auto fields = parse_json(read_text(path, 1 << 20));
  TrainState s;
  try {
    s = fields.get<TrainState>();
    s.chosen = others_in(fields, s);
  } catch (const std::exception&) {
    fail<CheckpointError>(path, ": is damaged; resume from another step");
  }
  if (!std::isfinite(s.best_loss)) {  // earlier versions could take that for the best
    s.best_loss = 0;
    s.best_step = 0;
  }
  if (optimizer) *optimizer = read_tensors(folder + "/optimizer.safetensors");
  return s;
}

StateDict load_mems(const std::string& folder) { return read_tensors(folder + "/memory.safetensors"); }

namespace {

/// The tokenizer of a run, if it has one. Throws CheckpointError where it is not that which the run was trained with,
/// and for a run without an intact provenance.json.
std::optional<Tokenizer> verified_tokenizer(const std::string& run, int64_t vocab_size) {
  const auto recorded = recorded_tokenizer(run);
  auto tokenizer = open_run_tokenizer(run, recorded);
  if (!tokenizer) return tokenizer;
  require_fitting(*tokenizer, vocab_size, run);
  const auto fingerprint = tokenizer->fingerprint();
  if (recorded.fingerprint.empty())
    log_warning("verify", concat(run, "/tokenizer: has the fingerprint ", fingerprint,
                                 ", and provenance.json does not say which one the run was trained with"));
  else if (tokenizer->has_fingerprint(recorded.fingerprint))
    log_info("verify", concat(run, "/tokenizer: has the recorded fingerprint ", fingerprint));
  return tokenizer;
}

/// Warns of the lines of metrics.jsonl that are none of a run.
void check_metrics(const std::string& run) {
  const auto path = run + "/metrics.jsonl";
  LogLines lines(path);
  int64_t number = 0, damaged = 0, first = 0;
  for (std::string line; lines.next(line);) {
    ++number;
    const auto row = parse_json(line);
    if (row.is_object() && row.contains("step") && row["step"].is_number()) continue;
    if (damaged++ == 0) first = number;
  }
  if (damaged > 0)
    log_warning("verify", concat(path, ": ", damaged, " damaged lines, the first of them line ", first,
                                 "; curves and reports are made without them"));
}

}  // namespace

void verify_run(const std::string& run) {
  const auto folders = step_folders(run);
  require<CheckpointError>(!folders.empty(), run, ": holds no checkpoint");
  for (const auto& name : folders) {
    const auto damage = damage_if_there(run + "/" + name);
    if (!damage) continue;
    require<CheckpointError>(damage->empty(), run, "/", name, ": ", *damage);
    log_result("verify", concat(run, "/", name, ": sizes and checksums match the manifest"));
  }
  require_own_files(run);
  const auto path = run + "/run.yaml";
  require<CheckpointError>(fs::exists(path), path, ": is missing, so that the run cannot be opened; restore it");
  const auto config = decode<RunConfig>(load_run_config(path));
  for (const auto* name : {"latest", "best"}) read_pointer(run, name);  // warns of a damaged one
  check_metrics(run);
  const auto tokenizer = verified_tokenizer(run, backbone_of(config.model).vocab_size);
  for (const auto& name : folders) {
    try {
      require_made_by(run, run + "/" + name, tokenizer);
    } catch (const std::exception&) {
      if (!was_removed(run + "/" + name)) throw;
    }
  }
}

}  // namespace cloze
