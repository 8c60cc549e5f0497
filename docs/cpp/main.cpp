// What a file of `cloze export --to torchscript` says of a row of tokens: every output by its name and, where the model
// writes, a text.   reader FILE ID...
#include <torch/script.h>

#include <iostream>
#include <string>
#include <vector>

int main(int count, char** words) {
  if (count < 3) {
    std::cerr << "reader FILE ID...\n";
    return 2;
  }
  torch::InferenceMode guard;
  auto model = torch::jit::load(words[1]);
  std::vector<int64_t> ids;
  for (int i = 2; i < count; ++i) ids.push_back(std::stoll(words[i]));
  const auto row = torch::tensor(ids, torch::kLong).unsqueeze(0);  // [1, T]
  const auto outputs = model.forward({row}).toGenericDict();       // by name: logits, ...
  for (const auto& one : outputs) std::cout << one.key().toStringRef() << " " << one.value().toTensor().sizes() << "\n";
  if (const auto generate = model.find_method("generate"))
    std::cout << (*generate)({row}, {{"max_new_tokens", 20}, {"num_beams", 4}}).toTensor() << "\n";
}
