#include "study/report/report_rows.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/log.h"
#include "core/text.h"

namespace cloze {

namespace {

/// The parts of a held-out evaluation in words, without the list of its objectives: what one loss depends on.
std::vector<std::string> parts_of(const std::string& measured) {
  auto parts = separated(measured, ", ");
  if (parts.size() > 1) parts.erase(parts.begin());
  return parts;
}

/// Bytes of text that a result in bits per byte covers.
double bytes_of(const RunResult& run) {
  return std::accumulate(run.examples.count.begin(), run.examples.count.end(), 0.0) / std::numbers::ln2;
}

/// Why losses were taken from texts that cannot be compared; empty where they were not.
std::string difference_of_texts(const ReportedRun& a, const ReportedRun& b, const LossMetric& loss) {
  const auto remedy =
      "; train all arms on one folder of tokens, or compare a generative loss in bits per byte (metric.unit of a "
      "study, --unit of `cloze report`)";
  if (loss.unit == LossUnit::bits_per_byte) {
    const double covered = bytes_of(a.result), other = bytes_of(b.result);
    if (std::abs(covered - other) <= 0.02 * covered) return "";
    return concat("were scored on different text, of ", bytes(covered), " and ", bytes(other),
                  "; prepare both folders of tokens from one text with the same held-out share, and score all of it "
                  "(evaluation.sequences)");
  }
  if (!a.tokenizer.empty() && !b.tokenizer.empty() && a.tokenizer != b.tokenizer)
    return concat("have different tokenizers (", a.tokenizer, " and ", b.tokenizer,
                  "), so that their losses cannot be compared", remedy);
  if (a.result.text != b.result.text)
    return concat("were scored on different text or by different tokenizers (tokens ", a.result.text, " and ",
                  b.result.text, "), so that their losses cannot be compared", remedy);
  return "";
}

/// Why two runs cannot be compared; empty where they can.
std::string difference_of(const ReportedRun& a, const ReportedRun& b, const StudyMetric& by) {
  const auto* loss = std::get_if<LossMetric>(&by);
  if (!loss)
    return a.result.text == b.result.text
               ? ""
               : concat("answered other items of ", facts_of(by).name, "; give all runs the same ones");
  if (const auto texts = difference_of_texts(a, b, *loss); !texts.empty()) return texts;
  const auto said = parts_of(a.result.measured), other = parts_of(b.result.measured);
  for (size_t i = 0; i < std::max(said.size(), other.size()); ++i)
    if (i >= said.size() || i >= other.size() || said[i] != other[i])
      return concat("were scored differently, so that their losses cannot be compared: by ", a.result.measured,
                    ", and by ", b.result.measured, "; give both the same `evaluation`");
  return "";
}

/// A run with the value of a secondary metric in place of the first.
ReportedRun by_secondary(const ReportedRun& run, size_t metric) {
  ReportedRun measured{.tokenizer = run.tokenizer};
  score(measured.result, run.result.secondary[metric]);
  return measured;
}

/// Whether nobody has measured a run by a secondary metric.
bool lacks_secondary(const ReportedRun& run, size_t metric) {
  const auto& value = run.result.secondary[metric];
  return std::isnan(value.value) && value.measured.empty();
}

void refuse_difference(const ReportedRun& a, const ReportedRun& b, const std::string& difference) {
  require<DataError>(difference.empty(), a.result.folder, " and ", b.result.folder, ": ", difference);
}

}  // namespace

void check_comparable(const StudyReport& report) {
  std::vector<const ReportedRun*> done;
  for (const auto& run : report.runs)
    if (run.state == RunState::done) done.push_back(&run);
  for (const auto* run : done) refuse_difference(*done.front(), *run, difference_of(*done.front(), *run, report.by));
  for (size_t i = 0; i < report.secondary.size(); ++i) {
    const ReportedRun* first = nullptr;
    for (const auto* run : done) {
      if (lacks_secondary(*run, i)) continue;
      if (!first) first = run;
      refuse_difference(*first, *run,
                        difference_of(by_secondary(*first, i), by_secondary(*run, i), report.secondary[i]));
    }
  }
}

}  // namespace cloze
