#include "core/lfs_pointer.h"

#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace cloze {

void require_no_pointer(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return;
  std::string begin(lfs_pointer.size(), '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  require<DataError>(begin != lfs_pointer, file,
                     ": is a pointer of Git LFS; get the file that it stands for: git lfs pull");
}

}  // namespace cloze
