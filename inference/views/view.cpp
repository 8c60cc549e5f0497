#include "inference/views/view.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace cloze {

namespace {

using nlohmann::json;

json groups_json(const std::vector<TokenGroup>& groups) {
  json list = json::array();
  for (const auto& group : groups)
    list.push_back({{"name", group.name}, {"count", group.count}, {"loss", group.loss}, {"accuracy", group.accuracy}});
  return list;
}

/// How the tokens of a view are predicted: of rtd by the generator, since the discriminator predicts none.
ScoringOptions predicting(const LoadedRun& run, ScoringOptions options) {
  options.takes_stride = false;
  if (options.form.value_or(default_form(run.config)) != ScoringForm::detection) return options;
  require<ConfigError>(scoring_fault(run.config, ScoringForm::pll).empty(), run.folder,
                       ": a view is of predicted tokens, and a discriminator of rtd without a generator predicts "
                       "none; view a run of mlm or clm");
  options.form = ScoringForm::pll;
  return options;
}

}  // namespace

PrincipalPlane principal_components(const Tensor& embeddings) {
  const auto centred = embeddings - embeddings.mean(0, /*keepdim=*/true);
  const auto [u, singular, v] = at::linalg_svd(centred, /*full_matrices=*/false);
  const double all = singular.square().sum().item<double>();
  PrincipalPlane plane;
  const auto n = embeddings.size(0), kept = std::min<int64_t>(2, singular.numel());
  auto scores = at::zeros({n, 2}, at::kDouble);
  for (int64_t k = 0; k < kept; ++k) {
    auto column = u.select(1, k) * singular[k];
    const auto furthest = column.abs().argmax();
    if (column[furthest.item<int64_t>()].item<double>() < 0) column = -column;
    scores.select(1, k).copy_(column);
    const double fraction = all > 0 ? singular[k].square().item<double>() / all : 0;
    (k == 0 ? plane.first_share : plane.second_share) = fraction;
  }
  for (int64_t i = 0; i < n; ++i) plane.points.emplace_back(scores[i][0].item<double>(), scores[i][1].item<double>());
  return plane;
}

View view_of(const LoadedRun& run, const std::vector<std::string>& texts, const ViewOptions& options) {
  require<DataError>(!texts.empty(), "there is no text to look at; give a file with one text a line");
  const auto scoring = predicting(run, options.scoring);
  View view{.run = run.folder,
            .checkpoint = run.checkpoint,
            .scored_by = Scorer(run, scoring).description(),
            .texts = static_cast<int64_t>(texts.size())};
  const auto tokens = predict_tokens(run, texts, scoring);
  require<DataError>(!tokens.empty(), "the texts have no token that ", run.folder,
                     " predicts; give texts that its tokenizer knows");
  view.read = losses_of_texts(run.tokenizer, tokens, options.read);
  view.positions = by_position(tokens);
  view.frequencies = by_frequency(tokens, options.training_counts);
  view.has_training_counts = !options.training_counts.empty();
  view.calibration = calibration_of(tokens);
  const auto count = std::min(texts.size(), static_cast<size_t>(options.sentences));
  view.sentences.assign(texts.begin(), texts.begin() + static_cast<std::ptrdiff_t>(count));
  const auto embeddings = embed_texts(run, view.sentences, options.embeddings);
  view.projection = principal_components(embeddings);
  if (count > 1) view.mean_cosine = mean_cosine(embeddings);
  view.sentence = options.sentence.empty() ? texts.front() : options.sentence;
  view.attention = attention_maps(run, view.sentence);
  return view;
}

json to_json(const View& view) {
  json bins = json::array();
  for (const auto& bin : view.calibration.bins)
    bins.push_back({{"low", bin.low},
                    {"high", bin.high},
                    {"count", bin.count},
                    {"confidence", bin.confidence},
                    {"accuracy", bin.accuracy}});
  return {
      {"run", view.run},
      {"checkpoint", view.checkpoint},
      {"scored_by", view.scored_by},
      {"texts", view.texts},
      {"by_position", groups_json(view.positions)},
      {"by_frequency", groups_json(view.frequencies)},
      {"frequency_of", view.has_training_counts ? "training" : "texts"},
      {"calibration", {{"error", view.calibration.error}, {"count", view.calibration.count}, {"bins", bins}}},
      {"mean_cosine", view.mean_cosine ? json(*view.mean_cosine) : json()},
      {"projection",
       {{"points", view.projection.points}, {"shares", {view.projection.first_share, view.projection.second_share}}}}};
}

}  // namespace cloze
