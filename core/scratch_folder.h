#pragma once
#include <optional>
#include <string>

#include "core/file.h"

namespace cloze {

/// An empty temporary folder of this user alone, in TMPDIR, under a name that nobody can guess. It is removed with the
/// object, by a signal that ends the program, or, where the process was killed, by the next one of the same user.
/// Throws Error if there is no room for it.
class ScratchFolder {
 public:
  ScratchFolder();
  const std::string& path() const { return folder_->path(); }

 private:
  std::optional<StagedFolder> folder_;  ///< never put in place
};

}  // namespace cloze
