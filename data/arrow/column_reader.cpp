// The module of Arrow: reads a column of a table, which may be a part of structs and lists.
#include <arrow/api.h>
#include <arrow/io/file.h>
#include <arrow/ipc/reader.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/schema.h>
#include <parquet/file_reader.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "core/error.h"
#include "data/reading/columns.h"

namespace cloze {

namespace {

using arrow::Type;
using Batch = std::shared_ptr<arrow::RecordBatch>;

constexpr int64_t rows_at_once = 256;  // of Parquet; those of Arrow are a matter of the file
constexpr uint64_t most_of_row = uint64_t{256} << 20;
constexpr int64_t most_gigabytes = 4;  // that a part of a file, however small, may unpack to

/// The memory of all files. It is never destroyed: threads of Arrow let go of a file after who read it.
arrow::MemoryPool& memory() {
  static auto* pool = new arrow::CappedMemoryPool(arrow::system_memory_pool(), most_gigabytes << 30);
  return *pool;
}

/// A path of names with dots between them.
struct Path {
  std::string_view first, rest;
};
Path divided(std::string_view path) {
  const size_t end = std::min(path.find('.'), path.size());
  return {path.substr(0, end), path.substr(std::min(end + 1, path.size()))};
}

bool is_list(const arrow::DataType& type) { return type.id() == Type::LIST || type.id() == Type::LARGE_LIST; }
bool is_text(const arrow::DataType& type) { return type.id() == Type::STRING || type.id() == Type::LARGE_STRING; }

/// The type at the end of a path in a type, through lists and dictionaries; null for no such path.
const arrow::DataType* type_at(const arrow::DataType& type, std::string_view path) {
  if (is_list(type)) return type_at(*type.field(0)->type(), path);
  if (type.id() == Type::DICTIONARY)
    return type_at(*static_cast<const arrow::DictionaryType&>(type).value_type(), path);
  if (path.empty()) return &type;
  if (type.id() != Type::STRUCT) return nullptr;
  const auto [first, rest] = divided(path);
  const auto inner = static_cast<const arrow::StructType&>(type).GetFieldByName(std::string(first));
  return inner ? type_at(*inner->type(), rest) : nullptr;
}

/// Appends the paths to texts in a type.
void collect_text_paths(const arrow::DataType& type, const std::string& path, std::vector<std::string>& paths) {
  if (is_list(type)) return collect_text_paths(*type.field(0)->type(), path, paths);
  const auto* end = type_at(type, "");
  if (is_text(*end)) paths.push_back(path);
  if (end->id() != Type::STRUCT) return;
  for (const auto& inner : end->fields()) collect_text_paths(*inner->type(), path + "." + inner->name(), paths);
}

/// How a table gets a text: its columns that have one.
std::string remedy_of_table(const arrow::Schema& schema) {
  constexpr size_t most = 12, longest = 60;
  std::vector<std::string> paths;
  for (const auto& field : schema.fields()) collect_text_paths(*field->type(), field->name(), paths);
  if (paths.empty()) return "; it has no column of text";
  std::string list;
  for (size_t i = 0; i < std::min(paths.size(), most); ++i) list += (i > 0 ? ", " : "") + paths[i].substr(0, longest);
  return concat("; name the column of its text with --field: ", list, paths.size() > most ? ", ..." : "");
}

/// A column of the table, and the path in it.
struct ColumnPath {
  int column;
  std::string path;
};

/// Where a column is: by its whole name, else by the first name of its path. Throws DataError if there is none of text.
ColumnPath path_of_column(const ColumnSource& source, const arrow::Schema& schema) {
  const auto find = [&](std::string_view name) { return schema.GetFieldIndex(std::string(name)); };
  const auto [first, rest] = divided(source.column);
  const int column = find(source.column);
  const ColumnPath at = column >= 0 ? ColumnPath{column, ""} : ColumnPath{find(first), std::string(rest)};
  const auto* type = at.column >= 0 ? type_at(*schema.field(at.column)->type(), at.path) : nullptr;
  require<DataError>(type != nullptr, source.file, ": has no column '", source.column, "'", remedy_of_table(schema));
  require<DataError>(is_text(*type), source.file, ": its column '", source.column, "' is ", type->ToString(),
                     ", not text", remedy_of_table(schema));
  return at;
}

[[noreturn]] void fail_damaged(const ColumnSource& source, const std::string& reason) {
  constexpr size_t longest = 200;
  const auto line = reason.substr(0, std::min(reason.find('\n'), longest));
  fail<DataError>(source.file, ": is a damaged ", source.format == TextFormat::parquet ? "Parquet" : "Arrow",
                  " table (", line, "); get or write it again");
}

/// The texts of rows, whose offsets are looked at before they are followed.
class RowTexts {
 public:
  RowTexts(const ColumnSource& source, ColumnRow& row) : source_(source), row_(row) {}

