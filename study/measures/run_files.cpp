#include "study/measures/run_files.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/fingerprint.h"
#include "core/json.h"
#include "core/log.h"
#include "core/text.h"
#include "run/records/held_out_record.h"
#include "run/records/history.h"
#include "run/run_files.h"

namespace cloze {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t most_bytes_of_file = uint64_t{256} << 20;

/// A JSON file of a run; null where there is none, and where it is damaged.
json read_fields(const std::string& path) {
  const auto fields = fs::exists(path) ? parse_json(read_text(path, most_bytes_of_file)) : json();
  return fields.is_object() ? fields : json();
}

/// A count of a line of metrics.jsonl; none for what no run counts, whose conversion would be undefined.
std::optional<double> count_of(const json& value) {
  constexpr double most = 9e15;  // below 2^53, so that every count up to it is exact
  if (!value.is_number()) return std::nullopt;
  const auto number = value.get<double>();
  return number >= 0 && number <= most ? std::optional(std::trunc(number)) : std::nullopt;
}

/// What a line of metrics.jsonl says; a line that was cut or damaged says nothing.
json row_of(const std::string& line) {
  const auto row = parse_json(line);
  return row.is_object() && row.contains("step") && count_of(row["step"]) ? row : json();
}

/// Whether a line that is not parsed looks like one that a run wrote.
bool looks_complete(const std::string& line) {
  const auto is_control = [](unsigned char byte) { return byte < 0x20; };
  return line.starts_with('{') && line.ends_with('}') && std::none_of(line.begin(), line.end(), is_control);
}

/// Reads a log line by line. Of those between two evaluations only the last is parsed; of the others it is looked
/// whether they are complete.
class LogReader {
 public:
  LogReader(const StudyMetric& metric, int64_t points) : metric_(metric), mark_(row_mark(metric)), points_(points) {}

  RunLog read(const std::string& folder) {
    LogLines lines(folder + "/metrics.jsonl");
    int64_t number = 0;
    for (std::string line; lines.next(line);) {
      ++number;
      if (line.find(mark_) != std::string::npos) {
        take_skipped();
        add_point(take(line, number));
      } else if (looks_complete(line)) {
        skipped_ = {line, number};
      } else {
        note_damage(number);
      }
    }
    take_skipped();
    return std::move(log_);
  }

 private:
  void note_damage(int64_t number) {
    if (log_.damaged++ == 0) log_.first_damaged = number;
  }

  void take_skipped() {
    if (const auto [line, number] = std::exchange(skipped_, {}); !line.empty()) take(line, number);
  }

  /// Numbers that the line lacks stay.
  json take(const std::string& line, int64_t number) {
    constexpr double most_share = 1000;  // of no budget is more used up
    auto row = row_of(line);
    if (row.is_null()) note_damage(number);
    auto& now = log_.last;
    for (const auto& [key, value] :
         {std::pair{"step", &now.step}, {"tokens", &now.tokens}, {"predicted_tokens", &now.predicted_tokens}})
      if (row.contains(key)) *value = count_of(row[key]).value_or(*value);
    if (row.contains("flops") && row["flops"].is_number()) now.flops = row["flops"].get<double>();
    now.seconds = number_at(row, "time", "seconds", now.seconds);
    log_.diverged = string_at(row, "/diverged");
    const double fraction = number_at(row, "time", "budget_share", log_.fraction);
    if (fraction >= 0 && fraction <= most_share) log_.fraction = fraction;
    return row;
  }

  void add_point(const json& row) {
    const auto value = row.is_null() ? std::nullopt : curve_value(metric_, row);
    if (!value) return;
    auto& point = log_.curve.emplace_back();
    static_cast<Usage&>(point) = log_.last;
    point.fraction = log_.fraction;
    point.loss = value->value;
    point.floor = value->floor;
    point.of = value->loss;
    const double index = points_ > 0 ? static_cast<double>(points_) * log_.fraction + 1e-6 : point.step;
    point.point = static_cast<int64_t>(index);
  }

  const StudyMetric& metric_;
  std::string mark_;
  int64_t points_;
  RunLog log_{};
  std::pair<std::string, int64_t> skipped_{};  ///< the last line without an evaluation that looks complete
};

/// Throws DataError for losses that are not those in the summary of the run, which a file of another run has.
void require_own_losses(const std::string& folder, const HeldOutFile& file, const std::string& remedy) {
  const auto losses = value_at(read_summary(folder), "/held_out");
  for (const auto& [name, part] : file.losses) {
    const auto own = losses.find(name);
    const auto said = own == losses.end() ? json() : value_at(*own, "/loss");
    const double value = part.examples.value();
    if (!said.is_number() || !std::isfinite(value)) continue;
    const double summary = said.get<double>();
    constexpr double rounding = 1e-9;  // of sums in another order
    require<DataError>(std::abs(value - summary) <= rounding * std::max(1.0, std::abs(summary)), folder,
                       "/held_out.json: is of another run, with a loss of ", significant(value, 7), " for ", name,
                       " where summary.json has ", significant(summary, 7), "; ", remedy);
  }
}

constexpr std::array usage_fields{&Usage::step,  &Usage::tokens, &Usage::predicted_tokens,
                                  &Usage::words, &Usage::epochs, &Usage::seconds,
                                  &Usage::flops};

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  for (const auto field : usage_fields) this->*field += other.*field;
  return *this;
}

