#include "interchange/huggingface/json_file.h"

#include <filesystem>

#include "core/file.h"
#include "core/json.h"

namespace cloze {

using nlohmann::json;

json read_json(const std::string& path) {
  require<CheckpointError>(std::filesystem::exists(path), path,
                           ": no such file; name a folder that `save_pretrained` made");
  const auto text = read_text(path, 64 << 20);
  const auto content = parse_json(text);
  if (!content.is_object())
    fail<CheckpointError>(path, ": is not a JSON object", json_fault(text), "; the file is damaged");
  return content;
}

}  // namespace cloze
