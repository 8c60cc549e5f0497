#include "tasks/scores/item_clusters.h"

#include "tests/support/catch.h"

using namespace cloze;

namespace {

using Numbers = std::vector<uint64_t>;

Numbers clusters_in(const std::vector<TaskItem>& items) {
  std::vector<const TaskItem*> all;
  for (const auto& item : items) all.push_back(&item);
  return clusters_of_items(all);
}

}  // namespace

TEST_CASE("items that share the longer of their texts are a cluster") {
  CHECK(clusters_in({{.text = "a premise of some length", .second = "one"},
                     {.text = "another premise of some length", .second = "one"},
                     {.text = "a premise of some length", .second = "two"}}) == Numbers{0, 1, 0});
  CHECK(clusters_in({{.text = "who?", .second = "a context in which somebody is named"},
                     {.text = "where?", .second = "a context in which somebody is named"},
                     {.text = "who?", .second = "a context of another paragraph"}}) == Numbers{0, 0, 1});
  CHECK(clusters_in({{.text = "twice"}, {.text = "once"}, {.text = "twice"}}) == Numbers{0, 1, 0});
}

TEST_CASE("groups that items name are clusters where they hold several texts") {
  const std::vector<TaskItem> articles{{.group = "a", .text = "q", .second = "first context"},
                                       {.group = "a", .text = "r", .second = "second context"},
                                       {.group = "b", .text = "s", .second = "third context"}};
  CHECK(clusters_in(articles) == Numbers{0, 0, 1});
  const std::vector<TaskItem> questions{{.group = "q1", .text = "a paragraph of MultiRC", .second = "q1 a"},
                                        {.group = "q1", .text = "a paragraph of MultiRC", .second = "q1 b"},
                                        {.group = "q2", .text = "a paragraph of MultiRC", .second = "q2 a"},
                                        {.group = "q3", .text = "another paragraph", .second = "q3 a"}};
  CHECK(clusters_in(questions) == Numbers{0, 0, 0, 1});
}

TEST_CASE("items without a text, such as sentences to tag, are clusters of their own") {
  CHECK(clusters_in({{.words = {"a"}}, {.words = {"a"}}}) == Numbers{0, 1});
}