Usage Usage::operator/(double count) const {
  auto part = *this;
  for (const auto field : usage_fields) part.*field /= count;
  return part;
}

json read_summary(const std::string& folder, const std::string& remedy) {
  const auto path = folder + "/summary.json";
  auto summary = read_fields(path);
  require<DataError>(remedy.empty() || summary.is_object() || !fs::exists(path), path, ": is damaged; ", remedy);
  return summary;
}

json sealed_fields(const std::string& path, const std::string& part, const std::string& lacks,
                   const std::string& remedy) {
  require<DataError>(fs::exists(path), path, ": is missing, so that ", lacks, "; ", remedy);
  auto fields = read_fields(path);
  require<DataError>(fields.contains(part) && string_at(fields, "/xxh3") == hash_hex(json_text(fields[part])), path,
                     ": is damaged or was edited; ", remedy);
  return fields;
}

double number_at(const json& row, const char* part, const std::string& key, double otherwise) {
  if (!row.contains(part) || !row[part].is_object()) return otherwise;
  const auto& inner = row[part];
  return inner.contains(key) && inner[key].is_number() ? inner[key].get<double>() : otherwise;
}

RunLog read_log(const std::string& folder, const StudyMetric& metric, int64_t points) {
  return LogReader(metric, points).read(folder);
}

std::vector<CurvePoint> read_curve(const std::string& folder, const StudyMetric& metric, int64_t points) {
  static std::set<std::string> warned;  // once a process
  auto log = read_log(folder, metric, points);
  if (log.damaged > 0 && warned.insert(folder).second)
    log_warning("study", concat(folder, "/metrics.jsonl: ", log.damaged, " damaged lines, the first of them line ",
                                log.first_damaged, "; curve and use of the run are those of the other lines"));
  auto& curve = log.curve;
  if (!curve.empty())
    std::erase_if(curve, [last = curve.back().of](const CurvePoint& point) { return point.of != last; });
  return std::move(curve);
}

Usage text_read(const std::string& folder) {
  const auto summary = read_summary(folder);
  const auto number = [&](const char* pointer) {
    const auto value = value_at(summary, pointer);
    return value.is_number() ? value.get<double>() : 0;
  };
  return {.words = number("/words"), .epochs = number("/epochs")};
}

Provenance read_provenance(const std::string& folder, const std::vector<std::string>& before) {
  Provenance provenance;
  auto folders = before;
  folders.push_back(folder);
  for (const auto& one : folders) {
    if (!fs::exists(one + "/provenance.json")) continue;
    const auto fields = read_fields(one + "/provenance.json");
    const auto history = history_of(fields);
    auto changed = std::move(provenance.changed);
    for (const auto& changes : history.changes)
      changed += (changed.empty() ? "changed at " : "; at ") + to_text(changes);
    provenance = {string_at(fields, "/data/tokenizer"), string_at(fields, "/data/fingerprint"), history.made_by,
                  history.is_dirty, changed};
  }
  return provenance;
}

std::string changed_name(const std::string& changed) { return ", " + changed.substr(0, changed.find(" with ")); }

HeldOutFile read_held_out(const std::string& folder, const std::string& remedy) {
  const auto path = folder + "/held_out.json";
  const auto fields = sealed_fields(path, "losses", "the run cannot be scored", remedy);
  const auto damaged = [&](bool fine) { require<DataError>(fine, path, ": is damaged or was edited; ", remedy); };
  HeldOutRecord record;
  try {
    record = fields.get<HeldOutRecord>();
  } catch (const json::exception&) {
    damaged(false);
  }
  damaged(record.seal.empty() || record.seal == seal_of(record));
  HeldOutFile file{.measured = record.measured, .step = record.step};
  const std::string before_tokens = ", tokens ";
  if (const auto at = file.measured.find(before_tokens); at != std::string::npos) {
    file.text = file.measured.substr(at + before_tokens.size());
    file.measured.erase(at);
  }
  for (auto& [name, part] : record.losses) {
    damaged(part.sum.size() == part.count.size() && (part.bytes.empty() || part.bytes.size() == part.sum.size()) &&
            (part.document.empty() || part.document.size() == part.sum.size()));
    file.losses[name] = {
        .examples = {.sum = std::move(part.sum), .count = std::move(part.count), .documents = std::move(part.document)},
        .bytes = {part.bytes.begin(), part.bytes.end()}};
  }
  require_own_losses(folder, file, remedy);
  return file;
}

}  // namespace cloze
