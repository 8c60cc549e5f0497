#include "distributed/communicator.h"

#include <cmath>
#include <optional>

#include "tests/distributed/rank_case.h"
#include "tests/support/catch.h"

using namespace cloze;

namespace {

/// Numbers of very different sizes, so that another order of additions gives other bits.
std::vector<float> numbers_of_part(int64_t part, int64_t count) {
  uint64_t state = 88172645463325252u + static_cast<uint64_t>(part) * 7919;
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    numbers.push_back(std::ldexp(static_cast<float>(static_cast<int32_t>(state >> 32)), -static_cast<int>(state % 40)));
  }
  return numbers;
}

/// The sum of parts [begin, end) as the tree adds them: the left power of two and the rest, by loops.
std::vector<float> slow_sum(int64_t begin, int64_t end, int64_t count) {
  if (end - begin == 1) return numbers_of_part(begin, count);
  int64_t half = 1;
  while (half * 2 < end - begin) half *= 2;
  auto sum = slow_sum(begin, begin + half, count);
  const auto right = slow_sum(begin + half, end, count);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

constexpr int64_t count_of_numbers = 1003;

SliceBounds uneven_slices(int64_t size) {
  SliceBounds bounds{0};
  for (int64_t r = 1; r < size; ++r) bounds.push_back(bounds.back() + r * 31);
  bounds.push_back(count_of_numbers);
  return bounds;
}

/// The sums of the subtrees of this rank, as a step makes them: part after part.
std::vector<Tensor> own_sums(const Communicator& group, int64_t parts) {
  std::vector<Tensor> sums;
  for (const auto& node : subtrees_in({0, parts}, parts_of(group.rank(), group.size(), parts))) {
    const auto leaf = [](PartRange at) -> std::optional<Tensor> {
      if (at.size() > 1) return std::nullopt;
      const auto numbers = numbers_of_part(at.begin, count_of_numbers);
      return at::tensor(numbers);
    };
    sums.push_back(sum_of_tree(node, leaf, [](Tensor& left, const Tensor& right) { left.add_(right); }));
  }
  return sums;
}

[[maybe_unused]] const bool are_listed = [] {
  auto& all = scenarios();
  all["sums"] = [](Communicator& group) {
    std::string wrong;
    for (const int64_t parts : {5, 6, 7, 8, 13}) {
      const auto slices = uneven_slices(group.size());
      auto flat = at::zeros({count_of_numbers});
      group.sum_slices(flat, own_sums(group, parts), parts, slices);
      group.gather(flat, slices);
      const auto expected = slow_sum(0, parts, count_of_numbers);
      if (!at::equal(flat, at::tensor(expected))) wrong += concat(parts, " ");
    }
    const bool by_memory = read_file("/proc/self/maps").find("memfd:cloze") != std::string::npos;
    return concat(by_memory ? "by memory" : "by the network", ", wrong: ", wrong);
  };
  all["words"] = [](Communicator& group) {
    auto tensor = at::full({7}, static_cast<double>(group.rank()));
    group.broadcast(tensor);
    std::string said = concat("broadcast ", tensor.sum().item<float>());
    for (const auto& numbers : group.exchange({group.rank() * 0.1, 1.0 + group.rank()}))
      said += concat(", ", numbers.at(0), " ", numbers.at(1));
    if (group.is_first()) usleep(1'300'000);  // longer than others wait at a time
    return said + ", " + group.broadcast_text(group.is_first() ? "config of rank 0" : "") + ", " +
           group.broadcast_text(concat("again ", group.rank()));
  };
  all["many numbers"] = [](Communicator& group) {
    const auto own = [](int64_t rank, int64_t turn) {
      const std::vector<int64_t> counts{0, 1, 31, 32, 511, 512, 513, 2000};
      return std::vector<double>(static_cast<size_t>(counts[static_cast<size_t>(turn * 3 + rank) % counts.size()]),
                                 static_cast<double>(rank) + 0.001 * static_cast<double>(turn));
    };
    for (int64_t turn = 0; turn < 200; ++turn) {
      const auto said = group.exchange(own(group.rank(), turn));
      for (int64_t rank = 0; rank < group.size(); ++rank)
        if (said.at(static_cast<size_t>(rank)) != own(rank, turn)) return concat("wrong in turn ", turn);
    }
    return std::string("right");
  };
  all["silent end"] = [](Communicator& group) {
    if (group.rank() == 1) fail<DataError>("rank 1 ends and tells nobody");
    for (;;) group.exchange({1});
    return std::string();
  };
  all["steps"] = [](Communicator& group) {
    say("begun");
    for (;;) group.exchange({1});
    return std::string();
  };
  all["long evaluation"] = [](Communicator& group) {
    say("begun");
    if (group.is_first()) sleep(60);
    return group.broadcast_text("");
  };
  all["own error"] = [](Communicator& group) {
    if (group.rank() == 1) {
      group.fail_for_all("the text of rank 1 cannot be read", 3);
      fail<DataError>("the text of rank 1 cannot be read");
    }
    for (;;) group.exchange({1});
    return std::string();
  };
  all["other verbs"] = [](Communicator& group) {
    group.exchange({1});
    auto tensor = at::zeros({group.rank() + 3});
    if (setting("CLOZE_ARGUMENT") == "other sizes" || group.rank() == 1) group.broadcast(tensor);
    if (setting("CLOZE_ARGUMENT") == "an end") return std::string("ended");
    return group.broadcast_text("");
  };
  return true;
}();

}  // namespace

