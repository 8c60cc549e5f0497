#include "run/folder.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/log.h"
#include "run/checkpoints/checksums.h"
#include "run/records/loss_curve.h"
#include "run/records/metrics.h"
#include "run/records/provenance.h"
#include "tests/support/catch.h"
#include "tests/support/logged.h"
#include "tests/support/processes.h"
#include "tests/support/runs.h"
#include "tests/support/tiny.h"
#include "train/pretrain.h"

using namespace cloze;
namespace fs = std::filesystem;

TEST_CASE("a run that was killed in its first file operations begins anew, resumed or not", "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  const std::string weights = "/step-00000002/weights.safetensors";
  pretrain(config, {.run = dir / "whole"});
  const std::vector<std::string> order{"provenance.json", "run.yaml", "tokenizer", "log.txt", "metrics.jsonl"};
  for (size_t written = 0; written <= order.size(); ++written) {
    for (const bool resume : {false, true}) {
      const auto run = dir / (std::to_string(written) + (resume ? "-resumed" : "-started"));
      INFO(run);
      fs::create_directories(run);
      for (size_t i = 0; i < written; ++i)
        fs::copy(dir / ("whole/" + order[i]), run + "/" + order[i], fs::copy_options::recursive);
      std::ofstream(run + "/" + order[std::min(written, order.size() - 1)] + ".tmp-4194000") << "{";
      std::ofstream(run + "/lock") << "{";
      CHECK(pretrain(config, {.run = run, .resume = resume}).steps == 2);
      CHECK(same_files(run + weights, dir / "whole" + weights));
      CHECK(metrics(run) == metrics(dir / "whole"));
      for (const auto& entry : fs::directory_iterator(run)) CHECK_FALSE(is_staged(entry.path().filename().string()));
    }
  }
}

TEST_CASE("a branch that was killed in its first file operations begins anew, resumed or not", "[run][folder]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  config.schedule.shape = ConstantSchedule{};
  config.schedule.warmup = 1;
  pretrain(config, {.run = dir / "stem"});
  config.train.budget.steps = 4;
  pretrain(config, {.run = dir / "whole", .branch_from = dir / "stem"});
  const std::string weights = "/step-00000004/weights.safetensors";
  const std::vector<std::string> order{"provenance.json", "metrics.jsonl", "run.yaml", "tokenizer", "log.txt"};
  for (size_t written = 0; written <= order.size(); ++written) {
    for (const bool resume : {false, true}) {
      if (written == 0 && resume) continue;  // it says nowhere that it is a branch
      const auto run = dir / (std::to_string(written) + (resume ? "-resumed" : "-started"));
      INFO(run);
      fs::create_directories(run);
      for (size_t i = 0; i < written; ++i)
        fs::copy(dir / ("whole/" + order[i]), run + "/" + order[i], fs::copy_options::recursive);
      std::ofstream(run + "/" + order[std::min(written, order.size() - 1)] + ".tmp-4194000") << "{";
      std::ofstream(run + "/lock") << "{";
      const auto from = resume ? "" : dir / "stem";
      CHECK(pretrain(config, {.run = run, .resume = resume, .branch_from = from}).steps == 4);
      CHECK(same_files(run + weights, dir / "whole" + weights));
      CHECK(metrics(run) == metrics(dir / "whole"));
      for (const auto& entry : fs::directory_iterator(run)) CHECK_FALSE(is_staged(entry.path().filename().string()));
    }
  }
}

TEST_CASE("a folder that is no run is neither resumed nor trained in", "[run][folder]") {
  TempDir dir;
  CHECK(run_folder(dir / "none") == RunFolder::vacant);
  dir.write("notes/a.txt", "mine");
  CHECK(run_folder(dir / "notes") == RunFolder::other);
  CHECK_THROWS_WITH(RunLock(dir / "notes", false),
                    Catch::Contains("notes: exists, and is no run; name another folder with --run"));
  CHECK_THROWS_WITH(RunLock(dir / "notes", true),
                    Catch::Contains("notes: contains no run to resume; name the folder of a run"));
  CHECK_THROWS_WITH(RunLock(dir / "notes/a.txt", false), Catch::Contains("a.txt: exists"));
  CHECK_THROWS_WITH(RunLock(dir / "none", true), Catch::Contains("none: contains no run to resume"));
  CHECK_THROWS_WITH(RunLock(dir / "notes/a.txt/run", false), Catch::Contains("cannot be created (Not a directory)"));
  {
    const RunLock lock(dir / "fresh", false);
  }
  CHECK_FALSE(fs::exists(dir / "fresh"));  // nothing was written to it
}

