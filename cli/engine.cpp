#include "cli/command.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/interrupt.h"
#include "core/log.h"
#include "core/process.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;

/// The version of the package torch that lies beside Cloze, if this is a wheel; empty: it is none, or torch is not
/// there.
std::string torch_beside(const fs::path& wheel) {
  constexpr std::string_view before = "__version__ = '";
  std::ifstream file(wheel / "../torch/version.py");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(before) && line.ends_with("'"))
      return line.substr(before.size(), line.size() - before.size() - 1);
  return "";
}

/// What mends an engine that does not load. Throws Error where the package torch is of another version than it needs.
std::string remedy_of(const fs::path& folder) {
  const auto wheel = folder.parent_path();
  if (std::error_code ignored; !fs::exists(wheel / "__main__.py", ignored))
    return "build Cloze again with ./quickstart or ./test";
  const auto remedy = concat("pip install 'torch==", CLOZE_TORCH_VERSION, ".*'");
  const auto version = torch_beside(wheel);
  require(version.empty() || version.starts_with(CLOZE_TORCH_VERSION "."), "torch ", version,
          " is installed, and this Cloze needs torch ", CLOZE_TORCH_VERSION, "; ", remedy);
  return remedy;
}

}  // namespace

int run_engine(const Command& command) {
  // Read by the OpenMP runtime when it loads, whose threads run operators that are LibTorch's own. They wait for some
  // microseconds, so that short parallel regions start without delay: longer, and they would take cores from the
  // threads that have work (core/tensor/parallel.h).
  setenv("GOMP_SPINCOUNT", "500", /*overwrite=*/0);
  const auto folder = fs::path(program_path()).parent_path();
  const auto remedy = remedy_of(folder);
  const auto library = (folder / "libcloze_engine.so").string();
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string reason = handle ? "" : dlerror();
  const bool lacks_memory = reason.find("failed to map") != reason.npos || reason.find("allocate") != reason.npos;
  require(handle != nullptr, library, ": cannot be loaded (", reason, "); ",
          lacks_memory ? "give this process more memory (ulimit -v)" : remedy);
  auto* entry = reinterpret_cast<int (*)(const Command&, LogLevel, Interrupts&)>(dlsym(handle, "cloze_run"));
  require(entry != nullptr, library, ": is not the engine of this program; ", remedy);
  return entry(command, log_level(), interrupts());
}

}  // namespace cloze
