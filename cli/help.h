#pragma once
// Help that fits a terminal of 80 columns.
#include <CLI/CLI.hpp>
#include <string>

namespace cloze {

/// CLI11's help with descriptions wrapped at 80 columns. CLI11 2.1 does not wrap them itself.
class WrappedHelp : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override;
  std::string make_subcommand(const CLI::App* verb) const override;
};

}  // namespace cloze
