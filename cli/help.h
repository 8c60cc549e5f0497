#pragma once
// Help that fits a terminal of 80 columns.
#include <CLI/CLI.hpp>
#include <string>

namespace cloze {

/// CLI11's help with descriptions wrapped at 80 columns, which CLI11 2.1 does not do itself, and with the options of
/// every verb in the help of each. Subcommands are called verbs.
class WrappedHelp : public CLI::Formatter {
 public:
  WrappedHelp();
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
  std::string make_subcommands(const CLI::App* verb, CLI::AppFormatMode mode) const override;
};

}  // namespace cloze
