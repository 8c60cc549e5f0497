#include "cli/engine/together.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/engine/rank_output.h"
#include "core/device/compiled.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/interrupt.h"
#include "core/json.h"
#include "core/kernels/cpu.h"
#include "core/log.h"
#include "core/text.h"
#include "distributed/launch.h"
#include "distributed/watch.h"
#include "run/config/load_config.h"
#include "run/device.h"
#include "run/process.h"
#include "run/records/provenance.h"
#include "run/run_files.h"
#include "train/tasks/finetune.h"
#include "train/training.h"

namespace cloze {

namespace {

using nlohmann::json;

/// The sentence of a process for torchrun, which prints it when all have ended.
void write_error_file(const std::string& sentence) {
  const char* file = std::getenv("TORCHELASTIC_ERROR_FILE");
  if (file == nullptr || *file == '\0') return;
  try {
    write_atomic(file, json_text(json{{"message", sentence}}));
  } catch (const Error&) {  // torchrun's log folder is no concern of the run
  }
}

int exit_code_of(const std::exception& error) {
  if (dynamic_cast<const Interrupted*>(&error) != nullptr) return interrupt_code();
  const auto* own = dynamic_cast<const Error*>(&error);
  return own != nullptr ? own->exit_code() : 1;
}

/// What an error says to the other processes.
std::string sentence_of(const std::exception& error) {
  const bool lacks_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
                            std::strstr(error.what(), "DefaultCPUAllocator") != nullptr;
  if (lacks_memory) return "out of memory; lower train.batch_size, or give each process more memory";
  const std::string text = error.what();
  return text.substr(0, text.find("\nException raised from"));
}

/// Of several processes of a machine each sees one card, so that `cuda` is its own: that of its number, of those that
/// it may use. Where it may use one alone, the launcher has given it that.
void take_own_card(const Meeting& meeting) {
  if (meeting.local_size == 1) return;
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  const auto cards = separated(visible != nullptr ? visible : "", ",");
  const auto number = static_cast<size_t>(meeting.local_rank);
  if (visible != nullptr && cards.size() == 1) return;
  const auto own = visible == nullptr ? concat(number) : number < cards.size() ? cards[number] : "";
  setenv("CUDA_VISIBLE_DEVICES", own.c_str(), /*overwrite=*/1);
}

/// One process of a run, and what its watch needs to know when it ends it.
class Rank {
 public:
  explicit Rank(const TogetherCommand& command) : command_(command), meeting_(command.meeting) {
    take_own_card(meeting_);
    meeting_.end = [this](const Failure& failure) { end(failure); };
    group_ = meet(meeting_);
    if (group_->is_first()) return;
    const std::lock_guard lock(mutex_);
    output_.emplace(group_->rank());
  }

  int run(const TrainTogether& train) {
    try {
      compare("program", facts_of_program(), "start the same program on every machine");
      compare("command", {{"command", command_.arguments}}, "for separate runs, unset the variables of the launcher");
      share_cores();
      return group_->is_first() ? lead(train) : follow(train);
    } catch (const std::exception& error) {  // Interrupted, too: when the first one throws it, all is saved
      fail_for_all(sentence_of(error), exit_code_of(error));
      throw;
    }
  }

 private:
  // -- What all must have in common -----------------------------------------------------------------------------------

  json facts_of_program() const {
    const auto entry = process_entry("");
    const auto commit = entry["commit"].is_null() ? "" : concat(" (", entry["commit"].get<std::string>(), ")");
    return {{"version of Cloze", entry["cloze"].get<std::string>() + commit},
            {"version of LibTorch", entry["libtorch"]}};
  }

  /// Throws ConfigError, with the mend, in a process that differs from the first.
  void compare(const char* what, const json& own, const char* mend) {
    const auto first = parse_json(group_->broadcast_text(json_text(json{{what, own}})))[what];
    for (const auto& [fact, value] : own.items())
      require<ConfigError>(value == first[fact], "the ", fact, " is ", value.get<std::string>(), ", and ",
                           first[fact].get<std::string>(), " of ", group_->name_of(0), "; ", mend);
  }