TEST_CASE("a folder that cannot be read is named with the reason", "[run][folder]") {
  TempDir dir;
  dir.write("run/run.yaml", "");
  std::string message;
  try {
    const NoMoreFiles none;
    run_folder(dir / "run");
  } catch (const Error& e) {
    message = e.what();
  }
  CHECK_THAT(message, Catch::Contains("run: cannot be read (Too many open files)"));
}

TEST_CASE("a folder with files that a run may not replace is refused, and they stay", "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "whole"});
  const auto refused = [&](const std::string& name) {
    CHECK_THROWS_WITH(pretrain(config, {.run = dir / name}), Catch::Contains(name + ": exists"));
  };
  dir.write("config/run.yaml", "model: {kind: bert}  # written by hand\n");
  refused("config");
  CHECK_THAT(read_file(dir / "config/run.yaml"), Catch::Contains("written by hand"));
  dir.write("own/tokenizer/vocab.txt", "mine\n");
  refused("own");
  CHECK(read_file(dir / "own/tokenizer/vocab.txt") == "mine\n");
  // A finished run whose checkpoints were removed to save space.
  fs::copy(dir / "whole", dir / "light", fs::copy_options::recursive);
  fs::remove_all(dir / "light/step-00000002");
  CHECK(run_folder(dir / "light") == RunFolder::saved);
  refused("light");
  CHECK_THROWS_WITH(RunLock(dir / "light", false), Catch::Contains("light: exists; continue it with --resume"));
  CHECK(same_files(dir / "light/metrics.jsonl", dir / "whole/metrics.jsonl"));
  // Killed between the two renames that replace the only checkpoint: it gets its name back, and the run is kept.
  fs::create_directories(dir / "cut");
  for (const auto* file : {"provenance.json", "run.yaml", "metrics.jsonl"})
    fs::copy(dir / ("whole/" + std::string(file)), dir / ("cut/" + std::string(file)));
  fs::copy(dir / "whole/step-00000002", dir / "cut/step-00000002.tmp-4194000.old", fs::copy_options::recursive);
  refused("cut");
  CHECK(same_files(dir / "cut/metrics.jsonl", dir / "whole/metrics.jsonl"));
  CHECK(find_checkpoint(dir / "cut") == dir / "cut/step-00000002");
}

TEST_CASE("a start that fails leaves the files of the run that was begun", "[run][folder]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "whole"});
  fs::create_directories(dir / "begun");
  for (const auto* file : {"provenance.json", "run.yaml", "metrics.jsonl"})
    fs::copy(dir / ("whole/" + std::string(file)), dir / ("begun/" + std::string(file)));
  REQUIRE(run_folder(dir / "begun") == RunFolder::begun);
  config.data.tokens = dir / "none";
  CHECK_THROWS_AS(pretrain(config, {.run = dir / "begun"}), Error);
  CHECK(same_files(dir / "begun/metrics.jsonl", dir / "whole/metrics.jsonl"));
  CHECK(same_files(dir / "begun/run.yaml", dir / "whole/run.yaml"));
}

TEST_CASE("a run that was imported has tokens of its own only after training", "[run][folder]") {
  TempDir dir;
  dir.write("run/provenance.json", R"({"imported_from": "bert", "cloze": "0.1.0"})");
  CHECK(recorded_data(dir / "run").empty());
}

TEST_CASE("a branch that cannot say what it was branched from is named", "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  for (const std::string origin : {R"("runs/a")", R"({"checkpoint": 3})", "{}"}) {
    dir.write("run/provenance.json", R"({"branched_from": )" + origin + "}");
    CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run", .resume = true}),
                      Catch::Contains("run/provenance.json: is damaged, so that the checkpoint which ") &&
                          Catch::EndsWith("branch again, into another folder"));
  }
}

TEST_CASE("a log that is removed while a run trains begins again with a warning", "[run][folder]") {
  TempDir dir;
  auto config = tiny_run(dir, 200000);
  config.checkpoint.every = 5;
  std::ofstream(dir / "run.yaml") << to_yaml(config);
  const auto child = train_in_child({.run = dir / "run"});
  CHECK(wait_until([&] { return fs::exists(dir / "run/latest"); }));
  const auto log = dir / "run/log.txt";
  fs::remove(log);
  CHECK(wait_until([&] { return fs::exists(log); }));
  kill(child, SIGTERM);
  CHECK(wait_for(child) == 130);
  CHECK_THAT(read_file(log), Catch::Contains("log.txt was removed while the run writes it; it begins again"));
}

