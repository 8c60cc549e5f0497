#include "data/reading/columns.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "core/error.h"
#include "core/process.h"
#include "data/reading/line_reader.h"

namespace cloze {

namespace fs = std::filesystem;

namespace {

using OpenColumn = std::unique_ptr<ColumnReader> (*)(const ColumnSource&);

/// Whether a file begins as Parquet, and not as a text whose first word is its mark.
bool begins_as_parquet(std::string_view begin) {
  return begin.starts_with("PAR1") && begin.size() > 4 && static_cast<unsigned char>(begin[4]) < ' ';
}

[[noreturn]] void fail_without_module(const ColumnSource& source) {
  const bool is_parquet = source.format == TextFormat::parquet;
  fail<DataError>(source.file, is_parquet ? ": is a Parquet table" : ": is an Arrow table",
                  ", and this Cloze was built without Arrow, which reads it; build it with ./add-arrow, or write its "
                  "text as JSON lines (",
                  is_parquet ? "pandas: to_json with orient='records', lines=True)"
                             : "datasets: load_from_disk(FOLDER).to_json(FILE))");
}

/// The module, next to the program; it stays loaded.
OpenColumn loaded_module(const ColumnSource& source) {
  std::error_code ignored;
  const auto path = (fs::path(program_path()).parent_path() / "libcloze_arrow.so").string();
  if (!fs::exists(path, ignored)) fail_without_module(source);
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(module != nullptr, path, ": cannot be loaded (", module ? "" : dlerror(),
          "); build it again with ./add-arrow");
  auto* open = reinterpret_cast<OpenColumn>(dlsym(module, "cloze_open_column"));
  require(open != nullptr, path, ": is not the module of this program; build it again with ./add-arrow");
  return open;
}

/// Throws NotText for a file of another kind by its first bytes.
void refuse_other_kind(const std::string& file) {
  std::string_view line;
  LineReader(file).next(line);
}

}  // namespace

std::optional<TextFormat> table_format_of(const std::string& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;
  std::array<char, 8> block{};
  std::ifstream in(file, std::ios::binary);
  in.read(block.data(), block.size());
  const std::string_view begin(block.data(), static_cast<size_t>(in.gcount()));
  if (begins_as_parquet(begin)) return TextFormat::parquet;
  const bool is_arrow = begin.starts_with("\xFF\xFF\xFF\xFF") || begin.starts_with(std::string_view("ARROW1\0\0", 8));
  return is_arrow ? std::optional(TextFormat::arrow) : std::nullopt;
}

std::unique_ptr<ColumnReader> open_column(const ColumnSource& source) {
  if (!table_format_of(source.file)) refuse_other_kind(source.file);
  static OpenColumn open = nullptr;
  if (!open) open = loaded_module(source);
  return open(source);
}

}  // namespace cloze