  void add(const arrow::Array& array, int64_t at, std::string_view path) {
    require_within(at, at + 1, array.length());
    if (array.IsNull(at)) {
      row_.has_null = true;
      return;
    }
    switch (array.type_id()) {
      case Type::STRING:
        return add_text(static_cast<const arrow::StringArray&>(array), at);
      case Type::LARGE_STRING:
        return add_text(static_cast<const arrow::LargeStringArray&>(array), at);
      case Type::LIST:
        return add_elements(static_cast<const arrow::ListArray&>(array), at, path);
      case Type::LARGE_LIST:
        return add_elements(static_cast<const arrow::LargeListArray&>(array), at, path);
      case Type::DICTIONARY: {
        const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
        return add(*coded.dictionary(), coded.GetValueIndex(at), path);
      }
      case Type::STRUCT: {
        const auto [first, rest] = divided(path);
        const auto& fields = static_cast<const arrow::StructArray&>(array);
        return add(*fields.GetFieldByName(std::string(first)), at, rest);
      }
      default:  // path_of_column has found a text at the end of the path
        return;
    }
  }

 private:
  void require_within(int64_t begin, int64_t end, int64_t size) const {
    if (begin < 0 || end < begin || end > size) fail_damaged(source_, "an offset is outside of its values");
  }

  template <class Strings>
  void add_text(const Strings& strings, int64_t at) {
    const int64_t begin = strings.value_offset(at), end = strings.value_offset(at + 1);
    const auto& bytes = strings.value_data();
    require_within(begin, end, bytes ? bytes->size() : 0);
    row_bytes_ += static_cast<uint64_t>(end - begin) + sizeof(std::string);  // an entry of a dictionary may be repeated
    require<DataError>(row_bytes_ <= most_of_row, source_.file, ": a row of it has more than ", most_of_row >> 20,
                       " MiB of text; write it as several rows");
    const auto* data = bytes ? reinterpret_cast<const char*>(bytes->data()) : "";
    row_.texts.emplace_back(data + begin, static_cast<size_t>(end - begin));
  }

  template <class Lists>
  void add_elements(const Lists& lists, int64_t at, std::string_view path) {
    const int64_t begin = lists.value_offset(at), end = lists.value_offset(at + 1);
    require_within(begin, end, lists.values()->length());
    for (int64_t i = begin; i < end; ++i) add(*lists.values(), i, path);
  }

  const ColumnSource& source_;
  ColumnRow& row_;
  uint64_t row_bytes_ = 0;
};

/// Batches of rows with the column that is wanted.
class TableColumn final : public ColumnReader {
 public:
  explicit TableColumn(const ColumnSource& source) : source_(source) {
    file_ = value(arrow::io::ReadableFile::Open(source_.file, &memory()));
    if (source_.format == TextFormat::parquet)
      open_parquet();
    else
      open_arrow();
  }

  bool next(ColumnRow& row) override {
    row.texts.clear();
    row.has_null = false;
    while (!column_ || at_ == column_->length())
      if (!next_batch()) return false;
    RowTexts(source_, row).add(*column_, at_++, wanted_.path);
    return true;
  }

 private:
  template <class T>
  T value(arrow::Result<T> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }
  void check(const arrow::Status& status) const {
    require<DataError>(!status.IsOutOfMemory(), source_.file, ": a part of it takes more than ", most_gigabytes,
                       " GB of memory; write it in parts of fewer rows");
    if (!status.ok()) fail_damaged(source_, status.message());
  }

