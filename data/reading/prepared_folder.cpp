#include "data/reading/prepared_folder.h"

#include <filesystem>

#include "core/error.h"
#include "core/file.h"

namespace cloze {

bool is_token_store(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  try {
    return read_text(path).find("\"cloze-tokens\"") != std::string::npos;
  } catch (const Error&) {
    return false;  // unreadable, or longer than a manifest
  }
}

}  // namespace cloze
