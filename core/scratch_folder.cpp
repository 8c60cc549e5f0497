#include "core/scratch_folder.h"

#include <unistd.h>

#include <filesystem>

#include "core/error.h"

namespace cloze {

ScratchFolder::ScratchFolder() {
  std::error_code error;
  const auto parent = std::filesystem::temp_directory_path(error);
  require<Error>(!error, "TMPDIR, the folder for temporary files: cannot be used (", error.message(),
                 "); set it to another folder");
  const bool is_writable = access(parent.c_str(), W_OK | X_OK) == 0;
  require<Error>(is_writable, parent.string(), ": cannot create a temporary folder there (", system_reason(),
                 "); set TMPDIR to another folder");
  folder_.emplace((parent / concat("cloze-", geteuid())).string(), 0700);
}

}  // namespace cloze
