// Text from elsewhere, plain and compressed, in every format.
#include "data/reading/byte_source.h"
#include "data/reading/reader.h"
#include "tests/fuzz/targets.h"

namespace cloze {

namespace {

bool reads(const ReaderOptions& options) {
  return accepts([&] {
    DocumentReader reader(options);
    RawDocument document;
    while (reader.next(document))
      for (const auto& line : document.lines)
        if (line.find('\0') != std::string::npos) throw std::logic_error("a NUL in a text");
  });
}

/// Unpacks at most 64 MB: a few bytes can stand for gigabytes.
bool unpacks(const std::string& path) {
  return accepts([&] {
    const auto source = open_bytes(path);
    std::vector<char> block(1 << 16);
    size_t total = 0;
    for (size_t n = 0; total < (64 << 20) && (n = source->read(block.data(), block.size())) > 0;) total += n;
  });
}

}  // namespace

bool fuzz_text(std::string_view bytes) {
  const auto file = scratch().write("text.txt", std::string(bytes)),
             other = scratch().write("other.txt", "one\ntwo\nthree\n");
  bool any = false;
  for (const auto format :
       {TextFormat::automatic, TextFormat::text, TextFormat::lines, TextFormat::jsonl, TextFormat::wiki})
    any = reads({.inputs = {file}, .format = format}) || any;
  any = reads({.inputs = {file}, .format = TextFormat::pairs}) || any;
  any = reads({.inputs = {file}, .targets = {other}, .format = TextFormat::pairs}) || any;
  return reads({.inputs = {file}, .format = TextFormat::pairs, .columns = "source,target"}) || any;
}

bool fuzz_gz(std::string_view bytes) { return unpacks(scratch().write("text.gz", std::string(bytes))); }

bool fuzz_xz(std::string_view bytes) { return unpacks(scratch().write("text.xz", std::string(bytes))); }

}  // namespace cloze
