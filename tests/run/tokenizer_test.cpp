// The tokenizer of a run is the one that it was trained with.
#include "run/run.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "data/store/token_store.h"
#include "run/folder.h"
#include "run/records/provenance.h"
#include "run/run_tokenizer.h"
#include "tests/support/logged.h"
#include "tests/support/runs.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

nlohmann::json provenance_of(const std::string& run) {
  return nlohmann::json::parse(read_file(run + "/provenance.json"));
}

/// The synthetic text in tokens of a WordPiece vocabulary of `words` words, 16 of which it has; `backwards`: with other
/// ids.
std::string prepared(const TempDir& dir, const std::string& name, int words, bool backwards = false) {
  std::string vocabulary = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (int i = 0; i < words; ++i)
    vocabulary += std::string("w") + static_cast<char>('a' + (backwards ? words - 1 - i : i)) + "\n";
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", synthetic_text(60, 12))};
  options.tokenizer = dir.write(name + ".txt", vocabulary);
  options.out = dir / name;
  options.format = TextFormat::lines;
  options.held_out = 0.1;
  options.threads = 1;
  prepare(options);
  return options.out;
}

/// The same text in tokens of a unigram vocabulary, which is in another file.
std::string prepared_unigram(const TempDir& dir, const std::string& name) {
  PrepareOptions options;
  options.inputs = {dir.write("text.txt", synthetic_text(60, 12))};
  options.train_kind = TokenizerKind::unigram;
  options.vocab_size = 40;
  options.out = dir / name;
  options.format = TextFormat::lines;
  options.held_out = 0.1;
  options.threads = 1;
  prepare(options);
  return options.out;
}

}  // namespace

TEST_CASE("a run whose tokenizer has changed is neither verified nor opened", "[run][tokenizer]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  CHECK_NOTHROW(verify_run(dir / "run"));
  auto vocabulary = read_file(dir / "run/tokenizer/vocab.txt");
  const auto at = vocabulary.find("wa\nwb\n");
  REQUIRE(at != std::string::npos);
  vocabulary.replace(at, 6, "wb\nwa\n");
  dir.write("run/tokenizer/vocab.txt", vocabulary);
  const auto remedy = "; restore " + (dir / "run") + "/tokenizer, or resume the run with its tokens";
  const auto changed = Catch::Contains("run/tokenizer/vocab.txt: has changed since it was saved");
  CHECK_THROWS_WITH(verify_run(dir / "run"), changed && Catch::EndsWith(remedy));
  CHECK_THROWS_WITH(open_run(dir / "run"), changed && Catch::EndsWith(remedy));
  pretrain(tiny_run(dir, 2), {.run = dir / "run", .resume = true});
  CHECK_NOTHROW(verify_run(dir / "run"));
}

TEST_CASE("a run of an earlier version opens with a warning where its tokenizer is not the one of its provenance",
          "[run][tokenizer]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  const auto opened = [&] {
    const auto path = dir / "log.txt";
    fs::remove(path);
    set_log_file(path);
    verify_run(dir / "run");
    CHECK(open_run(dir / "run").has_tokenizer);
    set_log_file("");
    return read_file(path);
  };
  CHECK_THAT(opened(), !Catch::Contains("restore its tokenizer"));
  auto origin = provenance_of(dir / "run");
  origin.erase("tokenizer");  // earlier versions kept that of the first process only
  origin["data"]["tokenizer"] = "0123456789abcdef";
  dir.write("run/provenance.json", origin.dump());
  CHECK_THAT(opened(), Catch::Contains("provenance.json 0123456789abcdef; unless the run was resumed"));
  origin.erase("data");
  dir.write("run/provenance.json", origin.dump());
  CHECK_THAT(opened(), !Catch::Contains("restore its tokenizer"));
  CHECK_THAT(opened(), Catch::Contains("provenance.json does not say which one the run was trained with") &&
                           !Catch::Contains("recorded fingerprint"));
}

