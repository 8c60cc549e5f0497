#pragma once
// Files that Git LFS has put in place of others.
#include <string>
#include <string_view>

namespace cloze {

/// What such a file begins with. Source: git-lfs, docs/spec.md.
constexpr std::string_view lfs_pointer = "version https://git-lfs.github.com/spec/";

/// Throws DataError for such a file.
void require_no_pointer(const std::string& file);

}  // namespace cloze
