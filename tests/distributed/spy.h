#pragma once
// A communicator that notices when the processes of a run do not say the same things.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "distributed/communicator.h"

/// Hands on the verbs of another communicator. Before each one all processes compare its name and its sizes, so that a
/// process that is at another verb is an error of all of them, where it would be a wait without end, or the numbers of
/// another verb. Throws Error with the verb of each rank and what they said before.
class Spy final : public cloze::Communicator {
 public:
  explicit Spy(cloze::Communicator& group)
      : Communicator(group.rank(), group.size(), group.is_first_here() ? 0 : 1, group.size_here()), group_(group) {}
  std::string name_of(int64_t rank) const override { return group_.name_of(rank); }
  std::string network() const override { return group_.network(); }

  void sum_slices(const cloze::Tensor& flat, const std::vector<cloze::Tensor>& sums, int64_t parts,
                  const cloze::SliceBounds& slices) override {
    heed(cloze::concat("sum_slices of ", flat.numel(), " in ", parts, " parts", bounds(slices)));
    group_.sum_slices(flat, sums, parts, slices);
    note_wait();
  }
  void gather(const cloze::Tensor& flat, const cloze::SliceBounds& slices) override {
    heed(cloze::concat("gather of ", flat.numel(), bounds(slices)));
    group_.gather(flat, slices);
    note_wait();
  }
  void broadcast(const cloze::Tensor& tensor) override {
    heed(cloze::concat("broadcast of ", tensor.numel()));
    group_.broadcast(tensor);
    note_wait();
  }
  void move(const cloze::Tensor& tensor, int64_t from, int64_t to) override {
    heed(cloze::concat("move of ", tensor.numel(), " from ", from, " to ", to));
    group_.move(tensor, from, to);
    note_wait();
  }
  std::vector<std::vector<double>> exchange(const std::vector<double>& own) override {
    heed("exchange");
    auto all = group_.exchange(own);
    note_wait();
    return all;
  }
  std::string broadcast_text(const std::string& text) override {
    heed("broadcast_text");
    auto shared = group_.broadcast_text(text);
    note_wait();
    return shared;
  }
  void fail_for_all(const std::string& sentence, int exit_code) override { group_.fail_for_all(sentence, exit_code); }

 private:
  static std::string bounds(const cloze::SliceBounds& slices) {
    std::string text = " at";
    for (const auto bound : slices) text += cloze::concat(" ", bound);
    return text;
  }

  /// Compares the verb that comes next. The end of a group is an exchange of nothing (Group::~Group).
  void heed(const std::string& verb) {
    std::string said;
    bool differs = false;
    for (const auto& numbers : group_.exchange(std::vector<double>(verb.begin(), verb.end()))) {
      const auto other = numbers.empty() ? "its end" : std::string(numbers.begin(), numbers.end());
      said += (said.empty() ? "" : ", ") + other;
      differs = differs || other != verb;
    }
    if (differs) cloze::fail("verb ", verbs_.size() + 1, " of ranks 0 to ", size() - 1, " is ", said, before());
    verbs_.push_back(verb);
  }

  std::string before() const {
    constexpr size_t last = 3;
    std::string text;
    for (size_t i = verbs_.size() - std::min(verbs_.size(), last); i < verbs_.size(); ++i)
      text += "; after " + verbs_[i];
    return text;
  }

  void note_wait() { waited_ = group_.seconds_waited(); }

  cloze::Communicator& group_;
  std::vector<std::string> verbs_{};
};
