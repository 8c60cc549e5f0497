#include "data/reading/json_lines.h"

#include "core/json.h"
#include "data/reading/text_lines.h"

namespace cloze {

std::optional<nlohmann::json> JsonLines::next_object(const std::function<void(const std::string&)>& leave_out) {
  for (std::string_view line; next(line);) {
    if (is_blank(line)) continue;
    auto object = parse_json_line(line, where());
    if (object.is_object()) return object;
    const auto fault = json_line_fault(line), what = concat(where(), ": not a JSON object", fault);
    if (!leave_out) {
      const bool may_go_on = number == 1 && line == "{";
      const bool is_cut = fault.find("ends in the middle") != std::string::npos && !next(line);
      const auto mend = may_go_on ? concat(": jq -c . ", name, " writes it so") : "";
      fail<DataError>(
          what, is_cut ? "; the file is cut off, get it again" : concat("; JSON lines have one object per line", mend));
    }
    leave_out(what);
  }
  return std::nullopt;
}

}  // namespace cloze
