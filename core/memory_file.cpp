#include "core/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "core/file.h"

namespace cloze {

MemoryFile::MemoryFile(const std::string& text) : descriptor_(memfd_create("cloze", MFD_CLOEXEC)) {
  require<Error>(descriptor_ >= 0, "no memory for what another program reads or prints (", system_reason(), ")");
  size_t written = 0;
  for (ssize_t n = 1; n > 0 && written < text.size(); written += static_cast<size_t>(n > 0 ? n : 0))
    n = write(descriptor_, text.data() + written, text.size() - written);
  if (written == text.size() && lseek(descriptor_, 0, SEEK_SET) == 0) return;
  const auto reason = system_reason();
  close(descriptor_);
  fail("no memory for what another program reads (", reason, ")");
}

MemoryFile::~MemoryFile() { close(descriptor_); }

std::string MemoryFile::text() const {
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = pread(descriptor_, buffer, sizeof buffer, static_cast<off_t>(all.size()))) > 0;)
    all.append(buffer, static_cast<size_t>(n));
  return all;
}

}  // namespace cloze