TEST_CASE("a run whose tokenizer is missing or without its facts is neither verified nor opened", "[run][tokenizer]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  const auto refused = [&](const std::string& why) {
    CHECK_THROWS_WITH(verify_run(dir / "run"), Catch::Contains(why));
    CHECK_THROWS_WITH(open_run(dir / "run"), Catch::Contains(why));
  };
  fs::remove(dir / "run/tokenizer/cloze_tokenizer.json");
  refused("run/tokenizer/cloze_tokenizer.json: is missing, and without it texts may have other ids");
  fs::remove_all(dir / "run/tokenizer");
  refused("run/tokenizer: is missing, and provenance.json records the tokenizer");
  const auto remedy = "; restore " + (dir / "run") + "/tokenizer, or resume the run with its tokens";
  refused(remedy);
  CHECK_THAT(no_tokenizer(dir / "run"), Catch::StartsWith("has no tokenizer") && Catch::EndsWith(remedy));
  pretrain(tiny_run(dir, 2), {.run = dir / "run", .resume = true});
  CHECK_NOTHROW(verify_run(dir / "run"));
}

TEST_CASE("an imported run without its tokenizer is to be imported again, until it is trained", "[run][tokenizer]") {
  TempDir dir;
  const auto run = dir / "run";
  const auto remedy = "; import it again with its tokenizer files";
  pretrain(tiny_run(dir, 2), {.run = run});
  const auto trained = provenance_of(run);
  dir.write("run/provenance.json", R"({"imported_from": "bert"})");
  fs::remove_all(dir / "run/tokenizer");
  const auto opened = open_run(run);
  CHECK_THROWS_WITH(require_tokenizer(opened),
                    Catch::StartsWith(run + ": has no tokenizer, so it cannot read text") && Catch::EndsWith(remedy));
  auto origin = trained;
  origin["imported_from"] = "bert";
  dir.write("run/provenance.json", origin.dump());
  CHECK_THROWS_WITH(open_run(run), Catch::EndsWith("or resume the run with its tokens"));
  origin.erase("data");
  dir.write("run/provenance.json", origin.dump());
  CHECK_THROWS_WITH(open_run(run), Catch::Contains("run/tokenizer: is missing") && Catch::EndsWith(remedy));
}

TEST_CASE("a run with the tokenizer of another run is neither verified nor opened", "[run][tokenizer]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  config.data.tokens = prepared(dir, "pieces", 16);
  pretrain(config, {.run = dir / "run"});
  for (const int more : {0, 4}) {
    INFO(more);
    const auto name = "other-" + std::to_string(more);
    const auto tokens = prepared(dir, name, 16 + more, /*backwards=*/true);
    fs::remove_all(dir / "run/tokenizer");
    fs::copy(tokens + "/tokenizer", dir / "run/tokenizer", fs::copy_options::recursive);
    const auto why = "so that it is another tokenizer than that of the run; restore " + dir / "run" + "/tokenizer";
    CHECK_THROWS_WITH(verify_run(dir / "run"), Catch::Contains(why));
    CHECK_THROWS_WITH(open_run(dir / "run"), Catch::Contains(why));
  }
  // One of more tokens than the model has is refused in a run that does not say which it had, too.
  fs::remove(dir / "run/provenance.json");
  CHECK_THROWS_WITH(open_run(dir / "run"), Catch::Contains("run/tokenizer: has 25 tokens, the model has 21"));
}

TEST_CASE("a run without its provenance.json opens with a warning, is not verified and does not go on",
          "[run][tokenizer]") {
  TempDir dir;
  const auto config = tiny_run(dir, 2);
  pretrain(config, {.run = dir / "run"});
  fs::remove(dir / "run/provenance.json");
  const std::string why =
      "run: provenance.json is missing, so nothing says that its tokenizer is the one it was trained with; restore it";
  CHECK_THROWS_WITH(verify_run(dir / "run"), Catch::EndsWith(why));
  CHECK_THAT(logged(dir, [&] { CHECK(open_run(dir / "run").has_tokenizer); }), Catch::Contains(why));
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run", .resume = true}),
                    Catch::Contains("run/provenance.json: is missing, so that the tokens of the run are not known; "
                                    "restore it, or start a new run from its weights") &&
                        Catch::EndsWith("--set init.from=" + dir / "run"));
}

