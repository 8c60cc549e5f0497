#include "core/program_path.h"

#include <sys/auxv.h>

#include <filesystem>

namespace cloze {

std::string program_path() {
  namespace fs = std::filesystem;
  std::error_code error;
  auto path = fs::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  const std::string started_as = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  path = fs::canonical(started_as, error);
  return error ? started_as : path.string();
}

}  // namespace cloze
