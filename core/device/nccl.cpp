#include "core/device/nccl.h"

#include <cstring>

#include "core/device/loaded.h"

namespace cloze::device {

namespace {

constexpr int as_bytes = 0;  // ncclInt8

/// ncclUniqueId
struct Id {
  char bytes[128];
};

/// The functions that are used. Their types are those of nccl.h.
struct NcclFunctions {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_GLOBAL);
  int (*id)(Id*) = function_of<int(Id*)>(library, "ncclGetUniqueId");
  int (*begin)(void**, int, Id, int) = function_of<int(void**, int, Id, int)>(library, "ncclCommInitRank");
  int (*end)(void*) = function_of<int(void*)>(library, "ncclCommAbort");
  int (*group)() = function_of<int()>(library, "ncclGroupStart");
  int (*end_group)() = function_of<int()>(library, "ncclGroupEnd");
  int (*send)(const void*, size_t, int, int, void*,
              void*) = function_of<int(const void*, size_t, int, int, void*, void*)>(library, "ncclSend");
  int (*receive)(void*, size_t, int, int, void*,
                 void*) = function_of<int(void*, size_t, int, int, void*, void*)>(library, "ncclRecv");
  int (*broadcast)(const void*, void*, size_t, int, int, void*,
                   void*) = function_of<int(const void*, void*, size_t, int, int, void*, void*)>(library,
                                                                                                 "ncclBroadcast");
  const char* (*reason)(int) = function_of<const char*(int)>(library, "ncclGetErrorString");

  void check(int status) const {
    constexpr int invalid_usage = 5;
    if (status == 0) return;
    fail<Error>("NCCL: ", reason(status), status == invalid_usage ? "; has each process a card of its own? " : "; ",
                "NCCL_DEBUG=WARN says more");
  }
};

const NcclFunctions& nccl() {
  static const auto loaded = [] {
    try {
      return NcclFunctions();
    } catch (const Error& missing) {
      fail<ConfigError>("several processes with a GPU each need NCCL, libnccl.so.2, and ", missing.what(),
                        "; install a torch with CUDA, which brings it, or use one process or --set train.device=cpu");
    }
  }();
  return loaded;
}

}  // namespace

std::string Nccl::new_id() {
  Id id{};
  nccl().check(nccl().id(&id));
  return {id.bytes, sizeof id.bytes};
}

Nccl::Nccl(int64_t rank, int64_t size, const std::string& id) {
  Id own_id{};
  std::memcpy(own_id.bytes, id.data(), std::min(sizeof own_id.bytes, id.size()));
  nccl().check(nccl().begin(&communicator_, static_cast<int>(size), own_id, static_cast<int>(rank)));
}

Nccl::~Nccl() { nccl().end(communicator_); }

void Nccl::transfer(const std::vector<Transfer>& sent, const std::vector<Transfer>& received, void* stream) const {
  const auto& f = nccl();
  f.check(f.group());
  for (const auto& one : sent)
    f.check(f.send(one.data, one.bytes, as_bytes, static_cast<int>(one.peer), communicator_, stream));
  for (const auto& one : received)
    f.check(f.receive(one.data, one.bytes, as_bytes, static_cast<int>(one.peer), communicator_, stream));
  f.check(f.end_group());
}

void Nccl::broadcast(void* data, size_t bytes, void* stream) const {
  nccl().check(nccl().broadcast(data, data, bytes, as_bytes, 0, communicator_, stream));
}

}  // namespace cloze::device
