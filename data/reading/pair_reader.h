#pragma once
// Pairs of source and target: two columns of each line, two keys of JSON lines, or the same line of two files.
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "data/reading/line_reader.h"
#include "data/reading/reader.h"

namespace cloze {

/// Reads the pairs of one file.
class PairReader {
 public:
  /// Receives both sides; one may be blank.
  using Add = std::function<void(std::string_view source, std::string_view target)>;

  /// `targets`: the file with the other side; empty: both sides are in one line.
  PairReader(const ReaderOptions& options, const std::string& targets);
  /// Hands over the pair of a line just read from `lines`; none for a blank line and for one that names columns. Throws
  /// DataError for a line without two sides.
  void read(const LineReader& lines, std::string_view line, const Add& add);
  /// Throws DataError if the other side has more lines.
  void end(const LineReader& lines);
  /// The file with the other side; empty for none.
  std::string target_file() const { return targets_ ? targets_->name : ""; }

 private:
  /// The columns of a file of pairs, from its first line.
  struct Table {
    size_t columns, source, target;
  };
  void read_object(const std::string& where, const nlohmann::json& object, const Add& add) const;
  void read_columns(const std::string& where, std::string_view line, const Add& add);
  Table read_header(const std::string& where, std::vector<std::string_view> cells, std::string_view line) const;

  std::string columns_, field_;
  std::unique_ptr<LineReader> targets_;
  std::optional<Table> table_;
  bool are_json_ = false;  // so far
};

}  // namespace cloze
