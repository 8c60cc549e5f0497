// Configs and overrides of a user.
#include "core/config/config.h"
#include "run/config/config.h"
#include "run/config/load_config.h"
#include "tests/fuzz/targets.h"

namespace cloze {

bool fuzz_config(std::string_view bytes) {
  return accepts([&] {
    const auto config = decode<RunConfig>(ConfigTree::parse(std::string(bytes), "config.yaml"));
    const auto again = to_yaml(config);
    if (to_yaml(decode<RunConfig>(ConfigTree::parse(again, "again.yaml"))) != again)
      throw std::logic_error("a config that is another one when it is read again");
  });
}

bool fuzz_override(std::string_view bytes) {
  return accepts([&] {
    decode<RunConfig>(ConfigTree::parse("objectives:\n  - kind: mlm\n", "config.yaml", {std::string(bytes)}));
  });
}

}  // namespace cloze
