#pragma once
// The objects of JSON lines.
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "data/reading/line_reader.h"

namespace cloze {

/// A file of one JSON object a line, or, where it is read so (JsonList), of one list of objects.
class JsonLines : public LineReader {
 public:
  using LineReader::LineReader;
  /// The object of the next line that is not blank; none at the end. Throws DataError with the place of a line that is
  /// no JSON object, or in which an object has a key twice; where `leave_out` is given, it receives what is wrong with
  /// a line that is none.
  std::optional<nlohmann::json> next_object(const std::function<void(const std::string&)>& leave_out = {});
};

}  // namespace cloze
