#include "cli/engine/suite_output.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/engine/parts.h"
#include "core/json.h"
#include "core/log.h"
#include "core/readable.h"
#include "core/text.h"
#include "run/milestones.h"
#include "run/run.h"
#include "run/step_folders.h"

namespace cloze {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

json to_json(std::span<const SuiteAnswers> all) {
  json runs = json::array();
  for (const auto& one : all) runs.push_back(to_json(one));
  return {{"runs", runs}};
}

}  // namespace

std::function<void(int64_t, int64_t)> suite_progress(const std::string& what) {
  return [what, start = Clock::now(), last = Clock::now()](int64_t done, int64_t all) mutable {
    if (seconds_since(last) < 0.2) return;
    last = Clock::now();
    log_progress({.fields = {"[suites]  " + what,
                             words(thousands(static_cast<uint64_t>(done)), " of ",
                                   thousands(static_cast<uint64_t>(all)), " texts"),
                             duration(seconds_since(start))},
                  .share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : -1},
                 false);
  };
}

std::string asked_checkpoint(const EvaluateCommand& command, const std::string& run) {
  try {
    return chosen_checkpoint(run, command.checkpoint);
  } catch (const Interrupted&) {
    throw;
  } catch (const Error&) {
    if (command.runs.size() == 1) throw;
    return run;
  }
}

LoadedRun open_whole(const std::string& checkpoint) {
  const auto folder = (std::filesystem::path(checkpoint) / "").lexically_normal().parent_path();
  if (is_step_name(folder.filename().string())) require_whole(checkpoint);
  return open_run(checkpoint);
}

SuiteAnswers blank_answers(const std::string& name, const LoadedRun& run) {
  const auto& state = run.state;
  SuiteAnswers answers{.run = name, .checkpoint = run.checkpoint, .step = state.step};
  if (state.words > 0) answers.words = std::llround(state.words);
  for (const auto milestone : state.at_words) answers.revisions.push_back(revision_of(milestone));
  return answers;
}

SuiteAnswers unread_answers(const std::string& name, const std::string& checkpoint, const std::string& fault) {
  const auto folder = std::filesystem::path(checkpoint).filename().string();
  const int64_t step = is_step_name(folder) ? step_of_folder(folder) : 0;
  return {.run = name, .checkpoint = checkpoint, .step = step, .unanswered = {fault}};
}

SuiteOutput::SuiteOutput(const std::string& folder) {
  if (folder.empty()) return;
  staged_.emplace(folder);
  predictions_.open(staged_->path() + "/predictions.jsonl", std::ios::binary);
}

void SuiteOutput::add(const SuiteAnswers& answers, const SuiteResult& result) {
  if (!staged_) return;
  predictions_ << prediction_lines(answers, result);
  check();
}

void SuiteOutput::check() const {
  require<Error>(!predictions_.fail(), staged_->path(), "/predictions.jsonl: cannot be written (", system_reason(),
                 ")");
}

void SuiteOutput::commit(std::span<const SuiteAnswers> answers, const Table& table,
                         std::span<const std::string> notes) {
  if (!staged_) return;
  predictions_.close();
  check();
  std::string list, comments;
  for (const auto& note : notes) {
    list += "- " + escaped_markdown(note) + "\n";
    comments += "% " + in_one_line(note) + "\n";
  }
  write_atomic(staged_->path() + "/results.jsonl", results_lines(answers));
  write_atomic(staged_->path() + "/table.md", to_markdown(table) + "\n" + list);
  write_atomic(staged_->path() + "/table.tex", to_latex(table) + comments);
  staged_->commit();
}

void SuiteOutput::finish(const EvaluateCommand& c, std::span<const SuiteAnswers> answers) {
  const auto usual = c.suites.all_checkpoints ? SuiteDetail::suites : SuiteDetail::phenomena;
  const auto detail = c.suites.paradigms ? SuiteDetail::paradigms : usual;
  const auto table = c.suites.all_checkpoints ? table_of_checkpoints(answers, detail) : table_of_runs(answers, detail);
  auto notes = notes_of(answers);
  const auto brackets = note_of_brackets(answers, detail);
  const bool has_columns_of_official = answers.size() == 1 && !c.suites.all_checkpoints;
  if (!brackets.empty() && !has_columns_of_official) notes.insert(notes.begin(), brackets);
  commit(answers, table, notes);
  if (c.json) {
    print_data(json_text(to_json(answers)) + "\n");
    return;
  }
  constexpr size_t terminal = 80;
  print_text(to_text(c.suites.all_checkpoints ? table : table_of_runs(answers, detail, terminal)) + "\n");
  const auto columns = static_cast<int64_t>(terminal_columns(STDOUT_FILENO, 0));
  for (const auto& note : notes)
    print_text(columns > 0 ? wrapped("", readable(note), columns, 2) : readable(note) + "\n");
}

}  // namespace cloze
