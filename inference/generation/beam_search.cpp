// Beam search. Source: transformers 5.23, generation/utils.py, `_beam_search`.
#include <algorithm>
#include <cmath>

#include "inference/generation/search_state.h"

namespace cloze {

namespace {

struct Hypothesis {
  float score = no_score;
  bool finished = false;
  std::vector<int64_t> ids;
};

/// The beams of one prompt.
struct Beams {
  std::vector<float> scores;     ///< of the running beams, best first
  std::vector<Hypothesis> best;  ///< finished beams, best first; unused entries have no_score
  bool done = false;
};

/// The ids of `row`, followed by `token`.
std::vector<int64_t> extended(const History& history, int64_t row, int64_t token) {
  std::vector<int64_t> ids(history.row(row), history.row(row) + history.length);
  ids.push_back(token);
  return ids;
}

/// A beam search over the rows of all prompts.
class BeamSearch {
 public:
  BeamSearch(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config)
      : model_(model),
        c_(config),
        vocab_(model.vocab()),
        k_(config.num_beams),
        num_beams_(static_cast<size_t>(k_)),
        history_(prompts, k_, config.max_new_tokens),
        rules_(config, vocab_, history_.length),
        feed_(prompts, k_),
        all_(prompts.size()) {
    for (size_t p = 0; p < all_.size(); ++p) {
      all_[p].scores.assign(num_beams_, no_score);  // all rows are equal at first: only one may continue
      all_[p].scores[0] = 0;
      all_[p].best.assign(num_beams_, {no_score, false, prompts[p]});
    }
  }

  Results run() {
    for (generated_ = 1; generated_ <= c_.max_new_tokens; ++generated_) {
      const float* logits = model_.step(feed_.tokens, feed_.origins);
      feed_.begin();
      bool open = false;
      for (size_t p = 0; p < all_.size(); ++p) {
        step(p, logits);
        open = open || !all_[p].done;
      }
      if (!open) break;
      feed_.end();
      history_.append(feed_.tokens, feed_.origins);
    }
    return results();
  }

 private:
  /// One step of the beams of prompt `p`.
  void step(size_t p, const float* logits) {
    auto& beams = all_[p];
    const int64_t first = static_cast<int64_t>(p) * k_;
    if (beams.done) {
      for (int64_t j = 0; j < k_; ++j) feed_.set(first + j, c_.pad_token_id, first + j);
      return;
    }
    candidates_.begin(2 * k_);  // twice the number of beams, since each may end
    for (int64_t j = 0; j < k_; ++j)
      candidates_.offer(rules_.log_probs(logits + (first + j) * vocab_, history_.row(first + j), history_.length),
                        vocab_, beams.scores[static_cast<size_t>(j)], j);
    collect_finished(beams, first);
    continue_running(beams, first);
    beams.done = is_done(beams);
  }

  bool ends(size_t i) const {
    return generated_ == c_.max_new_tokens || candidates_.list()[i].token == c_.eos_token_id;
  }

  /// Merges candidates that end with the finished beams. An end counts only among the first k candidates; the others
  /// are there so that k beams can continue. Ties go to the finished beam.
  void collect_finished(Beams& beams, int64_t first) {
    const auto& candidates = candidates_.list();
    const auto norm = static_cast<float>(std::pow(static_cast<double>(generated_), c_.length_penalty));
    const auto merged_score = [&](size_t i) {
      if (i < num_beams_) return std::pair{beams.best[i].score, beams.best[i].finished};
      i -= num_beams_;
      const bool counts = ends(i) && i < num_beams_;
      return std::pair{candidates[i].score / norm + (counts ? 0.0F : no_score), counts};
    };
    std::vector<Hypothesis> next;
    for (const auto i : best_first(merged_score, num_beams_ + candidates.size(), k_)) {
      const auto [score, counts] = merged_score(i);
      if (i < num_beams_) {
        next.push_back(std::move(beams.best[i]));
      } else {
        const auto& candidate = candidates[i - num_beams_];
        next.push_back({score, counts, extended(history_, first + candidate.beam, candidate.token)});
      }
    }
    beams.best = std::move(next);
  }

  /// The best candidates that do not end run on.
  void continue_running(Beams& beams, int64_t first) {
    const auto& candidates = candidates_.list();
    const auto score = [&](size_t i) { return candidates[i].score + (ends(i) ? no_score : 0.0F); };
    const auto running = best_first(score, candidates.size(), k_);
    for (size_t j = 0; j < num_beams_; ++j) {
      const auto& candidate = candidates[running[j]];
      beams.scores[j] = score(running[j]);
      feed_.set(first + static_cast<int64_t>(j), candidate.token, first + candidate.beam);
    }
  }

  /// True if no running beam can score better than the worst finished one.
  bool is_done(const Beams& beams) const {
    const bool early = c_.early_stopping == EarlyStopping::yes, never = c_.early_stopping == EarlyStopping::never;
    const auto full = [](const Hypothesis& h) { return h.finished; };
    const double length = static_cast<double>(never && c_.length_penalty > 0 ? c_.max_new_tokens : generated_);
    const float best_possible = beams.scores[0] / static_cast<float>(std::pow(length, c_.length_penalty));
    const bool any_finished = std::any_of(beams.best.begin(), beams.best.end(), full);
    const bool all_finished = std::all_of(beams.best.begin(), beams.best.end(), full);
    const bool improvable =
        (any_finished && best_possible > beams.best.back().score) || (!all_finished && best_possible > no_score);
    return !improvable || (early && all_finished);
  }

  Results results() {
    // transformers pads with eos if the padding id is 0, since it takes 0 for "none".
    const int64_t fill = c_.pad_token_id == 0 && c_.eos_token_id >= 0 ? c_.eos_token_id : c_.pad_token_id;
    size_t longest = 0;
    const auto returned = static_cast<size_t>(c_.num_return_sequences);
    for (const auto& beams : all_)
      for (size_t i = 0; i < returned; ++i) longest = std::max(longest, beams.best[i].ids.size());
    Results out(all_.size());
    for (size_t p = 0; p < all_.size(); ++p)
      for (size_t i = 0; i < returned; ++i) {
        auto& h = all_[p].best[i];
        h.ids.resize(longest, fill);
        out[p].push_back({std::move(h.ids), double{h.score}});
      }
    return out;
  }

  NextTokenModel& model_;
  const SearchConfig& c_;
  int64_t vocab_, k_;
  size_t num_beams_;
  History history_;
  ScoreRules rules_;
  Feed feed_;
  TopCandidates candidates_;
  std::vector<Beams> all_;
  int64_t generated_ = 0;  ///< new tokens, the one of this step included
};

}  // namespace

Results beam_search(NextTokenModel& model, const Prompts& prompts, const SearchConfig& config) {
  return BeamSearch(model, prompts, config).run();
}

}  // namespace cloze