TEST_CASE("parts are dealt in runs, and the largest subtrees in a run tile it") {
  for (int64_t parts = 1; parts <= 17; ++parts)
    for (int64_t size = 1; size <= parts; ++size) {
      int64_t at = 0;
      for (int64_t rank = 0; rank < size; ++rank) {
        const auto own = parts_of(rank, size, parts);
        CHECK(own.begin == at);
        CHECK(own.size() - parts / size <= 1);
        for (const auto& node : subtrees_in({0, parts}, own)) {
          CHECK(node.begin == at);
          at = node.end;
        }
        CHECK(at == own.end);
      }
      CHECK(at == parts);
    }
  CHECK((parts_of(2, 3, 8) == PartRange{6, 8}));
  CHECK((subtrees_in({0, 8}, {3, 6}) == std::vector<PartRange>{{3, 4}, {4, 6}}));
}

TEST_CASE(
    "the sum of the parts of a step has the same bits at any number of processes, in the order of one tree, by "
    "the network and by memory") {
  for (const bool is_local : {false, true})
    for (const int64_t size : {1, 2, 3, 5})
      for (const auto& end : Ranks("sums", size, {.is_local = is_local}).ends()) {
        CHECK(end.code == 0);
        CHECK(end.said == (is_local || size == 1 ? "by memory, wrong: " : "by the network, wrong: "));
      }
}

TEST_CASE("ranks receive the first one's tensors and texts, however long it takes, and everybody's numbers by rank") {
  for (const auto& end : Ranks("words", 3).ends())
    CHECK(end.said == "broadcast 0, 0 1, 0.1 2, 0.2 3, config of rank 0, again 0");
}

TEST_CASE("everybody's numbers are those of this turn, however many each has, by the network and by memory") {
  for (const bool is_local : {false, true})
    for (const auto& end : Ranks("many numbers", 3, {.is_local = is_local}).ends()) CHECK(end.said == "right");
}

TEST_CASE("nobody waits for a rank that has left without a word, by the network or by memory") {
  for (const bool is_local : {false, true}) {
    const auto ends = Ranks("silent end", 3, {.is_local = is_local}).ends();
    for (const size_t rank : {0, 2}) {
      CHECK(ends[rank].code == 4);
      CHECK_THAT(ends[rank].said, Catch::StartsWith("another process does not answer ("));
    }
  }
}

TEST_CASE("a rank that is killed ends the others before the time-out, by name") {
  for (const size_t killed : {0, 2}) {
    Ranks ranks("steps", 3);
    for (int64_t rank = 0; rank < 3; ++rank) ranks.await(rank);
    const auto start = std::chrono::steady_clock::now();
    ranks.signal(killed, SIGKILL);
    for (size_t rank = 0; rank < 3; ++rank) {
      const auto end = ranks.end_of(rank);
      CHECK(end.code == (rank == killed ? 128 + SIGKILL : 4));
      if (rank != killed)
        CHECK_THAT(end.said, Catch::StartsWith(concat("rank ", killed)) && Catch::EndsWith(" has died"));
    }
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));  // and not the minute of the time-out
  }
}

