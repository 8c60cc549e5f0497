#pragma once
// Open files and the paths that they were opened by.
#include <cstdio>
#include <string>

namespace cloze {

/// Whether a path still names the open file, which another process may have removed or replaced.
bool is_file_at(int file, const std::string& path);

/// Whether a path, not what it may link to, belongs to this user. In a folder of all users, such as that for temporary
/// files, others make what they like.
bool is_of_this_user(const std::string& path);

/// Throws Error for a path that is neither absent nor a file of its own: a link, through which another file would be
/// changed, a device or a pipe.
void require_own_file(const std::string& path);

/// Opens a file that is written in place, by the flags of open(2); it is made where none is there. A file that has
/// another name as well, a hard link, is written as a copy of its own. -1 on an error (errno). Throws Error as
/// `require_own_file`.
int open_own(const std::string& path, int flags, unsigned mode = 0666);

/// Opens a file to be read; a pipe without waiting for who writes to it. -1 on an error (errno).
int open_to_read(const std::string& path);

/// `open_own` as a stream, by the modes `wb`, `w+b` and `ab` of fopen(3); null on an error (errno).
std::FILE* open_own(const std::string& path, const char* mode);

}  // namespace cloze