  // -- Cores and threads ----------------------------------------------------------------------------------------------

  /// Of processes of a machine that may use the same cores, as those of torchrun, each takes a share.
  void share_cores() {
    const auto number = [](const std::string& text) {
      return static_cast<double>(std::stoull(hash_hex(text).substr(4), nullptr, 16));
    };
    std::string cores;
    for (const int core : usable_cores_in_order()) cores += concat(core, " ");
    const std::vector<double> own{number(name_of_host()), number(cores)};
    int64_t sharers = 0, before = 0;
    const auto all = group_->exchange(own);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      if (all[rank] != own) continue;
      before += static_cast<int64_t>(rank) < group_->rank();
      ++sharers;
    }
    say_of_launcher(std::ssize(usable_cores_in_order()) / sharers);
    if (sharers > 1) take_share_of_cores(before, sharers);
  }

  void say_of_launcher(int64_t cores) const {
    if (!group_->is_first()) return;
    const char* threads = std::getenv("OMP_NUM_THREADS");
    if (meeting_.launcher == "torchrun" && threads != nullptr && std::strcmp(threads, "1") == 0 && cores > 1)
      log_info("processes", concat("torchrun has set OMP_NUM_THREADS=1, and each process computes with ", cores,
                                   " threads all the same; train.threads says otherwise"));
    if (meeting_.launcher == "mpirun" && usable_cores() == 1 && sysconf(_SC_NPROCESSORS_ONLN) > meeting_.local_size)
      log_warning("processes",
                  "mpirun has bound each process to one core; start it with `mpirun --bind-to none` for all of them");
  }

  // -- Leading and following ------------------------------------------------------------------------------------------

  int lead(const TrainTogether& train) {
    const Trainer trainer{.train =
                              [&](const PretrainCommand& command) {
                                group_->broadcast_text(serialised(command));
                                return train_one(command, train);
                              },
                          .is_shared = true,
                          .goes_on = meeting_.restarts > 0};
    const int code = command_.lead(trainer);
    group_->broadcast_text(json_text(json{{"end", code}}));
    return code;
  }

  int follow(const TrainTogether& train) {
    for (;;) {
      const auto order = parse_json(group_->broadcast_text(""));
      if (order.contains("end")) return order["end"];
      train_one(command_of(order), train);
    }
  }

  static std::string serialised(const PretrainCommand& c) {
    return json_text(json{{"config", to_yaml(c.config)},
                          {"run", c.run},
                          {"command_line", c.command_line},
                          {"branch_from", c.branch_from},
                          {"resume", c.resume},
                          {"allow_config_change", c.allow_config_change}});
  }

  static PretrainCommand command_of(const json& text) {
    PretrainCommand c;
    c.config = decode<RunConfig>(ConfigTree::parse(text["config"], "the config of rank 0"));
    c.run = text["run"];
    c.command_line = text["command_line"];
    c.branch_from = text["branch_from"];
    c.resume = text["resume"];
    c.allow_config_change = text["allow_config_change"];
    return c;
  }

  int train_one(const PretrainCommand& command, const TrainTogether& train) {
    if (command.config.train.device != "cpu") check_card(command.config.train);
    if (command.config.train.deterministic)
      compare("processor", {{"instruction set", best_isa()}},
              "start all with CLOZE_ISA set to the lower one, or begin the run with train.deterministic=false");
    set_run(command.run);
    auto parts = parts_of_run(command.config);
    parts.before_steps = [this, before = parts.before_steps](Training& training) {
      begin_steps(training);
      before(training);
    };
    parts.add_callbacks = [this, add = parts.add_callbacks](Training& training) {
      add(training);
      training.add(std::make_unique<StepNote>(step_));
    };
    return train(command, parts, *group_);
  }

