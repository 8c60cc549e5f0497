#pragma once
// Help that fits a terminal of 80 columns.
#include <CLI/CLI.hpp>
#include <string>

namespace cloze {

/// CLI11's help with descriptions wrapped at 80 columns, which CLI11 2.1 does not do itself, and with the options of
/// every verb in the help of each. Subcommands are called verbs. Of a verb with very many options the groups are parts,
/// each of which is shown where it is asked for.
class WrappedHelp : public CLI::Formatter {
 public:
  /// `part`: a group by its name in lower case, with - for a space, or `all`; for others the names of each group.
  explicit WrappedHelp(std::string part);
  std::string make_help(const CLI::App* verb, std::string name, CLI::AppFormatMode mode) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_subcommands(const CLI::App* verb, CLI::AppFormatMode mode) const override;

 private:
  std::string make_first_part(const CLI::App& verb) const;
  std::string part_;
};

}  // namespace cloze
