// Tables of Arrow and Parquet (tests/data/columns), and folders of `datasets`.
#include "data/reading/columns.h"

#include <filesystem>

#include "core/error.h"
#include "core/random.h"
#include "data/prepare/prepare.h"
#include "data/reading/table_reader.h"
#include "tests/support/catch.h"
#include "tests/support/documents.h"
#include "tests/support/logged.h"
#include "tests/support/temp_dir.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

const std::string tables = SOURCE_DIR "/tests/data/columns/";

/// A folder as save_to_disk makes it, of a split with two files of this content.
std::string make_dataset(const TempDir& dir, const std::string& name, const std::string& content) {
  dir.write(name + "/data-00000-of-00002.arrow", content);
  dir.write(name + "/data-00001-of-00002.arrow", content);
  dir.write(name + "/data-00000-of-00001.arrow", "of an earlier save");
  dir.write(name + "/dataset_info.json", "{\n  \"features\": {}\n}");
  dir.write(name + "/state.json",
            "{\n  \"_data_files\": [{\"filename\": \"data-00000-of-00002.arrow\"}, {\"filename\": "
            "\"data-00001-of-00002.arrow\"}],\n  \"_split\": null\n}");
  return dir / name;
}

}  // namespace

TEST_CASE("a folder of datasets stands for the tables that its state.json names, and its descriptions are no text",
          "[data][reader]") {
  TempDir dir;
  const auto split = make_dataset(dir, "in/both/train", "x");
  dir.write("in/both/dataset_dict.json", "{\"splits\": [\"train\"]}");
  dir.write("in/more/cached.txt", "text\n");
  dir.write("in/more/dataset_info.json", "{}");
  const std::vector<std::string> of_split = {split + "/data-00000-of-00002.arrow",
                                             split + "/data-00001-of-00002.arrow"};
  CHECK(expand_inputs({split}) == of_split);
  std::vector<std::string> all;
  const auto log = logged(dir, [&] { all = expand_inputs({dir / "in"}); });
  CHECK(all == std::vector<std::string>{of_split[0], of_split[1], dir / "in/more/cached.txt"});
  CHECK_THAT(log, Catch::Contains(dir / "in/both" + ": the splits of this folder of datasets are read as one text"));
  CHECK(is_dataset(split));
  CHECK_FALSE(is_dataset(dir / "in/more"));
}

TEST_CASE("a folder of datasets that lacks a table, or names one elsewhere, is refused", "[data][reader]") {
  TempDir dir;
  const auto split = make_dataset(dir, "split", "x");
  fs::remove(split + "/data-00001-of-00002.arrow");
  CHECK_THROWS_WITH(expand_inputs({split}), Catch::Contains("data-00001-of-00002.arrow: is missing"));
  for (const std::string name : {"../secret", "/etc/passwd", "..", ""}) {
    dir.write("split/state.json", "{\"_data_files\": [{\"filename\": \"" + name + "\"}]}");
    CHECK_THROWS_WITH(expand_inputs({split}), Catch::Contains("names the file '" + name + "'"));
  }
  dir.write("split/state.json", "{\"_data_files\": [], \"_indices_data_files\": [{\"filename\": \"i.arrow\"}]}");
  CHECK_THROWS_WITH(expand_inputs({split}), Catch::Contains("save it again with its save_to_disk"));
}

#ifdef CLOZE_ARROW

namespace {

using Documents = std::vector<std::vector<std::string>>;

Documents column(const std::string& file, const std::string& field) {
  return read_all({.inputs = {file}, .field = field});
}

}  // namespace

TEST_CASE("columns of text, large text, lists, dictionaries and parts of structs are read from Arrow and Parquet",
          "[data][reader][arrow]") {
  for (const auto* name : {"all.parquet", "all.arrow", "file.arrow"}) {
    INFO(name);
    const auto file = tables + name;
    CHECK(column(file, "text") == Documents{{"One.", "Two."}, {"Drei \u00fc."}});
    CHECK(column(file, "large") == Documents{{"L0"}, {"L1"}, {"L2"}, {"L3"}});
    CHECK(column(file, "list") == Documents{{"a", "b"}, {"c"}});
    CHECK(column(file, "word") == Documents{{"w"}, {"w"}, {"v"}});
    CHECK(column(file, "article.title") == Documents{{"T0"}, {"T1"}});
    CHECK(column(file, "article.sections.text") == Documents{{"S0", "S1"}, {"S3"}});
    CHECK(column(file, "key.with.dots") == Documents{{"d0"}, {"d1"}, {"d2"}, {"d3"}});
  }
}