  bool next_batch() {
    const auto batch = value(read_());
    if (!batch) return false;
    if (wanted_.column >= batch->num_columns()) fail_damaged(source_, "its column is missing from some rows");
    column_ = batch->column(wanted_.column);
    check(column_->Validate());  // the sizes of its buffers; offsets are checked where they are followed
    at_ = 0;
    return true;
  }

  void open_arrow() {
    auto options = arrow::ipc::IpcReadOptions::Defaults();
    options.memory_pool = &memory();
    options.use_threads = false;
    constexpr std::string_view mark_of_file = "ARROW1";  // others are streams
    const auto begin = value(file_->ReadAt(0, static_cast<int64_t>(mark_of_file.size())));
    if (std::string_view(*begin) == mark_of_file) {
      const auto reader = value(arrow::ipc::RecordBatchFileReader::Open(file_, options));
      wanted_ = path_of_column(source_, *reader->schema());
      read_ = [reader, i = 0]() mutable -> arrow::Result<Batch> {
        return i < reader->num_record_batches() ? reader->ReadRecordBatch(i++) : arrow::Result<Batch>(nullptr);
      };
      return;
    }
    check(file_->Seek(0));
    const auto reader = value(arrow::ipc::RecordBatchStreamReader::Open(file_, options));
    wanted_ = path_of_column(source_, *reader->schema());
    read_ = [reader] { return reader->Next(); };
  }

  void open_parquet() {
    parquet::ReaderProperties properties(&memory());
    properties.enable_buffered_stream();
    parquet::ArrowReaderProperties batches(/*use_threads=*/false);
    batches.set_batch_size(rows_at_once);
    batches.set_pre_buffer(false);
    parquet::arrow::FileReaderBuilder builder;
    check(builder.Open(file_, properties));
    builder.memory_pool(&memory());
    builder.properties(batches);
    check(builder.Build(&parquet_));
    std::shared_ptr<arrow::Schema> schema;
    check(parquet_->GetSchema(&schema));
    wanted_ = path_of_column(source_, *schema);
    const auto& columns = *parquet_->parquet_reader()->metadata()->schema();
    std::vector<int> groups(static_cast<size_t>(parquet_->num_row_groups())), parts;
    std::iota(groups.begin(), groups.end(), 0);
    for (int part = 0; part < columns.num_columns(); ++part)
      if (columns.group_node()->FieldIndex(*columns.GetColumnRoot(part)) == wanted_.column) parts.push_back(part);
    wanted_.column = 0;  // the others are not read
    const std::shared_ptr<arrow::RecordBatchReader> reader = value(parquet_->GetRecordBatchReader(groups, parts));
    read_ = [reader] { return reader->Next(); };
  }

  ColumnSource source_;
  std::shared_ptr<arrow::io::ReadableFile> file_;
  std::unique_ptr<parquet::arrow::FileReader> parquet_;
  std::function<arrow::Result<Batch>()> read_;
  ColumnPath wanted_{};
  std::shared_ptr<arrow::Array> column_;
  int64_t at_ = 0;  // row of `column_`
};

/// A column whose errors are those of Cloze, whatever Arrow throws.
class CheckedColumn final : public ColumnReader {
 public:
  explicit CheckedColumn(const ColumnSource& source) : source_(source) {
    guarded([&] {
      column_ = std::make_unique<TableColumn>(source);
      return true;
    });
  }
  bool next(ColumnRow& row) override {
    return guarded([&] { return column_->next(row); });
  }

 private:
  template <class F>
  bool guarded(const F& f) try {
    return f();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& fault) {
    fail_damaged(source_, fault.what());
  }

  ColumnSource source_;
  std::unique_ptr<TableColumn> column_;
};

}  // namespace

/// The entry of the module.
extern "C" __attribute__((visibility("default"))) std::unique_ptr<ColumnReader> cloze_open_column(
    const ColumnSource& source) {
  return std::make_unique<CheckedColumn>(source);
}

}  // namespace cloze