TEST_CASE("a rank that is killed ends the others in two seconds, whatever they are at") {
  for (const size_t killed : {0, 1}) {
    Ranks ranks("long evaluation", 3);
    for (int64_t rank = 0; rank < 3; ++rank) ranks.await(rank);
    const auto start = std::chrono::steady_clock::now();
    ranks.signal(killed, SIGKILL);
    for (size_t rank = 0; rank < 3; ++rank) CHECK(ranks.end_of(rank).code == (rank == killed ? 128 + SIGKILL : 4));
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));  // of a busy machine; 0.1 s otherwise
  }
}

TEST_CASE("a process that comes to the port of another run is refused, and that run goes on") {
  const int port = free_port();
  Ranks run("words", 3, {.end = 2, .port = port, .id = "7.0"});
  for (const auto& end : Ranks("words", 2, {.first = 1, .port = port, .id = "7.0"}).ends()) {
    CHECK(end.code == 2);
    CHECK_THAT(end.said, Catch::StartsWith(concat("127.0.0.1:", port, " is where another run meets, of 3 processes")));
  }
  for (const auto& end : Ranks("words", 3, {.first = 2, .port = port, .id = "8.0"}).ends()) CHECK(end.code == 2);
  const auto last = Ranks("words", 3, {.first = 2, .port = port, .id = "7.0"}).ends();
  CHECK(last[0].code == 0);
  for (const auto& end : run.ends()) CHECK(end.code == 0);
}

TEST_CASE("a rank that is frozen is lost after the time-out, by name") {
  Ranks ranks("steps", 3, {.timeout = 5});
  for (int64_t rank = 0; rank < 3; ++rank) ranks.await(rank);
  ranks.signal(1, SIGSTOP);
  for (const size_t rank : {0, 2}) {
    const auto end = ranks.end_of(rank);
    CHECK(end.code == 4);
    CHECK_THAT(end.said, Catch::StartsWith("rank 1 on "));
  }
}

TEST_CASE("the error of one rank is the last sentence of all, with its exit code") {
  auto ranks = Ranks("own error", 3).ends();
  for (const size_t rank : {0, 2}) {
    CHECK(ranks[rank].said == "the text of rank 1 cannot be read");
    CHECK(ranks[rank].code == 3);
  }
}

TEST_CASE("ranks that call different verbs, or one with different sizes, are noticed by all of them") {
  const auto check = [](const std::string& what, const std::string& sentence) {
    for (const auto& end : Ranks("other verbs", 3, {.argument = what}).ends()) {
      if (end.said == "ended") continue;
      CHECK(end.said == sentence + "; after exchange");
      CHECK(end.code == 1);
    }
  };
  check("other verbs", "verb 2 of ranks 0 to 2 is broadcast_text, broadcast of 4, broadcast_text");
  check("other sizes", "verb 2 of ranks 0 to 2 is broadcast of 3, broadcast of 4, broadcast of 5");
  check("an end", "verb 2 of ranks 0 to 2 is its end, broadcast of 4, its end");
}

TEST_CASE("ranks that do not come are named") {
  const auto ends = Ranks("words", 4, {.timeout = 5, .end = 2}).ends();
  for (const auto& end : ends) {
    CHECK(end.said == "ranks 2, 3 of 4 did not come within 5 seconds; start them, or raise --timeout");
    CHECK(end.code == 4);
  }
}

TEST_CASE("a port that is taken, and a host that is none, are refused") {
  const int listener = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  socklen_t size = sizeof address;
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  Meeting meeting{.rank = 0, .size = 2, .host = "127.0.0.1", .port = ntohs(address.sin6_port), .timeout = 1};
  CHECK_THROWS_WITH(meet(meeting), Catch::Contains(" of this machine is taken, by another run or program"));
  close(listener);
  meeting = {.rank = 1, .size = 2, .host = "no-such-host.invalid", .port = free_port(), .timeout = 1};
  CHECK_THROWS_WITH(meet(meeting), Catch::StartsWith("'no-such-host.invalid' is no host that is known here ("));
}
