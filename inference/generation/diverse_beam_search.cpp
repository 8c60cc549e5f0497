// Beam search in groups. Source: Vijayakumar et al. 2018, "Diverse beam search", algorithm 1 with Hamming diversity, as
// in transformers 4.49.
#include <algorithm>
#include <cmath>

#include "inference/generation/search_state.h"

namespace cloze {

namespace {

/// The finished beams of one group.
struct Group {
  struct Hypothesis {
    double score;
    std::vector<int64_t> ids;  ///< without eos
  };
  std::vector<Hypothesis> list;
  double worst = 1e9;
  bool done = false;

  void add(std::vector<int64_t> ids, double sum, int64_t length, const SearchConfig& c, size_t size) {
    const double score = sum / std::pow(static_cast<double>(length), c.length_penalty);
    if (list.size() >= size && !(score > worst)) return;
    list.push_back({score, std::move(ids)});
    const auto less = [](const auto& a, const auto& b) { return a.score < b.score; };
    if (list.size() > size) list.erase(std::min_element(list.begin(), list.end(), less));
    worst = std::min_element(list.begin(), list.end(), less)->score;
  }
  bool finished(double best_sum, int64_t generated, const SearchConfig& c, size_t size) const {
    if (list.size() < size) return false;
    if (c.early_stopping == EarlyStopping::yes) return true;
    const int64_t length =
        c.early_stopping == EarlyStopping::never && c.length_penalty > 0 ? c.max_new_tokens : generated;
    return worst >= best_sum / std::pow(static_cast<double>(length), c.length_penalty);
  }
};

/// A beam search over the groups of all prompts.
class DiverseBeamSearch {
 public:
  DiverseBeamSearch(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config)
      : model_(model),
        c_(config),
        vocab_(model.vocab()),
        k_(config.num_beams),
        size_(k_ / config.num_beam_groups),
        history_(prompts, k_, config.max_new_tokens),
        prompt_length_(history_.length),
        rules_(config, vocab_, history_.length),
        feed_(prompts, k_),
        all_(prompts.size() * static_cast<size_t>(config.num_beam_groups)),
        scores_(prompts.size() * static_cast<size_t>(k_), no_score) {
    for (size_t i = 0; i < scores_.size(); i += static_cast<size_t>(size_)) scores_[i] = 0;
  }

  Results run() {
    for (generated_ = 1; generated_ <= c_.max_new_tokens; ++generated_) {
      const float* logits = model_.step(feed_.tokens, feed_.origins);
      feed_.begin();
      bool open = false;
      for (size_t g = 0; g < all_.size(); ++g) {  // in order: later groups are penalised for tokens of earlier ones
        step(g, logits);
        open = open || !all_[g].done;
      }
      feed_.end();
      history_.append(feed_.tokens, feed_.origins);
      if (!open) break;
    }
    finish_running();
    return results();
  }

 private:
  /// One step of group `g`.
  void step(size_t g, const float* logits) {
    auto& group = all_[g];
    const int64_t first = static_cast<int64_t>(g) * size_, prompt_first = first / k_ * k_;
    if (group.done) {
      for (int64_t j = 0; j < size_; ++j)
        feed_.set(first + j, c_.pad_token_id, first + j);  // which counts as chosen, as in transformers
      return;
    }
    candidates_.begin(2 * size_);
    for (int64_t j = 0; j < size_; ++j)
      candidates_.offer(rules_.log_probs(logits + (first + j) * vocab_, history_.row(first + j), history_.length,
                                         feed_.tokens.data() + prompt_first, first - prompt_first),
                        vocab_, scores_[static_cast<size_t>(first + j)], j);
    const auto& candidates = candidates_.list();
    int64_t running = 0;
    for (size_t i = 0; i < candidates.size() && running < size_; ++i) {
      const int64_t row = first + candidates[i].beam;
      if (candidates[i].token == c_.eos_token_id) {
        if (i < static_cast<size_t>(size_)) add(group, row, double{candidates[i].score}, generated_);
        continue;
      }
      scores_[static_cast<size_t>(first + running)] = candidates[i].score;
      feed_.set(first + running++, candidates[i].token, row);
    }
    group.done = group.finished(double{candidates[0].score}, generated_, c_, static_cast<size_t>(size_));
  }

  void add(Group& group, int64_t row, double score, int64_t length) {
    group.add({history_.row(row), history_.row(row) + history_.length}, score, length, c_, static_cast<size_t>(size_));
  }

  /// Adds the running beams of groups that are not done.
  void finish_running() {
    for (size_t g = 0; g < all_.size(); ++g) {
      if (all_[g].done) continue;
      for (int64_t j = 0; j < size_; ++j) {
        const int64_t row = static_cast<int64_t>(g) * size_ + j;
        add(all_[g], row, double{scores_[static_cast<size_t>(row)]}, history_.length - prompt_length_);
      }
    }
  }

  Results results() {
    const auto groups = static_cast<size_t>(c_.num_beam_groups);
    Results out(all_.size() / groups);
    size_t longest = 0;
    for (size_t p = 0; p < out.size(); ++p) {
      std::vector<Group::Hypothesis> list;
      for (size_t g = 0; g < groups; ++g)
        for (auto& h : all_[p * groups + g].list) list.push_back(std::move(h));
      for (const auto i : best_first([&](size_t j) { return list[j].score; }, list.size(), c_.num_return_sequences)) {
        longest = std::max(longest, list[i].ids.size() + 1);
        out[p].push_back({std::move(list[i].ids), double{static_cast<float>(list[i].score)}});
      }
    }
    longest = std::min(longest, static_cast<size_t>(prompt_length_ + c_.max_new_tokens));
    for (auto& list : out)
      for (auto& text : list) {
        if (text.ids.size() < longest) text.ids.push_back(c_.eos_token_id);
        text.ids.resize(longest, c_.pad_token_id);
      }
    return out;
  }

  NextTokenModel& model_;
  const SearchConfig& c_;
  int64_t vocab_, k_, size_;  ///< k_: beams of a prompt, size_: of a group
  History history_;
  int64_t prompt_length_;
  ScoreRules rules_;
  Feed feed_;
  TopCandidates candidates_;
  std::vector<Group> all_;
  std::vector<float> scores_;  ///< of the running beams
  int64_t generated_ = 0;      ///< new tokens, the one of this step included
};

}  // namespace

Results diverse_beam_search(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config) {
  return DiverseBeamSearch(model, prompts, config).run();
}

}  // namespace cloze
