#include "objectives/span_corruption/lengths.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace cloze {

NoiseCount noise_count(int64_t length, double density, double mean_length) {
  if (length < 2) return {0, 0};
  const int64_t noise =
      std::clamp<int64_t>(std::llrint(static_cast<double>(length) * density), 1, length - 1);  // half to even
  return {noise, std::clamp<int64_t>(std::llrint(static_cast<double>(noise) / mean_length), 1,
                                     std::min(noise, length - noise))};
}

namespace {

struct Lengths {
  int64_t tokens, inputs, targets;
};

Lengths lengths_of(int64_t tokens, double density, double mean_length) {
  const auto [noise, spans] = noise_count(tokens, density, mean_length);
  return {tokens, tokens - noise + spans + 1, noise + spans + 1};
}

Lengths longest_text(int64_t inputs_length, double density, double mean_length) {
  // At density 1 a source is never full, and the loop would not end.
  require<ConfigError>(density >= 0 && density < 1 && mean_length >= 1, "Span corruption got a noise density of ",
                       density, " and a mean span length of ", mean_length,
                       "; the density must be in [0, 1), the length at least 1.");
  auto found = lengths_of(std::max<int64_t>(inputs_length - 1, 0), density, mean_length);
  for (auto next = found; next.inputs <= inputs_length; next = lengths_of(next.tokens + 1, density, mean_length))
    found = next;
  // Both sides get the same round length.
  if (density == 0.5 && found.targets > found.inputs) {
    --found.tokens;
    --found.targets;
  }
  return found;
}

}  // namespace

int64_t raw_length(int64_t inputs_length, double density, double mean_length) {
  return longest_text(inputs_length, density, mean_length).tokens;
}
int64_t targets_length(int64_t inputs_length, double density, double mean_length) {
  return longest_text(inputs_length, density, mean_length).targets;
}

}  // namespace cloze
