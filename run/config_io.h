#pragma once
// The templates of core/config.h for a whole run, which are compiled once, in run/config_io.cpp.
#include "core/config.h"
#include "run/config.h"

namespace cloze {

extern template RunConfig decode<RunConfig>(const ConfigTree&);
extern template std::vector<config_detail::Entry> entries<RunConfig>(RunConfig);
extern template std::string to_yaml<RunConfig>(const RunConfig&);
extern template std::string document<RunConfig>(const RunConfig&);
extern template std::string explain<RunConfig>(const ConfigTree&, const std::string&);
extern template std::vector<std::string> deviations<RunConfig>(RunConfig);

}  // namespace cloze
