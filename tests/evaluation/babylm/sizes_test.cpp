// Sizes and revisions against those of the published program.
#include "evaluation/babylm/collate.h"

#include "tests/evaluation/babylm/published.h"
#include "tests/support/catch.h"

using namespace cloze;
using nlohmann::json;

namespace {

void check_sizes(const std::map<std::string, TaskSize>& sizes, const json& wanted) {
  for (const auto& [task, size] : sizes) {
    INFO(task);
    REQUIRE(wanted.contains(task));
    if (size.parts.empty())
      CHECK(size.each == wanted[task].get<int64_t>());
    else
      CHECK(json(size.parts) == wanted[task]);
  }
}

}  // namespace

TEST_CASE("a submission has as many predictions as the published program asks for", "[babylm]") {
  const auto& sizes = published()["sizes"];
  check_sizes(published_sizes().full, sizes["full"]);
  check_sizes(published_sizes().fast, sizes["fast"]);
  CHECK(published_sizes().full.size() + 2 == sizes["full"].size());  // but those of pictures, winoground and vqa
  CHECK(published_sizes().fast.size() == sizes["fast"].size());
  CHECK(published_sizes().acquisition == sizes["acquisition"].get<int64_t>());
}

TEST_CASE("a submission has the revisions that the published program asks for, in their order", "[babylm]") {
  CHECK(json(babylm_revisions(BabylmTrack::strict_small)) == published()["sizes"]["strict-small"]);
  CHECK(json(babylm_revisions(BabylmTrack::strict)) == published()["sizes"]["strict"]);
  CHECK(babylm_revisions(BabylmTrack::interaction) == babylm_revisions(BabylmTrack::strict));
}
