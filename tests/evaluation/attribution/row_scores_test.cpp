// Scores of rows whose embeddings are given, and their gradients, in every family.
#include "evaluation/attribution/row_scores.h"

#include <ATen/Parallel.h>

#include "tests/evaluation/attribution/attributed.h"
#include "tests/support/catch.h"
#include "tests/support/close_to.h"

using namespace cloze;

namespace {

std::vector<ModelConfig> all_families() {
  auto longformer = small<LongformerConfig>();
  longformer.attention = WindowAttention{.attention_window = {4}, .global_tokens = GlobalTokens::none};
  auto modernbert = small<ModernBertConfig>();
  modernbert.attention = AlternatingAttention{.global_attn_every_n_layers = 2, .local_attention = 6};
  auto t5 = small<T5Config>();
  t5.d_kv = 0;
  t5.hidden_act = Activation::gelu_new;  // relu has no derivative where it bends
  auto encoder = t5;
  encoder.architecture = Architecture::encoder;
  auto roberta = small<RobertaConfig>();
  roberta.pad_token_id = 0;
  auto albert = small<AlbertConfig>();
  albert.embedding_size = 8;
  auto electra = small<ElectraConfig>();
  electra.embedding_size = 8;
  auto performer = small<PerformerConfig>();
  performer.attention = PerformerAttention{.nb_features = 24};
  return {small(),
          roberta,
          albert,
          electra,
          small<DistilBertConfig>(),
          longformer,
          modernbert,
          performer,
          small<Gpt2Config>(),
          encoder,
          t5,
          small<BartConfig>(),
          small<MBartConfig>(),
          small<XlnetConfig>()};
}

/// A row for a family, and the three kinds of its tokens that are replaced in part.
TaskRow family_row(const ModelConfig& model) {
  auto row = row_of_words(7);
  row.class_token = static_cast<int64_t>(row.ids.size()) - 1;
  row.segments.assign(row.ids.size(), 0);
  if (!backbone_of(model).is_two_stream() && !backbone_of(model).token_types) row.segments.clear();
  return row;
}

}  // namespace

TEST_CASE("whole words give the scores of the ids, and words that are gone those of the baseline's id, in every family",
          "[evaluation][attribution]") {
  for (const auto& model : all_families()) {
    INFO(kind_of(model));
    const Objectives objectives{three_labels()};
    const auto network = explained_network(model, objectives[0]);
    std::vector<TaskRow> rows{family_row(model)};
    const std::vector<RowScore> scores{{.row = 0, .column = 2}};
    const ScoredRows in{*network, objectives, rows, scores, /*baseline=*/9};
    RowVariant whole{.kept = std::vector<float>(rows[0].ids.size(), 1)}, without = whole;
    without.kept[3] = without.kept[4] = 0;
    const auto found = score_variants(in, {whole, without});
    auto replaced = rows;
    replaced[0].ids[3] = replaced[0].ids[4] = 9;
    CHECK(std::abs(found[0].score - run_rows(*network, objectives, rows).logits[0][2].item<double>()) < 1e-5);
    CHECK(std::abs(found[1].score - run_rows(*network, objectives, replaced).logits[0][2].item<double>()) < 1e-5);
    CHECK(std::abs(found[0].score - found[1].score) > 1e-3);
  }
}

TEST_CASE("gradients along the way to the baseline are central differences, and fused those of double, in every family",
          "[evaluation][attribution]") {
  for (const auto& model : all_families()) {
    INFO(kind_of(model));
    const Objectives objectives{three_labels()};
    const auto network = explained_network(model, objectives[0]);
    const std::vector<TaskRow> rows{family_row(model)};
    const std::vector<RowScore> scores{{.row = 0, .column = 1}};
    const ScoredRows in{*network, objectives, rows, scores, /*baseline=*/9};
    RowVariant half{.kept = std::vector<float>(rows[0].ids.size(), 1)};
    for (size_t t = 1; t + 1 < half.kept.size(); ++t) half.kept[t] = 0.5F;
    const auto fused = score_variants(in, {half}, TokenGradient::by_difference)[0].gradients;
    convert_params(*network, at::kDouble);
    const auto exact = score_variants(in, {half}, TokenGradient::by_difference)[0].gradients;
    const double largest = at::tensor(exact, at::kDouble).abs().max().item<double>();
    CHECK(largest > 1e-3);
    CHECK(error_of(at::tensor(fused, at::kDouble), at::tensor(exact, at::kDouble)) < 2e-4);
    constexpr float step = 1.0F / 1024;
    for (const size_t t : {size_t{1}, size_t{4}, half.kept.size() - 2}) {
      auto more = half, less = half;
      more.kept[t] += step;
      less.kept[t] -= step;
      const auto ends = score_variants(in, {more, less});
      CHECK(std::abs((ends[0].score - ends[1].score) / (2 * step) - exact[t]) < 3e-3 * std::max(1.0, largest));
    }
  }
}