TEST_CASE("a second process is told who trains a run, and changes nothing", "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  const auto rows = metrics(dir / "run");
  auto longer = config;
  longer.train.budget.steps = 4;
  {
    const RunLock lock(dir / "run", true);
    const auto owner = "run: process " + std::to_string(getpid()) + " on ";
    CHECK_THROWS_WITH(pretrain(longer, {.run = dir / "run", .resume = true, .overwrite_config = true}),
                      Catch::Contains(owner) && Catch::Contains("works on it; wait for its end, or stop it"));
    CHECK(metrics(dir / "run") == rows);
  }
  CHECK(pretrain(longer, {.run = dir / "run", .resume = true, .overwrite_config = true}).steps == 4);
  CHECK_FALSE(fs::exists(dir / "run/lock"));
}

TEST_CASE("what killed processes left half written is swept when the run goes on", "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  dir.write("run/step-00000001.tmp-4194000/weights.safetensors", "half");
  dir.write("run/step-00000002.tmp-4194000.old/weights.safetensors", "replaced");
  dir.write("run/tokenizer/vocab.txt.tmp-4194000", "half");
  dir.write("run/loss.svg.tmp-4194000", "half");
  dir.write("run/notes.tmp-mine", "not half written");
  dir.write("run/notes.tmp-2024", "of the user");
  // Killed between the two renames that replace a folder.
  fs::rename(dir / "run/step-00000002", dir / "run/step-00000002.tmp-4194001.old");
  fs::remove_all(dir / "run/step-00000002.tmp-4194000.old");
  pretrain(config, {.run = dir / "run", .resume = true});
  CHECK_FALSE(fs::exists(dir / "run/step-00000001.tmp-4194000"));
  CHECK_FALSE(fs::exists(dir / "run/loss.svg.tmp-4194000"));
  CHECK_FALSE(fs::exists(dir / "run/step-00000002.tmp-4194001.old"));
  CHECK_FALSE(fs::exists(dir / "run/tokenizer/vocab.txt.tmp-4194000"));
  CHECK(fs::exists(dir / "run/notes.tmp-mine"));
  CHECK(fs::exists(dir / "run/notes.tmp-2024"));
  CHECK_THAT(read_file(dir / "run/log.txt"), Catch::Contains("resumed from " + dir / "run/step-00000002"));
}

TEST_CASE("a damaged provenance.json and a damaged `best` are named as what they are", "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  const auto run = dir / "run";
  pretrain(config, {.run = run});
  set_log_file(dir / "log");
  std::ofstream(run + "/best") << "rubbish\n";
  CHECK_FALSE(find_best_checkpoint(run).is_best);
  CHECK_THAT(read_file(dir / "log"), Catch::Contains("best: 'rubbish' is no checkpoint of this run; it is ignored"));
  set_log_file("");
  CHECK(open_run(run).checkpoint == run + "/step-00000002");
  const auto whole = read_file(run + "/provenance.json");
  for (const auto& damaged : {whole.substr(0, whole.size() / 2), std::string(R"({"data": 3})"), std::string()}) {
    dir.write("run/provenance.json", damaged);
    CHECK_THROWS_WITH(pretrain(config, {.run = run, .resume = true}),
                      Catch::Contains("run/provenance.json: is damaged, so that the tokens of the run are not known"));
  }
}

TEST_CASE("a damaged best checkpoint is warned of once, and the newest whole one is opened", "[run][folder]") {
  TempDir dir;
  const auto run = dir / "run";
  auto config = tiny_run(dir, 2);
  config.checkpoint.every = 1;
  pretrain(config, {.run = run});
  dir.write("run/best", "step-00000002\n");
  CHECK(find_best_checkpoint(run).is_best);
  fs::remove(run + "/step-00000002/weights.safetensors");
  const auto log = logged(dir, [&] { CHECK(open_run(run).checkpoint == run + "/step-00000001"); });
  const std::string warning = "step-00000002: weights.safetensors is missing; this checkpoint is skipped";
  REQUIRE_THAT(log, Catch::Contains(warning));
  CHECK(log.find(warning) == log.rfind(warning));
}

