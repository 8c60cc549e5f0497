#include "run/config_io.h"

#include "models/families/families.h"
#include "objectives/kinds.h"

namespace cloze {

template RunConfig decode<RunConfig>(const ConfigTree&);
template std::vector<config_detail::Entry> entries<RunConfig>(RunConfig);
template std::string to_yaml<RunConfig>(const RunConfig&);
template std::string document<RunConfig>(const RunConfig&);
template std::string explain<RunConfig>(const ConfigTree&, const std::string&);
template std::vector<std::string> deviations<RunConfig>(RunConfig);

}  // namespace cloze
