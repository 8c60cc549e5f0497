#include "core/open_file.h"

#include <sys/stat.h>

namespace cloze {

bool is_file_at(int file, const std::string& path) {
  struct stat open_file{}, there{};
  return fstat(file, &open_file) == 0 && stat(path.c_str(), &there) == 0 && open_file.st_dev == there.st_dev &&
         open_file.st_ino == there.st_ino;
}

}  // namespace cloze