TEST_CASE("the three gradients of a token are its length, times the embedding, and times the way from the baseline",
          "[evaluation][attribution]") {
  const OneRow one(5);
  const RowVariant whole{.kept = std::vector<float>(7, 1)};
  const auto of = [&](TokenGradient gradient) {
    return at::tensor(score_variants(one.in(), {whole}, gradient)[0].gradients, at::kDouble);
  };
  // The oracle moves the embeddings themselves: the words have rows of the table of their own.
  const auto table = one.network->backbone->token_embedding().value();
  const auto score = [&] { return run_rows(*one.network, one.objectives, one.rows).logits[0][1].item<double>(); };
  for (const size_t t : {size_t{1}, size_t{3}}) {
    const auto row = table[one.rows[0].ids[t]];
    const auto kept = row.clone(), baseline = table[4].clone();
    auto gradient = at::zeros({12}, at::kDouble);
    for (int64_t d = 0; d < 12; ++d) {
      constexpr float step = 4e-3F;
      row[d] = kept[d] + step;
      const double above = score();
      row[d] = kept[d] - step;
      gradient[d] = (above - score()) / (2 * step);
      row[d] = kept[d];
    }
    const auto at = static_cast<int64_t>(t);
    const auto is_near = [&](TokenGradient kind, const Tensor& wanted) {
      return std::abs(of(kind)[at].item<double>() - wanted.item<double>()) < 5e-3;
    };
    CHECK(is_near(TokenGradient::length, gradient.norm()));
    CHECK(is_near(TokenGradient::by_input, (gradient * kept).sum()));
    CHECK(is_near(TokenGradient::by_difference, (gradient * (kept - baseline)).sum()));
  }
}

TEST_CASE("a probability is among labels, of itself, or among the tokens of a row", "[evaluation][attribution]") {
  const Objectives spans{SpansConfig{}};
  const auto network = explained_network(small(), spans[0]);
  auto rows = std::vector<TaskRow>{row_of_words(6)};
  rows[0].second_begin = 3;
  rows[0].second_end = 7;
  const std::vector<RowScore> scores{{.row = 0, .token = 4, .column = 0, .among = ProbabilityAmong::tokens},
                                     {.row = 0, .token = 4, .column = 1, .among = ProbabilityAmong::itself},
                                     {.row = 0, .token = 5, .column = 1, .among = ProbabilityAmong::none},
                                     {.row = 0, .token = 5, .column = 1, .among = ProbabilityAmong::labels}};
  std::vector<RowVariant> variants;
  for (size_t s = 0; s < scores.size(); ++s) variants.push_back({.score = s, .kept = std::vector<float>(8, 1)});
  const auto found = score_variants({*network, spans, rows, scores, 4}, variants);
  const auto logits = run_rows(*network, spans, rows).logits[0].to(at::kDouble);  // [T, 2]
  CHECK(std::abs(found[0].probability - at::softmax(logits, 0)[4][0].item<double>()) < 1e-6);
  CHECK(std::abs(found[1].probability - at::sigmoid(logits[4][1]).item<double>()) < 1e-6);
  CHECK(found[2].probability == found[2].score);
  CHECK(std::abs(found[3].probability - at::softmax(logits, 1)[5][1].item<double>()) < 1e-6);
}

