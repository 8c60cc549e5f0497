#include "train/progress_log.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "data/prepare_options.h"
#include "run/config_io.h"
#include "train/phases.h"
#include "train/warnings.h"

namespace cloze {

namespace {

/// `-` for a loss without predictions.
std::string fixed(double value, int digits) {
  if (std::isnan(value)) return "-";
  char text[48];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

void announce_text(const Session& session) {
  const auto& store = session.store;
  log_info("data",
           words(session.config.data.tokens, ": ", thousands(store.num_documents()), " documents, ",
                 thousands(store.num_tokens()), " tokens, ", thousands(session.collator.size()),
                 " sequences an epoch; held out: ", thousands(session.held_out_store.num_documents()), " documents"));
}

/// Says that the published vocabularies of the model are of another kind than that of the tokens, unless that belongs
/// to a model.
void announce_other_vocabulary(const Session& session) {
  const auto model = kind_of(session.config.model);
  const auto& tokenizer = session.store.tokenizer();
  const auto published = published_kind(model);
  if (!published || tokenizer.belongs_to_model() || tokenizer.kind() == name_of(*published)) return;
  log_info("data", words("the published vocabularies of ", model, " are ", *published, ", that of the tokens is ",
                         tokenizer.kind(), "; cloze prepare --for ", model, " trains the former"));
}

void announce_model(const Session& session) {
  const auto& config = session.config;
  const auto& stepper = *session.stepper;
  const auto rows = backbone_of(config.model).vocab_size, tokens = session.store.tokenizer().size();
  const auto used =
      rows > tokens ? words(", of which the tokenizer uses ", thousands(static_cast<uint64_t>(tokens))) : "";
  log_info("model", words(kind_of(config.model), ", ", thousands(static_cast<uint64_t>(stepper.parameters())),
                          " parameters, vocabulary ", thousands(static_cast<uint64_t>(rows)), used));
  std::string names;
  for (const auto& objective : session.network->objectives) names += (names.empty() ? "" : " + ") + objective->name();
  const int threads = at::get_num_threads();
  log_info("train", words(names, ", ", rows_of_phase(config, 0), " a step, ", stepper.precision_description(), ", ",
                          threads, threads == 1 ? " thread" : " threads"));
  for (const auto& objective : config.objectives)
    log_info("train", words(kind_of(objective), " predicts ", as_kind(objective).prediction()));
  for (size_t i = 0; i < config.train.phases.size(); ++i)
    log_info("train", words("from ", shortest(100 * config.train.phases[i].from), " % of the budget on, ",
                            rows_of_phase(config, static_cast<int64_t>(i) + 1), " a step"));
  if (config.train.ema_decay > 0)
    log_info("train", words("evaluation, checkpoints and exports have the average of the weights (train.ema_decay ",
                            shortest(config.train.ema_decay), ")"));
  for (const auto& line : deviations(config)) log_info("train", "differs from the preset: " + line);
}

void announce_evaluation(const Session& session) {
  const auto& measures = session.measures;
  const auto missing = missing_sequences(measures, session.config.evaluation.sequences);
  if (!missing.empty())
    log_info("data", words("the held-out text is shorter than evaluation.sequences asks for (", missing,
                           "), so that standard errors are larger"));
  const auto of_tokens =
      std::count_if(measures.begin(), measures.end(), [](const auto& measure) { return measure.unigram.has_value(); });
  for (const auto& measure : measures) {
    if (!measure.unigram) continue;
    log_info("train",
             words("unigram baseline on held-out text", of_tokens > 1 ? " (" + measure.name + ")" : "", ": loss ",
                   fixed(measure.unigram->loss, 4), ", accuracy ", fixed(measure.unigram->accuracy, 4)));
  }
}

}  // namespace

void announce(const Session& session) {
  announce_text(session);
  announce_other_vocabulary(session);
  announce_model(session);
  const auto unbalanced = pair_warning(session.config.objectives, session.collator);
  if (!unbalanced.empty()) log_warning("train", unbalanced);
  if (const auto few = few_masked_warning(session.config.objectives); !few.empty()) log_warning("train", few);
  announce_evaluation(session);
}

void show_progress(const Session& session, double rate, double speed, bool plain) {
  const auto& state = session.state;
  const auto& line = state.line;
  const auto steps = session.config.train.budget.steps;
  const auto last = steps > 0 ? "/" + std::to_string(steps) : "";
  const auto [done, total] = progress(session);
  const double share = done / total;
  const auto left = share > 0 ? duration(state.seconds * std::max(0.0, 1 - share) / share) : "?";
  char learning_rate[32];
  std::snprintf(learning_rate, sizeof learning_rate, "lr %.2e", rate);
  Progress shown{
      {words("step  ", state.step, last), "loss " + fixed(line.loss(), 4), "eta " + left,
       thousands(static_cast<uint64_t>(speed)) + " tok/s", learning_rate, "|g| " + fixed(line.grad_norm(), 2)},
      share};
  if (line.parts.size() > 1)
    for (const auto& part : line.parts) shown.fields.push_back(part.name + " " + fixed(part.loss(), 3));
  log_progress(shown, plain);
}

}  // namespace cloze
