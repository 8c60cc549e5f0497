#include "data/prepare/train_tokenizer.h"

#include <fcntl.h>
#include <poll.h>
#include <sentencepiece_trainer.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/file.h"
#include "core/interrupt.h"
#include "core/log.h"
#include "core/stopwatch.h"
#include "core/worker_threads.h"

namespace cloze {

namespace {

// The first byte of what the process sends.
constexpr char has_model = 'm', has_trouble = 't', lacks_threads = 'h', lacks_memory = 'y';
constexpr int milliseconds_between_looks = 100;

struct Sentences final : sentencepiece::SentenceIterator {
  explicit Sentences(const std::vector<std::string>& list) : all(list) {}
  bool done() const override { return at == all.size(); }
  void Next() override { ++at; }
  const std::string& value() const override { return all[at]; }
  sentencepiece::util::Status status() const override { return {}; }
  const std::vector<std::string>& all;
  size_t at = 0;
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    const bool is_made = pipe2(ends.data(), O_CLOEXEC) == 0;
    require<Error>(is_made, "a pipe for the tokenizer's training cannot be made (", system_reason(),
                   "); close other programs");
    from = ends[0];
    to = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_reading();
    close_writing();
  }
  void close_reading() {
    if (from >= 0) close(from);
    from = -1;
  }
  void close_writing() {
    if (to >= 0) close(to);
    to = -1;
  }
  int from = -1, to = -1;
};

/// A process that is killed where it still runs.
struct Child {
  explicit Child(pid_t number) : pid(number) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid <= 0) return;
    kill(pid, SIGKILL);
    wait();
  }
  /// Its status as of waitpid().
  int wait() {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    pid = -1;
    return status;
  }
  pid_t pid;
};

void write_all(int file, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const auto n = write(file, text.data() + at, text.size() - at);
    if (n < 0 && errno != EINTR) return;
    if (n > 0) at += static_cast<size_t>(n);
  }
}

/// Makes the process end with its parent, and leave alone what it shares with it.
void become_child(pid_t parent, Pipe& log, Pipe& result) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it has ended already
  signal(SIGINT, SIG_IGN);            // a Ctrl-C goes to the whole group; the parent ends this process
  // SentencePiece calls exit() where it gives up; the parent's destructors wait for threads that do not exist here.
  std::atexit([] { _exit(1); });
  log.close_reading();
  result.close_reading();
  dup2(log.to, STDERR_FILENO);
}

/// The work of the process: trains, sends what came of it, and ends.
[[noreturn]] void train_and_exit(const std::string& spec, const std::vector<std::string>& sentences, int out) {
  std::string sent;
  try {
    Sentences iterator(sentences);
    std::string model;
    const auto status = sentencepiece::SentencePieceTrainer::Train(spec, &iterator, &model);
    sent = status.ok() ? has_model + model : has_trouble + status.ToString();
  } catch (const std::system_error& error) {
    sent = lacks_threads + error.code().message();
  } catch (const std::bad_alloc&) {
    sent = lacks_memory;
  } catch (const std::exception& error) {
    sent = has_trouble + std::string(error.what());
  }
  write_all(out, sent);
  _exit(0);
}

