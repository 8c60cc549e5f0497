#pragma once
// Folders of the Python library `datasets`, as its save_to_disk makes them.
#include <optional>
#include <string>
#include <vector>

namespace cloze {

/// The files of a split in the order of its rows, which its state.json names; nullopt for a folder that is none.
/// Source: datasets 4.0, arrow_dataset.py, Dataset.save_to_disk.
/// Throws DataError for one that lacks a file, and for one that is a selection from its files, as versions before 2
/// made them.
std::optional<std::vector<std::string>> files_of_dataset(const std::string& folder);

/// Whether a file describes a dataset, and holds none of its text: `dataset_info.json`, `dataset_dict.json`.
bool describes_dataset(const std::string& name);

/// Whether the state.json of a folder is that of a dataset.
bool is_dataset(const std::string& folder);

}  // namespace cloze
