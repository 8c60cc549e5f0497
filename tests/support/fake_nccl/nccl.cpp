// NCCL for the stand-in for a GPU, preloaded beside it: its processes are on one machine, and write into named pipes of
// a folder.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_nvrtc/kernel_runs.h"

namespace {

constexpr int invalid_usage = 5;

struct Id {
  char folder[128];
};

struct Ranks {
  int rank, size;
  std::string folder;
  std::vector<int> to{}, from{};  ///< pipes, by rank
};

struct Passed {
  Ranks* ranks;
  int peer;
  char* data;
  size_t bytes;
};

int depth = 0;
std::vector<Passed> sent, received;

int open_pipe(const std::string& folder, int from, int to) {
  const auto path = folder + "/" + std::to_string(from) + "-" + std::to_string(to);
  mkfifo(path.c_str(), 0600);  // of either that comes first
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

/// A card is that of one process: another one that comes with it finds its file.
bool is_free(const std::string& folder) {
  const char* card = std::getenv("CUDA_VISIBLE_DEVICES");
  const int file = open((folder + "/card-" + (card ? card : "0")).c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0) close(file);
  return file >= 0;
}

void write_all(int pipe, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) at += static_cast<size_t>(write(pipe, bytes.data() + at, bytes.size() - at));
}

void read_all(int pipe, char* into, size_t bytes) {
  for (size_t at = 0; at < bytes;) at += static_cast<size_t>(read(pipe, into + at, bytes - at));
}

/// The memory of the device is open meanwhile.
template <class Work>
void as_kernel(const char* name, const Work& work) {
  fake_nvrtc::around_kernels().begin(name);
  work();
  fake_nvrtc::around_kernels().end();
}

void pass() {
  std::vector<std::string> copies, arrived;
  as_kernel("nccl", [&] {
    for (const auto& one : sent) copies.emplace_back(one.data, one.bytes);
  });
  std::vector<std::thread> writers;
  for (size_t i = 0; i < sent.size(); ++i)
    writers.emplace_back([&, i] { write_all(sent[i].ranks->to[static_cast<size_t>(sent[i].peer)], copies[i]); });
  for (const auto& one : received) {
    auto& bytes = arrived.emplace_back(one.bytes, '\0');
    read_all(one.ranks->from[static_cast<size_t>(one.peer)], bytes.data(), bytes.size());
  }
  for (auto& writer : writers) writer.join();
  as_kernel("nccl", [&] {
    for (size_t i = 0; i < received.size(); ++i) std::memcpy(received[i].data, arrived[i].data(), arrived[i].size());
  });
  sent.clear();
  received.clear();
}

int add(std::vector<Passed>& all, const void* data, size_t bytes, int peer, void* ranks) {
  all.push_back({static_cast<Ranks*>(ranks), peer, static_cast<char*>(const_cast<void*>(data)), bytes});
  if (depth == 0) pass();
  return 0;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int ncclGetUniqueId(Id* id) {
  std::strcpy(id->folder, "/tmp/fake-nccl-XXXXXX");
  return mkdtemp(id->folder) ? 0 : 2;
}
int ncclCommInitRank(void** communicator, int size, Id id, int rank) {
  if (!is_free(id.folder)) return invalid_usage;
  auto* ranks = new Ranks{rank, size, id.folder};
  for (int other = 0; other < size; ++other) {
    ranks->to.push_back(open_pipe(id.folder, rank, other));
    ranks->from.push_back(open_pipe(id.folder, other, rank));
  }
  *communicator = ranks;
  return 0;
}
int ncclCommAbort(void* communicator) {
  auto* ranks = static_cast<Ranks*>(communicator);
  for (const auto* pipes : {&ranks->to, &ranks->from})
    for (const int pipe : *pipes) close(pipe);
  if (ranks->rank == 0) std::filesystem::remove_all(ranks->folder);  // all have come, and what is open stays
  delete ranks;
  return 0;
}
int ncclGroupStart() {
  ++depth;
  return 0;
}
int ncclGroupEnd() {
  if (--depth == 0) pass();
  return 0;
}
int ncclSend(const void* data, size_t bytes, int, int peer, void* ranks, void*) {
  return add(sent, data, bytes, peer, ranks);
}
int ncclRecv(void* data, size_t bytes, int, int peer, void* ranks, void*) {
  return add(received, data, bytes, peer, ranks);
}
int ncclBroadcast(const void* data, void*, size_t bytes, int, int root, void* communicator, void*) {
  const auto* ranks = static_cast<Ranks*>(communicator);
  ncclGroupStart();
  for (int other = 0; ranks->rank == root && other < ranks->size; ++other)
    if (other != root) add(sent, data, bytes, other, communicator);
  if (ranks->rank != root) add(received, data, bytes, root, communicator);
  return ncclGroupEnd();
}
const char* ncclGetErrorString(int status) { return status == invalid_usage ? "invalid usage" : "system error"; }

}  // extern "C"