/// Appends what can be read at once; false at the end.
bool read_some(int file, std::string& text) {
  std::array<char, 1 << 16> block{};
  const auto n = read(file, block.data(), block.size());
  if (n > 0) text.append(block.data(), static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

/// A line of the trainer's log, and what begins with it.
struct Phase {
  const char* line;
  const char* words;
};
constexpr Phase phases[] = {{"Normalizing sentences", "normalizing sentences"},
                            {"Making suffix array", "looking for parts that recur"},
                            {"Extracting frequent sub strings", "choosing the most frequent parts"},
                            {"Tokenizing input sentences", "counting words"},
                            {" sentences for EM training", "estimating probabilities"},
                            {"EM sub_iter=0", "estimating probabilities"},
                            {"EM sub_iter=1", "pruning"},  // the second of two iterations has ended
                            {"Updating active symbols", "joining pairs"},
                            {"Added: freq=", "joining pairs"}};

/// The number after the first such words of a log; 0 without them.
uint64_t number_after(const std::string& log, std::string_view words) {
  const auto at = log.find(words);
  return at == std::string::npos ? 0 : std::strtoull(log.c_str() + at + words.size(), nullptr, 10);
}

Progress progress_of(const std::string& log, int64_t vocab_size, double seconds) {
  Progress progress{{"[data]    training the tokenizer", phase_in(log), duration(seconds)},
                    fraction_done(log, vocab_size)};
  if (const auto pieces = pieces_in(log); pieces > 0)
    progress.fields.push_back(thousands(pieces) + " pieces, to become " + thousands(static_cast<uint64_t>(vocab_size)));
  return progress;
}

}  // namespace

uint64_t pieces_in(const std::string& log) {
  const std::string_view size = " size=", of_alphabet = "Alphabet";
  for (auto at = log.rfind(size); at != std::string::npos; at = at > 0 ? log.rfind(size, at - 1) : std::string::npos)
    if (!std::string_view(log).substr(0, at).ends_with(of_alphabet))
      return std::strtoull(log.c_str() + at + size.size(), nullptr, 10);
  return 0;
}

std::string phase_in(const std::string& log) {
  const char* newest = "reading sentences";
  size_t last = 0;
  for (const auto& [line, words] : phases)
    if (const auto at = log.rfind(line); at != std::string::npos && at >= last) {
      last = at;
      newest = words;
    }
  return newest;
}

double fraction_done(const std::string& log, int64_t vocab_size) {
  constexpr double before_the_end = 1.1;  // the unigram trainer prunes to so many times the vocabulary, and then cuts
  const auto pieces = static_cast<double>(pieces_in(log)), wanted = static_cast<double>(vocab_size);
  if (pieces == 0) return -1;
  const auto seeds = static_cast<double>(number_after(log, "Initialized "));
  if (seeds == 0) return std::min(pieces / wanted, 1.0);  // bpe: pieces are added
  if (seeds <= before_the_end * wanted) return -1;
  return std::clamp(std::log(seeds / pieces) / std::log(seeds / (before_the_end * wanted)), 0.0, 1.0);
}

namespace {

/// What the process has sent: a model, what is wrong with the text, or what it lacked, which is thrown.
TrainedSentencePiece result_of(const std::string& sent) {
  const auto content = sent.substr(1);
  require<Error>(sent[0] != lacks_threads, "a thread that trains the tokenizer cannot be started (", content, "); ",
                 threads_remedy);
  require<Error>(sent[0] != lacks_memory,
                 "there is no memory for the tokenizer's training; lower --vocab-size or name less text");
  return sent[0] == has_model ? TrainedSentencePiece{content, ""} : TrainedSentencePiece{"", content};
}

}  // namespace

TrainedSentencePiece train_sentencepiece(const std::string& spec, const std::vector<std::string>& sentences,
                                         int64_t vocab_size) {
  Pipe log, result;
  const auto start = std::chrono::steady_clock::now();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  require<Error>(pid >= 0, "no process can be started for the tokenizer's training (", system_reason(), "); ",
                 threads_remedy);
  if (pid == 0) {
    become_child(parent, log, result);
    train_and_exit(spec, sentences, result.to);
  }
  Child child(pid);
  log.close_writing();
  result.close_writing();
  std::string logged, sent;
  double drawn = 1;  // seconds after the start, when the line of progress was drawn last
  for (bool open = true; open;) {
    std::array<pollfd, 2> files{pollfd{result.from, POLLIN, 0}, pollfd{log.from, POLLIN, 0}};
    poll(files.data(), files.size(), milliseconds_between_looks);
    if (interrupted) throw Interrupted("stopped while the tokenizer was trained; nothing was written");
    if ((files[1].revents & POLLIN) != 0) read_some(log.from, logged);
    if ((files[0].revents & (POLLIN | POLLHUP)) != 0) open = read_some(result.from, sent);
    const double passed = seconds_since(start);
    if (passed < drawn + 0.1) continue;
    drawn = passed;
    log_progress(progress_of(logged, vocab_size, drawn), false);
  }
  end_progress();
  const int status = child.wait();
  // What a killed process has sent may be the beginning of a model.
  require<Error>(status == 0 && !sent.empty(), "the process that trains the tokenizer was ended by ",
                 WIFSIGNALED(status) ? concat("signal ", WTERMSIG(status)) : concat("exit code ", WEXITSTATUS(status)),
                 "; if memory was short, lower --vocab-size or name less text");
  return result_of(sent);
}

}  // namespace cloze