TEST_CASE("the fingerprint of a run's weights is that of the checkpoint which is opened, and of its bytes",
          "[run][folder]") {
  TempDir dir;
  const auto run = dir / "run";
  auto config = tiny_run(dir, 2);
  config.checkpoint.every = 1;
  CHECK(weights_fingerprint(run).empty());
  pretrain(config, {.run = run});
  const auto first = run + "/step-00000001", second = run + "/step-00000002";
  CHECK(weights_fingerprint(first) == file_hash(first + "/weights.safetensors"));
  for (const auto& best : {first, second}) {
    dir.write("run/best", fs::path(best).filename().string() + "\n");
    CHECK(open_run(run).checkpoint == best);
    CHECK(weights_fingerprint(run) == file_hash(best + "/weights.safetensors"));
  }
  for (const auto* best : {"rubbish\n", "step-00000007\n", ""}) {
    dir.write("run/best", best);
    CHECK(weights_fingerprint(run) == weights_fingerprint(open_run(run).checkpoint));
  }
  config.train.seed = 2;
  const auto before = weights_fingerprint(run);
  fs::remove_all(run);
  pretrain(config, {.run = run});
  CHECK(weights_fingerprint(run) != before);
}

TEST_CASE("a step folder with a file of another one is damaged", "[run][folder]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  const auto step = dir / "run/step-00000002";
  CHECK(find_checkpoint(dir / "run") == step);
  dir.write("run/step-00000002/notes.txt", "of the user");
  CHECK_NOTHROW(verify_run(dir / "run"));
  fs::copy_file(step + "/weights.safetensors", step + "/iterate.safetensors");  // which a resume would go on from
  CHECK_THROWS_WITH(verify_run(dir / "run"),
                    Catch::Contains("iterate.safetensors is not in manifest.json, so that it is of something else"));
  CHECK(find_checkpoint(dir / "run") != step);
}

TEST_CASE("verifying a run warns of what is ignored elsewhere, and refuses a run without its config", "[run][folder]") {
  TempDir dir;
  const auto run = dir / "run";
  pretrain(tiny_run(dir, 2), {.run = run});
  CHECK_THAT(logged(dir, [&] { verify_run(run); }), !Catch::Contains("warning"));
  dir.write("run/best", "rubbish\n");
  const auto rows = read_file(run + "/metrics.jsonl");
  const auto second = rows.find('\n') + 1;
  dir.write("run/metrics.jsonl", rows.substr(0, second) + "{\"step\": \n" + rows.substr(second));
  CHECK_THAT(logged(dir, [&] { verify_run(run); }),
             Catch::Contains("best: 'rubbish' is no checkpoint of this run; it is ignored") &&
                 Catch::Contains("metrics.jsonl: 1 damaged lines, the first of them line 2;"));
  fs::remove(run + "/run.yaml");
  CHECK_THROWS_WITH(verify_run(run), Catch::EndsWith("run/run.yaml: is missing, so that the run cannot be opened; "
                                                     "restore it"));
}

TEST_CASE("files `best` and `latest` that name no checkpoint are ignored with a warning, and replaced by a resume",
          "[run][folder]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  const auto run = dir / "run";
  pretrain(config, {.run = run});
  const auto damage = [&](const std::string& name, int kind) {
    fs::remove_all(run + "/" + name);
    if (kind == 0) dir.write("run/" + name, "");
    if (kind == 1) dir.write("run/" + name, std::string(5000, '\xfe'));
    if (kind == 2) dir.write("run/" + name + "/mine.txt", "mine");
    if (kind == 3) fs::create_symlink("/dev/full", run + "/" + name);
    if (kind == 4) fs::create_symlink(name, run + "/" + name);  // to itself
  };
  const auto newest = [&] { return "step-0000000" + std::to_string(config.train.budget.steps); };
  for (int kind = 0; kind < 5; ++kind) {
    INFO(kind);
    damage("best", kind);
    fs::remove(dir / "log");
    set_log_file(dir / "log");
    CHECK(open_run(run).checkpoint == run + "/" + newest());
    set_log_file("");
    CHECK_THAT(read_file(dir / "log"), Catch::Contains("run/best: ") && Catch::Contains("; it is ignored"));
    damage("latest", kind);
    ++config.train.budget.steps;
    CHECK(pretrain(config, {.run = run, .resume = true}).resumed_at == config.train.budget.steps - 1);
    CHECK(read_file(run + "/latest") == newest() + "\n");
    CHECK(is_step_name(read_file(run + "/best").substr(0, 13)));
  }
  CHECK(read_file(run + "/latest.aside/mine.txt") == "mine");
  CHECK(read_file(run + "/best.aside/mine.txt") == "mine");
}

