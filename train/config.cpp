#include "train/config.h"

#include <vector>

namespace cloze {

namespace {

void check_model(const BertConfig& m, std::vector<std::string>& broken) {
  if (m.hidden_size % m.num_attention_heads != 0)
    broken.push_back(words("model.hidden_size ", m.hidden_size, " is not a multiple of model.num_attention_heads ", m.num_attention_heads,
                           "; choose a width that the heads divide"));
}

}  // namespace

void validate(const RunConfig& c) {
  std::vector<std::string> broken;
  std::visit([&](const auto& model) { check_model(model, broken); }, c.model);
  const auto& model = std::get<BertConfig>(c.model);
  if (c.data.max_seq_length > model.max_position_embeddings)
    broken.push_back(words("data.max_seq_length ", c.data.max_seq_length, " is longer than model.max_position_embeddings ", model.max_position_embeddings,
                           "; shorten the sequences or give the model more positions"));
  if (c.objectives.empty()) broken.push_back("objectives is empty; name at least one, for instance `- kind: mlm`");
  int mlm = 0, nsp = 0;
  for (const auto& objective : c.objectives) {
    if (const auto* o = std::get_if<MlmConfig>(&objective)) {
      ++mlm;
      if (o->mask_prob + o->random_prob > 1 + 1e-9)
        broken.push_back(words("mlm: mask_prob ", shortest(o->mask_prob), " and random_prob ", shortest(o->random_prob), " are more than 1 together; lower one of them"));
      if (o->draw_per == "word" && o->unit != "word")
        broken.push_back("mlm: draw_per: word needs unit: word; choose whole words, or draw for each token");
    } else {
      ++nsp;
    }
  }
  if (mlm > 1) broken.push_back("objective mlm is given twice; keep one of them");
  if (nsp > 1) broken.push_back("objective nsp is given twice; keep one of them");
  if (nsp > 0 && model.type_vocab_size < 2)
    broken.push_back("nsp needs two segment types, model.type_vocab_size is 1; raise it to 2, or remove nsp from the objectives");
  if (nsp > 0 && c.data.max_seq_length < 5)
    broken.push_back(words("nsp needs room for two segments, data.max_seq_length is ", c.data.max_seq_length, "; raise it to at least 5"));
  const auto& budget = c.train.budget;
  if (budget.steps == 0 && budget.tokens == 0 && budget.minutes == 0)
    broken.push_back("train.budget is not limited; give steps, tokens or minutes");
  if (c.schedule.warmup >= 1 && budget.steps == 0)
    broken.push_back(words("schedule.warmup ", shortest(c.schedule.warmup), " counts steps, but train.budget.steps is not given; give a share below 1"));
  if (c.schedule.warmup >= 1 && budget.steps > 0 && c.schedule.warmup >= static_cast<double>(budget.steps))
    broken.push_back(words("schedule.warmup ", shortest(c.schedule.warmup), " is not shorter than train.budget.steps ", budget.steps, "; shorten it"));
  const auto& device = c.train.device;
  if (device != "cpu" && device != "cuda" && device.rfind("cuda:", 0) != 0)
    broken.push_back(words("train.device '", device, "' is unknown; use cpu, cuda or cuda:N"));
  std::string text;
  for (const auto& line : broken) text += (text.empty() ? "" : "\n") + line;
  if (!text.empty()) throw ConfigError(text);
}

}  // namespace cloze
