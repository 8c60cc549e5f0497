#include "run/moved.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/store/token_store.h"
#include "tests/support/catch.h"
#include "tests/support/tiny.h"

using namespace cloze;
namespace fs = std::filesystem;

namespace {

/// A folder `before` with tokens in `before/data/tokens` and a run in `before/runs/a`, which began in `before`.
struct Moved {
  TempDir dir;
  std::string fingerprint;
  Moved() {
    fs::create_directories(dir / "before/data");
    const auto config = tiny_run(dir, 1);
    fingerprint = TokenStore(config.data.tokens, "train").fingerprint();
    fs::rename(config.data.tokens, dir / "before/data/tokens");
    record(dir / "before");
  }
  void record(const std::string& folder) const {
    dir.write("before/runs/a/provenance.json",
              nlohmann::json{{"folder", folder}, {"data", {{"fingerprint", fingerprint}}}}.dump());
  }
};

bool same_folder(const std::string& a, const std::string& b) { return fs::exists(a) && fs::equivalent(a, b); }

}  // namespace

TEST_CASE("tokens of a run are found from any working directory", "[run][moved]") {
  const Moved w;
  CHECK(tokens_of_run(w.dir / "before/runs/a", w.dir / "before/data/tokens") == w.dir / "before/data/tokens");
  const auto found = tokens_of_run(w.dir / "before/runs/a", "data/tokens");  // there is none in this folder
  CHECK(same_folder(found, w.dir / "before/data/tokens"));
}

TEST_CASE("tokens of a run are found where both were moved", "[run][moved]") {
  const Moved w;
  const bool knows_folder = GENERATE(true, false);  // runs of earlier versions do not
  if (!knows_folder) w.record("");
  fs::create_directories(w.dir / "far/away");
  fs::rename(w.dir / "before", w.dir / "far/away/after");
  for (const auto& recorded : {w.dir / "before/data/tokens", std::string("data/tokens"), std::string("./data/tokens/")})
    CHECK(same_folder(tokens_of_run(w.dir / "far/away/after/runs/a", recorded), w.dir / "far/away/after/data/tokens"));
  CHECK(same_folder(tokens_of_run(w.dir / "far/away/after/runs/a/", "data/tokens"),
                    w.dir / "far/away/after/data/tokens"));
}

TEST_CASE("tokens of a run are found under another name next to it", "[run][moved]") {
  const Moved w;
  fs::rename(w.dir / "before/data/tokens", w.dir / "before/renamed");
  CHECK(same_folder(tokens_of_run(w.dir / "before/runs/a", "data/tokens"), w.dir / "before/renamed"));
}

TEST_CASE("other tokens in the place of those of a run are not taken for them", "[run][moved]") {
  const Moved w;
  fs::create_directories(w.dir / "here");
  fs::rename(w.dir / "before/data", w.dir / "before/kept");
  fs::copy(w.dir / "before/kept", w.dir / "before/data", fs::copy_options::recursive);
  w.dir.write("before/data/tokens/manifest.json", "{}");
  const auto recorded = w.dir / "before/data/tokens";
  CHECK(tokens_of_run(w.dir / "before/runs/a", recorded) == recorded);  // two folders below are too far away
  fs::rename(w.dir / "before/kept/tokens", w.dir / "before/runs/tokens");
  CHECK(same_folder(tokens_of_run(w.dir / "before/runs/a", recorded), w.dir / "before/runs/tokens"));
}

TEST_CASE("a run that does not say what it was trained on keeps the path it has", "[run][moved]") {
  const Moved w;
  w.dir.write("before/runs/imported/provenance.json", R"({"imported_from": "bert"})");
  w.dir.write("before/runs/damaged/provenance.json", R"({"folder": 3, "data")");
  for (const std::string run : {"none", "imported", "damaged"})
    CHECK(tokens_of_run(w.dir / ("before/runs/" + run), "data/tokens") == "data/tokens");
}

TEST_CASE("texts of a mixture are found as the held-out text is, each by its own fingerprint", "[run][moved]") {
  const Moved w;
  const auto run = w.dir / "before/runs/a";
  const auto record = [&](const std::string& held_out, const std::string& part) {
    const nlohmann::json data{{"fingerprint", "of all"},
                              {"held_out", {{"fingerprint", held_out}}},
                              {"mixture", {{{"fingerprint", "gone"}}, {{"fingerprint", part}}}}};
    w.dir.write("before/runs/a/provenance.json", nlohmann::json{{"folder", w.dir / "before"}, {"data", data}}.dump());
  };
  const auto tokens = w.dir / "before/data/tokens";
  record("gone", w.fingerprint);
  CHECK(same_folder(mixture_tokens_of_run(run, 1, "data/tokens"), tokens));
  CHECK(mixture_tokens_of_run(run, 0, "data/tokens") == "data/tokens");
  CHECK(mixture_tokens_of_run(run, 2, "data/tokens") == "data/tokens");
  CHECK(tokens_of_run(run, "data/tokens") == "data/tokens");
  record(w.fingerprint, "gone");
  CHECK(same_folder(tokens_of_run(run, "data/tokens"), tokens));
}