TEST_CASE("metrics that are removed while a run trains, or damaged, are warned of", "[run][metrics]") {
  TempDir dir;
  set_log_file(dir / "log");
  {
    Metrics writer(dir.path.string(), 0, 0);
    writer.write({{"step", 1}, {"loss", 2.0}});
    CHECK(writer.sync() == fs::file_size(dir / "metrics.jsonl"));
    fs::remove(dir / "metrics.jsonl");
    CHECK(writer.sync() == 0);
    CHECK(writer.sync() == 0);
  }
  const auto log = read_file(dir / "log");
  const auto at = log.find("metrics.jsonl was removed while the run writes it");
  REQUIRE(at != std::string::npos);
  CHECK(log.find("was removed", at + 40) == std::string::npos);  // once
  std::string rows;
  for (int step = 1; step < 4; ++step)
    rows += R"({"step": )" + std::to_string(step) + R"(, "mlm": {"loss": 2.5, "accuracy": 0.5, "count": 3}})" + "\n";
  dir.write("metrics.jsonl", rows + "{\"step\": 4, \"ml\n" + R"({"step": "x"})" + "\n");
  draw_loss(dir.path.string(), {default_objective<MlmConfig>()}, 3);
  CHECK_THAT(read_file(dir / "log"), Catch::Contains("metrics.jsonl: 2 damaged lines, the first of them line 4;"));
  set_log_file("");
}

TEST_CASE("a run whose files are links to other files is neither resumed nor verified, and these stay as they are",
          "[run][folder]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  auto longer = config;
  longer.train.budget.steps = 4;
  const auto outside = dir.write("outside.txt", "kept\n");
  const auto refused = [&](const std::string& name, const std::string& sentence) {
    INFO(name);
    const auto path = dir / ("run/" + name);
    fs::rename(path, dir / "aside");
    fs::create_symlink(fs::is_directory(dir / "aside") ? dir / "elsewhere" : outside, path);
    CHECK_THROWS_WITH(pretrain(longer, {.run = dir / "run", .resume = true, .overwrite_config = true}),
                      Catch::Equals(path + sentence));
    CHECK_THROWS_WITH(verify_run(dir / "run"), Catch::Contains(name + sentence));
    fs::remove(path);
    fs::rename(dir / "aside", path);
  };
  const std::string of_file = ": is a link, through which another file would be changed; put a file of its own there";
  fs::create_directories(dir / "elsewhere");
  dir.write("elsewhere/notes.tmp-4194000", "of the user");
  refused("metrics.jsonl", of_file);
  refused("log.txt", of_file);
  fs::create_directories(dir / "run/huggingface");
  for (const std::string name : {"tokenizer", "huggingface"})
    refused(name, ": is a link, through which another folder would be changed; put a folder of its own there");
  std::string events;
  for (const auto& entry : fs::directory_iterator(dir / "run"))
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) events = entry.path().filename();
  REQUIRE_FALSE(events.empty());
  refused(events, of_file);
  fs::create_symlink(outside, dir / "run/lock");
  CHECK_THROWS_WITH(pretrain(longer, {.run = dir / "run", .resume = true, .overwrite_config = true}),
                    Catch::Equals(dir / "run/lock" + of_file));
  fs::remove(dir / "run/lock");
  CHECK(read_file(outside) == "kept\n");
  CHECK(fs::exists(dir / "elsewhere/notes.tmp-4194000"));
  // A backup made of hard links keeps what it has.
  for (const std::string name : {"metrics.jsonl", "log.txt"}) fs::create_hard_link(dir / ("run/" + name), dir / name);
  const auto rows = read_file(dir / "metrics.jsonl"), log = read_file(dir / "log.txt");
  CHECK(pretrain(longer, {.run = dir / "run", .resume = true, .overwrite_config = true}).steps == 4);
  CHECK(read_file(dir / "metrics.jsonl") == rows);
  CHECK(read_file(dir / "log.txt") == log);
  CHECK(read_file(dir / "run/metrics.jsonl").starts_with(rows));
}

