// Counts, and the report of them: FAKE_CUDA_REPORT names a file to which a process writes its counts when it ends, one
// line each of `operators`, `syncs`, `mixed` and the copies, then one for each cause of a sync and each mixed operator.
#include "tests/support/fake_cuda/record.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace fake_cuda {

namespace {

Counts all;
int depth = 0;  // of operators within operators, under the mutex

void write_report() {
  const char* path = std::getenv("FAKE_CUDA_REPORT");
  if (!path) return;
  std::ofstream out(path);
  out << "operators " << total(all.operators) << "\nsyncs " << total(all.syncs) << "\nmixed " << total(all.mixed);
  out << "\nto_device " << all.copies_to_device << " " << all.bytes_to_device;
  out << "\nto_host " << all.copies_to_host << " " << all.bytes_to_host << "\n";
  for (const auto& [cause, count] : all.syncs) out << "sync " << cause << " " << count << "\n";
  for (const auto& [name, count] : all.mixed) out << "mixed " << name << " " << count << "\n";
}

struct AtExit {
  ~AtExit() { write_report(); }
} at_exit;

}  // namespace
}  // namespace fake_cuda

/// The program ends by it, and runs no destructors.
extern "C" FAKE_CUDA_API void _exit(int code) {
  fake_cuda::write_report();
  syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

namespace fake_cuda {

std::recursive_mutex& device_mutex() {
  static auto* mutex = new std::recursive_mutex;  // outlives threads that end with the process
  return *mutex;
}

OperatorScope::OperatorScope(const std::string& name) : lock_(device_mutex()) {
  if (depth++ == 0) ++all.operators[name];
}
OperatorScope::~OperatorScope() { --depth; }

void count_kernel(const std::string& name) { const OperatorScope counted(name); }

void count_sync(const std::string& cause) {
  const std::lock_guard lock(device_mutex());
  if (depth == 0) ++all.syncs[cause];
}

void count_mixed(const std::string& name) {
  const std::lock_guard lock(device_mutex());
  if (depth == 0) ++all.mixed[name];
}

void count_unordered(const std::string& name) {
  const std::lock_guard lock(device_mutex());
  if (depth == 0) ++all.unordered[name];
}

void count_copy(const at::Tensor& from, bool to_device, bool is_async) {
  const std::lock_guard lock(device_mutex());
  if (depth > 0) return;
  const auto bytes = static_cast<int64_t>(from.nbytes());
  ++(to_device ? all.copies_to_device : all.copies_to_host);
  (to_device ? all.bytes_to_device : all.bytes_to_host) += bytes;
  if (!is_async) count_sync(to_device ? "copy to device" : "copy to host");
}

Counts counts() {
  const std::lock_guard lock(device_mutex());
  return all;
}

void reset_counts() {
  const std::lock_guard lock(device_mutex());
  all = Counts();
}

}  // namespace fake_cuda