  /// Throws ConfigError where this process has no card of its own, or of another kind than the first.
  void check_card(const TrainConfig& config) {
    require<ConfigError>(config.device == "cuda", "train.device is ", config.device, ", and each of several processes ",
                         "takes a GPU of its own; use cuda");
    try {
      device_of(config.device);
    } catch (const ConfigError& error) {
      fail<ConfigError>(error.what(), "; start as many processes as a machine has GPUs: each takes one of its own");
    }
    const auto capability = device::compute_capability(0);
    if (config.deterministic)
      compare("card", {{"compute capability of the GPU", concat(capability.first, ".", capability.second)}},
              "use GPUs of one kind, or begin the run with train.deterministic=false");
  }

  /// When the first process has opened the run's folder, the others write there, too.
  void begin_steps(const Training& training) {
    if (output_) output_->open(concat(training.options.run, "/", ranks_folder));
    log_network(training);
    compare("data", {{"data", data_fingerprint(training.store, training.held_out_store)}},
            "copy the prepared text to every machine");
  }

  void log_network(const Training& training) const {
    const auto& network = group_->network();
    const auto set = training.config.train.threads;
    const auto threads = counted(static_cast<uint64_t>(set > 0 ? set : usable_cores()), "thread");
    log_info("processes",
             concat(group_->size(), " by ", meeting_.launcher, ", this one is ", group_->name_of(group_->rank()),
                    ", with ", threads, network.empty() ? "" : ", over " + network));
  }

  // -- The end --------------------------------------------------------------------------------------------------------

  /// Notes the step, which is told where a process is lost.
  class StepNote final : public Callback {
   public:
    explicit StepNote(std::atomic<int64_t>& step) : step_(step) {}
    void begin(Training& training) override { step_ = training.progress.step; }
    void after_step(Training& training) override { step_ = training.progress.step; }

   private:
    std::atomic<int64_t>& step_;
  };

  void set_run(const std::string& run) {
    const std::lock_guard lock(mutex_);
    run_ = run;
  }

  /// Of the own error: tells all others, and speaks where there is a log of this process, or nobody else does.
  void fail_for_all(const std::string& error, int exit_code) {
    const auto sentence = group_->is_first() ? error : concat(group_->name_of(group_->rank()), ": ", error);
    group_->fail_for_all(sentence, exit_code);
    write_error_file(sentence);
    if (!output_) return;  // who catches it says it
    output_->speak({.exit_code = exit_code, .sentence = sentence}, /*for_all=*/false);
    leave(exit_code);
  }

  /// The sentence with what helps where a process was lost.
  std::string completed(const Failure& failure) {
    if (failure.exit_code != ProcessLost("").exit_code()) return failure.sentence;
    auto sentence = failure.sentence;
    if (step_ >= 0) sentence += concat(" in step ", thousands(static_cast<uint64_t>(step_) + 1));
    if (!run_.empty()) sentence += concat("; continue with `cloze pretrain --run ", run_, " --resume`");
    return sentence;
  }

  /// Of another process's failure, by the watch.
  void end(const Failure& failure) {
    const std::lock_guard lock(mutex_);
    const auto sentence = completed(failure);
    write_error_file(sentence);
    const bool for_first = failure.is_of_first && meeting_.rank == 1 && !interrupted;
    if (output_)
      output_->speak({.exit_code = failure.exit_code, .sentence = sentence}, for_first);
    else if (meeting_.rank == 0 || for_first)
      write_failure({.exit_code = failure.exit_code, .sentence = sentence}, STDERR_FILENO);
    leave(failure.exit_code);
  }

  [[noreturn]] static void leave(int exit_code) {
    remove_doomed();
    _exit(exit_code);
  }

  const TogetherCommand& command_;
  Meeting meeting_;
  std::atomic<int64_t> step_ = -1;
  std::mutex mutex_{};
  std::string run_{};
  std::optional<RankOutput> output_{};  ///< of another process than the first
  std::unique_ptr<Communicator> group_{};
};

}  // namespace

int run_together(const TogetherCommand& command, const TrainTogether& train) { return Rank(command).run(train); }

}  // namespace cloze