TEST_CASE("a run whose folder is moved while it trains stops, and what has its name then stays as it is",
          "[run][folder]") {
  TempDir dir;
  auto config = tiny_run(dir, 4);
  config.checkpoint.every = 1, config.checkpoint.keep = 4;
  pretrain(config, {.run = dir / "other"});
  fs::copy(dir / "other", dir / "as-it-was", fs::copy_options::recursive);
  config.train.budget.steps = 200000;
  config.checkpoint.every = 2, config.checkpoint.keep = 1;
  std::ofstream(dir / "run.yaml") << to_yaml(config);
  const auto child = train_in_child({.run = dir / "run"});
  CHECK(wait_until([&] { return fs::exists(dir / "run/latest"); }));
  REQUIRE(swap_paths(dir / "run", dir / "other"));
  CHECK(wait_for(child) == 1);
  size_t files = 0, files_before = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir / "as-it-was")) files_before += entry.is_regular_file();
  for (const auto& entry : fs::recursive_directory_iterator(dir / "run")) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const auto name = fs::relative(entry.path(), dir / "run").string();
    INFO(name);
    CHECK(same_files(entry.path(), dir / "as-it-was/" + name));
  }
  CHECK(files == files_before);
  CHECK_NOTHROW(verify_run(dir / "other"));
  config.train.budget.steps = step_of_folder(fs::path(find_checkpoint(dir / "other")).filename()) + 1;
  CHECK(pretrain(config, {.run = dir / "other", .resume = true}).steps == config.train.budget.steps);
}

TEST_CASE("a checkpoint that may not have its name any more leaves what has it, and nothing else", "[run][folder]") {
  TempDir dir;
  TrainState state;
  state.step = 4;
  const std::vector<NamedParam> params{{"weight", Param(at::ones({2}), Init::weight)}};
  save_checkpoint(dir / "run", state, params, {});
  const auto before = read_file(dir / "run/step-00000004/manifest.json");
  state.tokens = 5;
  const auto refuse = [] { throw CheckpointError("moved"); };
  CHECK_THROWS_WITH(save_checkpoint(dir / "run", state, params, {}, {}, {}, {}, refuse), "moved");
  CHECK(read_file(dir / "run/step-00000004/manifest.json") == before);
  CHECK(std::distance(fs::directory_iterator(dir / "run"), fs::directory_iterator()) == 2);  // and `latest`
}

TEST_CASE("a run may write while its folder has its name, and takes a lock that was removed again", "[run][folder]") {
  TempDir dir;
  RunLock lock(dir / "run", false);
  CHECK_NOTHROW(lock.require_in_place());
  fs::remove(dir / "run/lock");
  CHECK_NOTHROW(lock.require_in_place());
  CHECK(fs::exists(dir / "run/lock"));
  const auto refused = [&] {
    CHECK_THROWS_WITH(
        lock.write("summary.json", "{}"),
        Catch::StartsWith(dir / "run: was moved, removed or replaced while it was trained; the run stops"));
  };
  fs::rename(dir / "run", dir / "moved");
  refused();  // nothing has its name
  fs::create_directories(dir / "run");
  refused();
  fs::remove(dir / "run");
  fs::rename(dir / "moved", dir / "run");
  CHECK_NOTHROW(lock.write("summary.json", "{}"));
  fs::create_directories(dir / "elsewhere");  // the files are moved, and the folder stays
  fs::rename(dir / "run/lock", dir / "elsewhere/lock");
  refused();
  CHECK(read_file(dir / "run/summary.json") == "{}");
}

TEST_CASE("who reads a run that trains and removes its checkpoints finds the one that takes their place",
          "[run][folder]") {
  TempDir dir;
  auto config = tiny_run(dir, 200000);
  config.checkpoint.every = 1;
  config.checkpoint.keep = 1;
  config.train.accumulation = 64;  // a reader may find each checkpoint gone, but not in the same moment
  std::ofstream(dir / "run.yaml") << to_yaml(config);
  const auto child = train_in_child({.run = dir / "run"});
  CHECK(wait_until([&] { return fs::exists(dir / "run/latest"); }));
  const auto log = logged(dir, [&] {
    for (int i = 0; i < 40; ++i) {
      CHECK_NOTHROW(open_run(dir / "run"));
      CHECK_NOTHROW(verify_run(dir / "run"));
    }
  });
  kill(child, SIGTERM);
  CHECK(wait_for(child) == 130);
  CHECK_THAT(log, !Catch::Contains("skipped") && !Catch::Contains("ignored"));
}
