#include "core/config/config_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/spelling.h"

namespace cloze {

void check_config_size(size_t bytes, const std::string& name) {
  require<ConfigError>(bytes <= max_config_bytes, name, ": ", bytes, " bytes are too many for a config (at most ",
                       max_config_bytes, "); name the YAML file of a run");
}

namespace {

using Type = ConfigNode::Type;

constexpr size_t max_nodes = 100000, max_keys = 10000;

std::string location(const std::string& name, int line, int column) { return concat(name, ":", line, ":", column); }

/// Finds the quotations and comments of a YAML text, whose brackets nest nothing. In a plain scalar or a block it may
/// take an apostrophe for a quotation; the depth of what was parsed is checked too.
class Quotations {
 public:
  /// Whether the next character belongs to a quotation or a comment.
  bool contains(char c) {
    const char before = std::exchange(before_, c);
    if (std::exchange(escaped_, false)) return true;
    if (open_ == '#') {
      if (c == '\n') open_ = 0;
      return true;
    }
    if (open_ != 0) {
      escaped_ = open_ == '"' && c == '\\';
      if (c == open_) open_ = 0;
      return true;
    }
    const bool after_space = std::string_view(" \t\r\n").find(before) != std::string_view::npos;
    const bool begins_value = after_space || std::string_view("[{,:").find(before) != std::string_view::npos;
    const bool goes_on = c == '\'' && before == '\'';  // '' within single quotes
    if (((c == '"' || c == '\'') && (begins_value || goes_on)) || (c == '#' && after_space)) open_ = c;
    return open_ != 0;
  }

 private:
  char open_ = 0, before_ = '\n';
  bool escaped_ = false;
};

/// White space of Unicode, of some width or none, that YAML takes for letters.
constexpr std::array<std::string_view, 12> other_spaces = {"\u00A0", "\u2002", "\u2003", "\u2007", "\u2009", "\u200A",
                                                           "\u200B", "\u2028", "\u2029", "\u202F", "\u3000", "\uFEFF"};

bool begins_with_other_space(std::string_view text) {
  return std::ranges::any_of(other_spaces, [&](std::string_view space) { return text.starts_with(space); });
}

/// Rejects input that is unsafe for a YAML parser: binary content, unbounded nesting, and white space that it reads as
/// text.
void check_text(const std::string& text, const std::string& name) {
  check_config_size(text.size(), name);
  const bool is_wide = text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF");
  require<ConfigError>(!is_wide, name, ": is UTF-16; save it as UTF-8");
  Quotations quotations;
  const std::string_view view = text, mark = "\uFEFF";  // a byte order mark
  int line = 1, column = 0, open = 0;
  for (size_t at = view.starts_with(mark) ? mark.size() : 0; at < view.size(); ++at) {
    const char c = view[at];
    ++column;
    if (c == '\n') {
      ++line;
      column = 0;
    }
    const bool control = static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\r' && c != '\t';
    require<ConfigError>(!control, location(name, line, column),
                         ": a control character; this does not look like a YAML file");
    if (quotations.contains(c)) continue;
    if (c == '[' || c == '{') ++open;
    if (c == ']' || c == '}') --open;
    require<ConfigError>(open <= max_config_depth, location(name, line, column), ": brackets are nested deeper than ",
                         max_config_depth, "; flatten them");
    require<ConfigError>(!begins_with_other_space(view.substr(at)), location(name, line, column),
                         ": an invisible character that YAML takes for a letter; replace it by a space, or put the "
                         "text in quotes");
  }
}

struct Converter {
  const std::string& name;
  size_t nodes = 0;

  ConfigNode convert(const YAML::Node& from, const std::string& fallback, int depth) {
    ConfigNode to;
    const auto mark = from.Mark();
    to.where = mark.line >= 0 ? location(name, mark.line + 1, mark.column + 1) : fallback;
    require<ConfigError>(++nodes <= max_nodes, name, ": more than ", max_nodes,
                         " values once aliases are followed; write fewer of them");
    require<ConfigError>(depth <= max_config_depth, to.where, ": values are nested deeper than ", max_config_depth,
                         "; flatten them");
    if (from.IsScalar()) {
      to.type = Type::scalar;
      to.text = from.Scalar();
      to.quoted = from.Tag() == "!";
    } else if (from.IsSequence()) {
      to.type = Type::list;
      for (const auto& item : from) to.items.emplace_back("", convert(item, to.where, depth + 1));
    } else if (from.IsMap()) {
      to.type = Type::map;
      require<ConfigError>(from.size() <= max_keys, to.where, ": ", from.size(),
                           " keys are too many for a map (at most ", max_keys, "); name the YAML file of a run");
      for (const auto& item : from) {
        const auto key_mark = item.first.Mark();
        const std::string at = location(name, key_mark.line + 1, key_mark.column + 1);
        require<ConfigError>(item.first.IsScalar(), at, ": a key must be a plain word");
        const std::string key = item.first.Scalar();
        require<ConfigError>(to.find(key) == nullptr, at, ": key '", shortened(key),
                             "' is given twice; keep one of them");
        auto value = convert(item.second, at, depth + 1);
        value.key_where = at;
        to.items.emplace_back(key, std::move(value));
      }
    }
    return to;
  }
};

/// Refuses a second document that is not empty. A document begins where the one before did if the parser cannot pass
/// what stands there, such as a comma, which it would take for documents without end.
class OneDocument final : public YAML::EventHandler {
 public:
  explicit OneDocument(const std::string& name) : name_(name) {}
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1 && mark.pos == begin_.pos) throw YAML::ParserException(mark, "a value was expected");
    begin_ = mark;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { value(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string&) override {
    value(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    value(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    value(mark);
  }
  void OnMapEnd() override {}

 private:
  void value(const YAML::Mark& mark) const {
    require<ConfigError>(documents_ < 2, location(name_, mark.line + 1, mark.column + 1),
                         ": here begins a second YAML document, of which a config has one; remove it");
  }

  const std::string& name_;
  YAML::Mark begin_;
  int documents_ = 0;
};

void check_documents(const std::string& text, const std::string& name) {
  std::istringstream in(text);
  YAML::Parser parser(in);
  OneDocument one(name);
  while (parser.HandleNextDocument(one)) {
  }
}

/// Refuses a tab in the indentation of the line in which a parser stopped, or of the last one before it that has one.
void check_indentation(const std::string& text, const std::string& name, int last_line) {
  std::istringstream lines(text);
  int line = 0, bad_line = 0, column = 0;
  for (std::string one; line < last_line && std::getline(lines, one);) {
    ++line;
    const auto tab = one.substr(0, one.find_first_not_of(" \t")).find('\t');
    if (tab == std::string::npos) continue;
    bad_line = line;
    column = static_cast<int>(tab) + 1;
  }
  require<ConfigError>(bad_line == 0, location(name, bad_line, column),
                       ": a tab indents this line, and YAML is indented by spaces; replace it by spaces");
}

}  // namespace

ConfigNode parse_config(const std::string& text, const std::string& name) {
  check_text(text, name);
  try {
    check_documents(text, name);
    return Converter{name}.convert(YAML::Load(text), location(name, 1, 1), 0);
  } catch (const YAML::Exception& e) {
    check_indentation(text, name, e.mark.line + 1);
    fail<ConfigError>(location(name, e.mark.line + 1, e.mark.column + 1), ": not valid YAML: ", e.msg);
  }
}

}  // namespace cloze
