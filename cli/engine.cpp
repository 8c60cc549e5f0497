#include "cli/command.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/process.h"

namespace cloze {

int run_engine(const Command& command) {
  // Read by the OpenMP runtime when it loads, whose threads run operators that are LibTorch's own. They wait for some
  // microseconds, so that short parallel regions start without delay: longer, and they would take cores from the
  // threads that have work (core/tensor/parallel.h).
  setenv("GOMP_SPINCOUNT", "500", /*overwrite=*/0);
  const auto folder = std::filesystem::path(program_path()).parent_path();
  const auto library = (folder / "libcloze_engine.so").string();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string reason = handle ? "" : dlerror();
  const bool lacks_memory = reason.find("failed to map") != reason.npos || reason.find("allocate") != reason.npos;
  require(handle != nullptr, library, ": cannot be loaded (", reason, "); ",
          lacks_memory ? "give this process more memory (ulimit -v)" : "build Cloze again with ./quickstart or ./test");
  auto* entry = reinterpret_cast<int (*)(const Command&, LogLevel, Interrupts&)>(dlsym(handle, "cloze_run"));
  require(entry != nullptr, library,
          ": is not the engine of this program; build Cloze again with ./quickstart or ./test");
  return entry(command, log_level(), interrupts());
}

}  // namespace cloze