TEST_CASE("the logit of a token of a target is that after those before it, and its gradients are central differences",
          "[evaluation][attribution]") {
  auto t5 = small<T5Config>();
  t5.d_kv = 0;
  t5.hidden_act = Activation::gelu_new;
  const std::vector<std::pair<ModelConfig, ObjectiveConfig>> generative{
      {small<Gpt2Config>(), default_objective<ClmConfig>()},
      {small<BartConfig>(), default_objective<DenoisingConfig>()},
      {t5, default_objective<SpanCorruptionConfig>()}};
  for (const auto& [model, objective] : generative) {
    INFO(kind_of(model));
    const Objectives objectives{objective};
    const auto network = explained_network(model, objective);
    std::vector<TaskRow> rows{row_of_words(5), row_of_words(5, 9)};
    rows[0].target = {7, 11, 6, 3};
    rows[1].target = {8, 3};
    const std::vector<RowScore> scores{{.row = 1, .token = 0, .column = 8, .among = ProbabilityAmong::labels},
                                       {.row = 0, .token = 2, .column = 6, .among = ProbabilityAmong::labels}};
    const ScoredRows in{*network, objectives, rows, scores, /*baseline=*/4};
    RowVariant whole{.score = 1, .kept = std::vector<float>(7, 1)}, other{.kept = whole.kept}, without = whole;
    without.kept[2] = 0;
    const auto found = score_variants(in, {other, whole, without});  // of targets of two lengths
    // By the losses of training: that of token 2 alone is what a longer target adds to a shorter one.
    const auto loss_to = [&](std::vector<int32_t> target, const std::vector<int32_t>& ids) {
      auto row = rows[0];
      row.target = std::move(target);
      row.ids = ids;
      return target_losses(*network, objectives, {row})[0].sum;
    };
    auto replaced = rows[0].ids;
    replaced[2] = 4;
    const auto wanted = [&](const std::vector<int32_t>& ids) {
      return loss_to({7, 11, 6}, ids) - loss_to({7, 11}, ids);
    };
    CHECK(std::abs(-std::log(found[1].probability) - wanted(rows[0].ids)) < 1e-4);
    CHECK(std::abs(-std::log(found[2].probability) - wanted(replaced)) < 1e-4);
    const auto gradients = score_variants(in, {whole}, TokenGradient::by_difference)[0].gradients;
    convert_params(*network, at::kDouble);
    for (const size_t t : {size_t{1}, size_t{4}}) {
      auto more = whole, less = whole;
      more.kept[t] += 1.0F / 1024;
      less.kept[t] -= 1.0F / 1024;
      const auto ends = score_variants(in, {more, less});
      CHECK(std::abs((ends[0].score - ends[1].score) * 512 - gradients[t]) < 5e-3);
    }
  }
}

TEST_CASE("scores are the same bits whatever the threads and in which order variants stand",
          "[evaluation][attribution]") {
  const OneRow one(9);
  std::vector<RowVariant> variants;
  for (int i = 0; i < 700; ++i) {
    variants.push_back({.kept = std::vector<float>(11, 1)});
    for (size_t t = 1; t < 10; ++t) variants.back().kept[t] = static_cast<float>((i * t) % 7) / 7;
  }
  const auto with_threads = [&](int threads) {
    at::set_num_threads(threads);
    return score_variants(one.in(), variants, TokenGradient::by_difference);
  };
  const auto a = with_threads(1), b = with_threads(3);
  for (size_t i = 0; i < variants.size(); ++i) {
    REQUIRE(a[i].score == b[i].score);
    REQUIRE(a[i].gradients == b[i].gradients);
  }
}

TEST_CASE("encoders and decoders with tables of their own are refused, for words have one embedding there",
          "[evaluation][attribution]") {
  auto vaswani = small<VaswaniConfig>();
  vaswani.shared_embeddings = false;
  const auto network = explained_network(vaswani, three_labels());
  CHECK_THROWS_WITH(require_embeddings(*network),
                    Catch::Contains("encoder and decoder have token embeddings of their "));
  CHECK_NOTHROW(require_embeddings(*explained_network(small<BartConfig>(), three_labels())));
}
