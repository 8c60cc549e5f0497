#pragma once
// The lines of a suite in JSON lines, each with its file and line.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "data/reading/json_lines.h"
#include "run/records/suite_units.h"

namespace cloze {

/// Bytes of a file of a suite, decompressed; the largest published ones have 100 MB.
constexpr uint64_t most_suite_bytes = uint64_t{512} << 20;

/// The lines of a file of a suite.
struct SuiteText : JsonLines {
  explicit SuiteText(const std::string& path) : JsonLines(path, LoneReturn::ends_if_no_feeds, most_suite_bytes) {}
};

/// One object of a JSON-lines file. The functions throw DataError with the place for a key that is absent or of another
/// type.
struct SuiteLine {
  nlohmann::json object;
  std::string where;  ///< `name:number`
  bool has(const char* key) const { return object.contains(key); }
  const nlohmann::json& at(const char* key) const;
  const std::string& text(const char* key) const;
  const std::string& filled(const char* key) const;  ///< a text that is not blank
  double number(const char* key) const;
  int64_t integer(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
};

/// `'x'`, `3`, `a list`: a value as an error names it.
std::string described(const nlohmann::json& value);

/// A file of one JSON object a line; `.gz` and `.xz` are decompressed, blank lines are skipped.
class SuiteLines {
 public:
  explicit SuiteLines(const std::string& path) : lines_(path) {}
  /// The next object; none at the end. Throws DataError with the place of a line that is no JSON object, or in which an
  /// object has a key twice.
  std::optional<SuiteLine> next();

 private:
  SuiteText lines_;
};

/// The first object of a file; none for a file that is empty or begins with something else.
std::optional<SuiteLine> first_line(const std::string& path);

}  // namespace cloze
