#pragma once
// The sources of a text, by which held-out losses are told apart: what the user named as its inputs.
#include <map>
#include <string>
#include <vector>

#include "data/reading/spool.h"

namespace cloze {

/// The files of inputs in order, each with the input by which it was found first.
struct FoundFiles {
  std::vector<std::string> files{};
  std::map<std::string, std::string> input_of{};
};
/// Throws as expand_inputs.
FoundFiles find_files(const std::vector<std::string>& inputs, const std::vector<std::string>& own = {});

/// The name of the source of each file: its input without the folders that all inputs share. A single input, a folder
/// or a glob, is taken apart where the paths of its files first differ. Empty for files of one source.
std::map<std::string, std::string> name_sources(const FoundFiles& files);

/// Gives the copies of streams the names of these.
void name_copies(const std::map<std::string, Spooled>& copies, std::map<std::string, std::string>& sources);

/// The names of sources without repetition, in the order of these files.
std::vector<std::string> names_in_order(const std::vector<std::string>& files,
                                        const std::map<std::string, std::string>& sources);

}  // namespace cloze
