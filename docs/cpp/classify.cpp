// The label of each line of standard input and its probability, by a fine-tuned run that was exported both ways.
// classify FILE FOLDER < texts
#include <torch/script.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/json.h"
#include "data/tokenizer.h"

int main(int count, char** words) {
  if (count != 3) {
    std::cerr << "classify FILE FOLDER < texts\n";
    return 2;
  }
  torch::InferenceMode guard;
  torch::jit::ExtraFilesMap files{{"config.json", ""}, {"tokenizer/tokenizer_config.json", ""}};
  auto model = torch::jit::load(words[1], at::kCPU, files);
  const auto config = cloze::parse_json(files["config.json"]);
  const auto limits = cloze::parse_json(files["tokenizer/tokenizer_config.json"]);
  const auto tokenizer = cloze::Tokenizer::open(words[2]);
  const auto frame = tokenizer.frame(cloze::TextReader{.kind = config["model_type"]});
  const auto longest = static_cast<size_t>(limits.value("model_max_length", 1e9));
  const auto room = longest - frame.before.size() - frame.after.size();
  for (std::string line; std::getline(std::cin, line);) {
    const auto tokens = tokenizer.encode(line);
    auto ids = frame.before;
    ids.insert(ids.end(), tokens.begin(), tokens.begin() + std::min(room, tokens.size()));
    ids.insert(ids.end(), frame.after.begin(), frame.after.end());
    const auto row = torch::tensor(ids, torch::kLong).unsqueeze(0);  // [1, T]
    const auto logits = model.forward({row}).toGenericDict().at("logits").toTensor();
    const auto [probability, label] = logits.softmax(-1).max(-1);
    std::cout << config["id2label"][std::to_string(label.item<int64_t>())].get<std::string>() << "\t"
              << probability.item<double>() << "\n";
  }
}