TEST_CASE("a run that goes on with tokens of another tokenizer has that one alone, and records it",
          "[run][tokenizer][resume]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  as<BertConfig>(config.model)->vocab_size = 64;
  config.data.tokens = prepared(dir, "pieces", 16);
  pretrain(config, {.run = dir / "run"});
  const auto before = provenance_of(dir / "run");
  config.data.tokens = prepared_unigram(dir, "unigram");
  config.train.budget.steps = 4;
  CHECK_THROWS_WITH(pretrain(config, {.run = dir / "run", .resume = true}),
                    Catch::Contains("was trained on different tokens"));
  pretrain(config, {.run = dir / "run", .resume = true, .overwrite_config = true});
  CHECK_FALSE(fs::exists(dir / "run/tokenizer/vocab.txt"));
  CHECK_NOTHROW(verify_run(dir / "run"));
  CHECK(open_run(dir / "run").tokenizer.kind() == "unigram");
  const auto after = provenance_of(dir / "run");
  CHECK(after["earlier_data"] == nlohmann::json::array({before["data"]}));
  CHECK(after["data"]["since_step"] == 2);
  CHECK(after["tokenizer"] == Tokenizer::open(config.data.tokens + "/tokenizer").fingerprint());
  CHECK(after["command"] == before["command"]);
  config.train.budget.steps = 5;
  CHECK(pretrain(config, {.run = dir / "run", .resume = true}).steps == 5);  // they are its tokens now
  CHECK(provenance_of(dir / "run")["data"] == after["data"]);
  CHECK(provenance_of(dir / "run")["earlier_data"] == after["earlier_data"]);
  record_data(dir / "run", TokenStore(config.data.tokens, "train"), TokenStore(config.data.tokens, "valid"),
              1);  // a checkpoint of before goes on with them
  CHECK(data_since(dir / "run") == 1);
  record_data(dir / "run", TokenStore(config.data.tokens, "train"), TokenStore(config.data.tokens, "valid"), 3);
  CHECK(data_since(dir / "run") == 1);
}

TEST_CASE("a run that was begun with one tokenizer and begins anew with another has the new one alone",
          "[run][tokenizer]") {
  TempDir dir;
  auto config = tiny_run(dir, 2);
  config.data.tokens = prepared(dir, "pieces", 16);
  pretrain(config, {.run = dir / "run"});
  for (const auto* file : {"step-00000002", "latest", "best", "summary.json", "held_out.json", "loss.svg", "loss.png"})
    fs::remove_all(dir / ("run/" + std::string(file)));
  REQUIRE(run_folder(dir / "run") == RunFolder::begun);
  config.data.tokens = prepared_unigram(dir, "unigram");
  pretrain(config, {.run = dir / "run"});
  CHECK_FALSE(fs::exists(dir / "run/tokenizer/vocab.txt"));
  CHECK_NOTHROW(verify_run(dir / "run"));
  CHECK(open_run(dir / "run").tokenizer.kind() == "unigram");
}

TEST_CASE("a run with a damaged provenance.json opens with a warning, and is not verified", "[run][tokenizer]") {
  TempDir dir;
  pretrain(tiny_run(dir, 2), {.run = dir / "run"});
  const auto whole = read_file(dir / "run/provenance.json");
  dir.write("run/provenance.json", whole.substr(0, whole.size() / 2));
  const std::string why = "run/provenance.json: is damaged, so that the tokenizer of the run is not known; restore it";
  CHECK_THROWS_WITH(verify_run(dir / "run"), Catch::Contains(why));
  set_log_file(dir / "log.txt");
  CHECK(open_run(dir / "run").has_tokenizer);
  set_log_file("");
  CHECK_THAT(read_file(dir / "log.txt"), Catch::Contains(why));
}
