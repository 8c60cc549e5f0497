#include "evaluation/attribution/methods.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>

#include "core/error.h"
#include "core/random.h"
#include "core/text.h"
#include "run/device.h"

namespace cloze {

namespace {

constexpr double most_off = 0.01, rounding = 1e-5;
constexpr int64_t most_points = 8;  // times those that are asked for

/// Sums over words of numbers by token.
std::vector<double> by_word(const Explained& of, const std::vector<double>& tokens) {
  std::vector<double> values;
  for (const auto& word : of.words) {
    auto& value = values.emplace_back(0);
    for (const auto at : word.positions) value += tokens.at(static_cast<size_t>(at));
  }
  return values;
}

/// By how much a sum misses what it should be, as a share of that.
double miss(double sum, double wanted) {
  if (sum == wanted) return 0;
  return std::abs(sum - wanted) / std::max(std::abs(wanted), 1e-12);
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// Scores and what is asked of them.
struct Work {
  const ScoredRows& in;
  const std::vector<Explained>& explained;
  const AttributionOptions& options;
  std::vector<Attribution>& made;  ///< with scores and baselines

  RowVariant variant(size_t score, const std::vector<bool>& present) const {
    return with_words(score, explained[score], in.rows[in.scores[score].row], present);
  }
  std::vector<bool> all_words(size_t score, bool present = true) const {
    return std::vector<bool>(explained[score].words.size(), present);
  }
  /// The stream of draws for a score, whichever file it stands in.
  Stream stream(const char* purpose, size_t score) const {
    return Rng(options.seed).stream(purpose, name_hash(explained[score].name + "\n" + explained[score].part));
  }
};

void by_gradients(const Work& work, TokenGradient gradient) {
  std::vector<RowVariant> variants;
  for (size_t s = 0; s < work.explained.size(); ++s) variants.push_back(work.variant(s, work.all_words(s)));
  const auto scored = score_variants(work.in, variants, gradient);
  for (size_t s = 0; s < scored.size(); ++s) work.made[s].values = by_word(work.explained[s], scored[s].gradients);
}

/// Source: Sundararajan et al. 2017, equation 1 (arXiv 1703.01365), for all tokens at once.
std::vector<double> integrated(const Explained& of, std::span<const std::pair<double, double>> points,
                               std::span<const VariantScore> scored) {
  std::vector<double> tokens(scored[0].gradients.size());
  for (size_t p = 0; p < points.size(); ++p)
    for (size_t t = 0; t < tokens.size(); ++t) tokens[t] += points[p].second * scored[p].gradients[t];
  return by_word(of, tokens);
}

/// Whether values sum to the difference of the scores, but for a hundredth of it or for what rounding makes of these.
bool is_complete(const Attribution& made) {
  const double off = std::abs(sum_of(made.values) - (made.score - made.baseline));
  return *made.check <= most_off || off <= rounding * std::max(std::abs(made.score), std::abs(made.baseline));
}

void require_complete(const Explained& of, const Attribution& made) {
  require<ConfigError>(is_complete(made), of.name, of.part.empty() ? "" : " (" + of.part + ")",
                       ": the integrated gradients of ", counted(static_cast<uint64_t>(made.points), "point"),
                       " sum to ", digits(sum_of(made.values), 5), ", and the score is ",
                       digits(made.score - made.baseline, 5), " above that of the baseline, ",
                       fixed(100 * *made.check, 1), " % off, of which 1 % is allowed; raise --points");
}

/// Scores whose sum is off get twice as many points, up to eight times as many as were asked for.
void by_integrated_gradients(const Work& work) {
  std::vector<size_t> left(work.explained.size());
  std::iota(left.begin(), left.end(), size_t{0});
  for (int64_t more = 1; !left.empty(); more *= 2) {
    const auto points = gauss_legendre(more * work.options.points);
    std::vector<RowVariant> variants;
    for (const auto s : left) {
      const auto whole = work.variant(s, work.all_words(s)), none = work.variant(s, work.all_words(s, false));
      for (const auto& [point, weight] : points) {
        auto& kept = variants.emplace_back(whole).kept;
        for (size_t t = 0; t < kept.size(); ++t)
          if (none.kept[t] == 0) kept[t] = static_cast<float>(point);
      }
    }
    const auto scored = score_variants(work.in, variants, TokenGradient::by_difference);
    std::vector<size_t> off;
    for (size_t i = 0; i < left.size(); ++i) {
      auto& made = work.made[left[i]];
      made.values =
          integrated(work.explained[left[i]], points, std::span(scored).subspan(i * points.size(), points.size()));
      made.check = miss(sum_of(made.values), made.score - made.baseline);
      made.points = std::ssize(points);
      if (!is_complete(made)) off.push_back(left[i]);
      if (more == most_points) require_complete(work.explained[left[i]], made);
    }
    left = std::move(off);
  }
}

void by_occlusion(const Work& work) {
  std::vector<RowVariant> variants;
  for (size_t s = 0; s < work.explained.size(); ++s)
    for (size_t w = 0; w < work.explained[s].words.size(); ++w) {
      auto present = work.all_words(s);
      present[w] = false;
      variants.push_back(work.variant(s, present));
    }
  const auto scored = score_variants(work.in, variants);
  for (size_t i = 0; i < scored.size(); ++i) {
    auto& made = work.made[variants[i].score];
    made.values.push_back(made.score - scored[i].score);
  }
}

/// The contributions of words that come one after the other, in several orders and their reverses, so that they sum to
/// the difference of the scores. Source: Castro et al. 2009, section 3; Mitchell et al. 2022, section 4.2, of reverses.
void by_shap(const Work& work) {
  const auto samples = work.options.samples > 0 ? work.options.samples : 16;
  std::vector<RowVariant> variants;
  std::vector<std::vector<uint64_t>> orders;  // of each score, `2 samples`
  for (size_t s = 0; s < work.explained.size(); ++s) {
    auto stream = work.stream("shap", s);
    const auto words = work.explained[s].words.size();
    for (int64_t n = 0; n < samples; ++n) {
      const Permutation order(words, stream.bits64());
      auto& forward = orders.emplace_back();
      for (uint64_t i = 0; i < words; ++i) forward.push_back(order(i));
      orders.emplace_back(forward.rbegin(), forward.rend());
    }
    for (auto order = orders.end() - 2 * samples; order != orders.end(); ++order) {
      auto present = work.all_words(s, false);
      for (size_t i = 0; i + 1 < words; ++i) {
        present[(*order)[i]] = true;
        variants.push_back(work.variant(s, present));
      }
    }
  }
  const auto scored = score_variants(work.in, variants);
  size_t next = 0;
  for (size_t o = 0; o < orders.size(); ++o) {
    auto& made = work.made[o / static_cast<size_t>(2 * samples)];
    made.values.resize(orders[o].size());
    double before = made.baseline;
    for (size_t i = 0; i < orders[o].size(); ++i) {
      const double after = i + 1 < orders[o].size() ? scored[next++].score : made.score;
      made.values[orders[o][i]] += (after - before) / static_cast<double>(2 * samples);
      before = after;
    }
  }
  for (auto& made : work.made) made.check = miss(sum_of(made.values), made.score - made.baseline);
}

void by_lime(const Work& work) {
  const auto samples = work.options.samples > 0 ? work.options.samples : 1000;
  std::vector<RowVariant> variants;
  std::vector<std::vector<std::vector<bool>>> drawn;
  for (size_t s = 0; s < work.explained.size(); ++s) {
    auto stream = work.stream("lime", s);
    auto& texts = drawn.emplace_back();
    texts.push_back(work.all_words(s));
    while (std::ssize(texts) < samples) texts.push_back(drawn_words(work.explained[s].words.size(), stream));
    for (const auto& present : texts) variants.push_back(work.variant(s, present));
  }
  const auto scored = score_variants(work.in, variants);
  for (size_t s = 0; s < drawn.size(); ++s) {
    std::vector<double> scores;
    for (size_t i = 0; i < drawn[s].size(); ++i) scores.push_back(scored[s * drawn[s].size() + i].score);
    auto model = fitted_words(drawn[s], scores);
    work.made[s].values = std::move(model.slopes);
    work.made[s].check = model.r_squared;
  }
}

void by_rollout(const Work& work) {
  const auto setting = labelled_setting(work.in.network.model_config(), work.in.objectives);
  const auto* head = task_head_of(work.in.objectives.at(0));
  const bool reads_all = head != nullptr && head->head == HeadDesign::mean;
  for (size_t s = 0; s < work.explained.size(); ++s) {
    const auto& score = work.in.scores[s];
    const auto& row = work.in.rows[score.row];
    const auto reader = score.token >= 0 ? score.token : reads_all ? -1 : row.class_token;
    work.made[s].values = by_word(work.explained[s], rolled_out(work.in.network, setting, row, reader));
  }
}

}  // namespace

RowVariant with_words(size_t score, const Explained& of, const TaskRow& row, const std::vector<bool>& present) {
  RowVariant variant{.score = score, .kept = std::vector<float>(row.ids.size(), 1)};
  for (size_t w = 0; w < present.size(); ++w)
    for (const auto at : of.words[w].positions)
      if (!present[w]) variant.kept[static_cast<size_t>(at)] = 0;
  return variant;
}

std::vector<std::pair<double, double>> gauss_legendre(int64_t n) {
  std::vector<std::pair<double, double>> points;
  const auto order = static_cast<double>(n);
  for (int64_t i = n; i >= 1; --i) {
    double x = std::cos(std::numbers::pi * (static_cast<double>(i) - 0.25) / (order + 0.5)), slope = 0;
    for (int round = 0; round < 100; ++round) {
      double value = 1, before = 0;  // Legendre's polynomials of degrees k and k - 1
      for (int64_t k = 1; k <= n; ++k) {
        const auto degree = static_cast<double>(k);
        before = std::exchange(value, ((2 * degree - 1) * x * value - (degree - 1) * before) / degree);
      }
      slope = order * (x * value - before) / (x * x - 1);
      const double step = value / slope;
      x -= step;
      if (std::abs(step) < 1e-15) break;
    }
    points.emplace_back((1 + x) / 2, 1 / ((1 - x * x) * slope * slope));
  }
  return points;
}

std::vector<bool> drawn_words(size_t words, Stream& stream) {
  const auto absent = 1 + stream.below(words);
  const Permutation order(words, stream.bits64());
  std::vector<bool> present(words, true);
  for (uint64_t i = 0; i < absent; ++i) present[order(i)] = false;
  return present;
}

LinearModel fitted_words(const std::vector<std::vector<bool>>& present, const std::vector<double>& scores) {
  constexpr double width = 25, alpha = 1;
  const auto texts = std::ssize(present), words = std::ssize(present.at(0));
  auto x = at::zeros({texts, words}, at::kDouble), weights = at::zeros({texts, 1}, at::kDouble);
  for (int64_t s = 0; s < texts; ++s) {
    const auto& row = present[static_cast<size_t>(s)];
    for (int64_t w = 0; w < words; ++w) x.data_ptr<double>()[s * words + w] = row[static_cast<size_t>(w)];
    const auto left = static_cast<double>(std::ranges::count(row, true));
    const double distance = 100 * (1 - std::sqrt(left / static_cast<double>(words)));
    weights.data_ptr<double>()[s] = std::sqrt(std::exp(-distance * distance / (width * width)));
  }
  const auto y = at::tensor(scores, at::kDouble).unsqueeze(1);
  const auto mean = [&](const Tensor& of) { return (of * weights).sum(0, true) / weights.sum(); };
  const auto centred = x - mean(x), wanted = y - mean(y);
  const auto squares = at::matmul(centred.t(), weights * centred) + alpha * at::eye(words, at::kDouble);
  const auto slopes = at::linalg_solve(squares, at::matmul(centred.t(), weights * wanted));  // [n, 1]
  const double left = (weights * (wanted - at::matmul(centred, slopes)).square()).sum().item<double>();
  const double all = (weights * wanted.square()).sum().item<double>();
  return {.slopes = {slopes.data_ptr<double>(), slopes.data_ptr<double>() + words},
          .r_squared = all > 0 ? 1 - left / all : 1};
}

std::vector<double> rolled_out(Network& network, const LabelledSetting& setting, const TaskRow& row, int64_t reader) {
  const at::NoGradGuard no_grad;
  const InEvaluation evaluation(network);
  Traces traces;
  network.backbone->hidden(to_device(labelled_batch(setting, {&row}, /*with_targets=*/false), device_of(network)),
                           &traces);
  const auto length = std::ssize(row.ids);
  auto joined = at::eye(length, at::kDouble);
  bool has_maps = !traces.encoder.attentions.empty() && traces.decoder.attentions.empty();
  for (const auto& layer : traces.encoder.attentions) {
    has_maps = has_maps && layer.dim() == 4 && layer.size(2) == length && layer.size(3) == length;
    if (!has_maps) break;
    const auto mixed = (layer[0].to(at::kCPU, at::kDouble).mean(0) + at::eye(length, at::kDouble)) / 2;
    joined = at::matmul(mixed / mixed.sum(1, true), joined);
  }
  require<ConfigError>(has_maps, "--method rollout: follows the attention of one stack over all its tokens, which the ",
                       "network does not have; choose another method");
  const auto read = (reader < 0 ? joined.mean(0) : joined[reader]).contiguous();
  return {read.data_ptr<double>(), read.data_ptr<double>() + length};
}

std::vector<Attribution> attributions_of(const ScoredRows& in, const std::vector<Explained>& explained,
                                         const AttributionOptions& options) {
  std::vector<Attribution> made(explained.size());
  const Work work{.in = in, .explained = explained, .options = options, .made = made};
  std::vector<RowVariant> ends;
  for (size_t s = 0; s < explained.size(); ++s)
    for (const bool present : {true, false}) ends.push_back(work.variant(s, work.all_words(s, present)));
  const auto scored = score_variants(in, ends);
  for (size_t s = 0; s < explained.size(); ++s) {
    made[s].score = scored[2 * s].score;
    made[s].probability = scored[2 * s].probability;
    made[s].baseline = scored[2 * s + 1].score;
  }
  switch (options.method) {
    using enum AttributionMethod;
    case integrated_gradients:
      by_integrated_gradients(work);
      break;
    case gradient_norm:
      by_gradients(work, TokenGradient::length);
      break;
    case gradient_input:
      by_gradients(work, TokenGradient::by_input);
      break;
    case shap:
      by_shap(work);
      break;
    case lime:
      by_lime(work);
      break;
    case occlusion:
      by_occlusion(work);
      break;
    case rollout:
      by_rollout(work);
      break;
  }
  return made;
}

}  // namespace cloze