TEST_CASE("rows without a text are counted, and the first is named", "[data][reader][arrow]") {
  for (const auto* name : {"all.parquet", "all.arrow", "file.arrow"}) {
    const auto file = tables + name;
    DocumentReader reader({.inputs = {file}});
    for (RawDocument document; reader.next(document);) continue;
    CHECK(reader.null_rows() == 1);
    CHECK(reader.first_null().file == file);
    CHECK(reader.first_null().number == 2);
  }
  TempDir dir;
  PrepareOptions options;
  options.inputs = {tables + "all.parquet"};
  options.train_kind = TokenizerKind::byte_bpe;
  options.vocab_size = 300;
  options.out = dir / "tokens";
  const auto log = logged(dir, [&] { CHECK(prepare(options).null_rows == 1); });
  CHECK_THAT(log,
             Catch::Contains("1 row of a table has no text but null, in " + tables + "all.parquet:2, and is left"));
}

TEST_CASE("a column that is missing or no text is refused by its type, with those that are", "[data][reader][arrow]") {
  const std::string texts =
      "; name the column of its text with --field: text, large, list, word, article.title, "
      "article.sections.heading, article.sections.text, key.with.dots";
  for (const auto* name : {"all.parquet", "all.arrow"}) {
    const auto file = tables + name;
    CHECK_THROWS_WITH(column(file, "id"), file + ": its column 'id' is int64, not text" + texts);
    CHECK_THROWS_WITH(column(file, "bytes"), file + ": its column 'bytes' is binary, not text" + texts);
    CHECK_THROWS_WITH(column(file, "article"), Catch::Contains(": its column 'article' is struct<"));
    for (const auto* none : {"words", "article.name", "text.part"})
      CHECK_THROWS_WITH(column(file, none), file + ": has no column '" + none + "'" + texts);
  }
}

TEST_CASE("bytes of a table that are not UTF-8 are replaced and counted, or refused with their row",
          "[data][reader][arrow]") {
  const auto file = tables + "invalid_utf8.parquet";
  DocumentReader reader({.inputs = {file}});
  for (RawDocument document; reader.next(document);) continue;
  CHECK(reader.invalid_utf8() == 1);
  CHECK(reader.first_invalid().number == 2);
  CHECK_THROWS_WITH(read_all({.inputs = {file}, .refuse_invalid_utf8 = true}), Catch::Contains(file + ":2: byte 2"));
}

TEST_CASE("a folder of datasets is read by column", "[data][reader][arrow]") {
  TempDir dir;
  const auto split = make_dataset(dir, "split", read_file(tables + "all.arrow"));
  CHECK(column(split, "word") == Documents{{"w"}, {"w"}, {"v"}, {"w"}, {"w"}, {"v"}});
}

TEST_CASE("a damaged table is refused with its name, and never read beyond its bytes", "[data][reader][arrow]") {
  CHECK_THROWS_WITH(column(tables + "wild_offset.arrow", "text"),
                    Catch::Contains("wild_offset.arrow: is a damaged Arrow table (an offset is outside"));
  TempDir dir;
  auto stream = Rng(3).stream("damage");
  for (const auto* name : {"all.parquet", "all.arrow", "file.arrow"}) {
    const auto whole = read_file(tables + name);
    int refused = 0;
    for (int k = 0; k < 300; ++k) {
      auto content = whole;
      for (int flips = 0; flips < 3; ++flips)
        content[8 + stream.below(content.size() - 8)] = static_cast<char>(stream.below(256));
      if (k % 4 == 0) content.resize(8 + stream.below(content.size() - 8));
      const auto file = dir.write(name, content);
      for (const auto* field : {"text", "list", "word", "article.sections.text"}) try {
          column(file, field);
        } catch (const DataError& refusal) {
          ++refused;
          CHECK_THAT(refusal.what(), Catch::Contains(file));
        }
    }
    CHECK(refused > 200);
  }
}

TEST_CASE("tables of Arrow and Parquet in a folder are named by their kind, and read beside text",
          "[data][prepare][arrow]") {
  TempDir dir;
  dir.write("in/a.txt", "A document of its own.\n\nAnd another one.\n");
  dir.write("in/b.parquet", read_file(tables + "all.parquet"));
  make_dataset(dir, "in/c", read_file(tables + "all.arrow"));
  dir.write("in/d.parquet", read_file(tables + "all.parquet").substr(0, 600));
  PrepareOptions options;
  options.inputs = {dir / "in"};
  options.field = "large";
  options.train_kind = TokenizerKind::byte_bpe;
  options.vocab_size = 300;
  options.out = dir / "tokens";
  CHECK_THROWS_WITH(prepare(options), Catch::Contains("d.parquet: is a damaged Parquet table"));
  options.skip_unreadable = true;
  PrepareReport report;
  const auto log = logged(dir, [&] { report = prepare(options); });
  CHECK(report.documents + report.valid_documents == 2 + 4 + 8);
  CHECK_THAT(log, Catch::Contains("5 files: 2 Arrow, 2 Parquet, 1 text"));
  CHECK_THAT(log, Catch::Contains("1 of 5 files left out (1 Parquet)"));
}

#endif
