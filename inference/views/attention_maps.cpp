#include "inference/views/view.h"

#include <algorithm>
#include <cmath>

#include "inference/scoring/embeddings.h"
#include "run/device.h"

namespace cloze {

namespace {

void add_number(std::string& bytes, uint32_t value, int count) {
  for (int i = 0; i < count; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
}

/// RFC 4648, section 4.
std::string base64(const std::string& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

/// The rows of attentions [B, H, T, S] of one sentence, or nothing for those over other tokens.
std::vector<std::vector<float>> maps_of(const Tensor& probabilities, int64_t length) {
  std::vector<std::vector<float>> heads;
  if (probabilities.dim() != 4 || probabilities.size(2) != length || probabilities.size(3) != length) return heads;
  for (int64_t h = 0; h < probabilities.size(1); ++h) {
    const auto map = probabilities[0][h].to(at::kCPU).to(at::kFloat).contiguous();
    heads.emplace_back(map.data_ptr<float>(), map.data_ptr<float>() + map.numel());
  }
  return heads;
}

}  // namespace

AttentionMaps attention_maps(const LoadedRun& run, const std::string& text) {
  const at::NoGradGuard no_grad;
  const auto ids = framed_text(run, text);
  const auto length = static_cast<int64_t>(ids.size());
  const auto room = backbone_of(run.config.model).max_input_length();
  require<DataError>(length > 0, "the sentence has no tokens; give another");
  require<DataError>(length <= room, "the sentence has ", length, " tokens, the model reads at most ", room,
                     "; shorten it");
  const Inputs inputs{.input_ids = at::tensor(ids, at::kLong).unsqueeze(0).to(device_of(*run.network))};
  Traces traces;
  if (backbone_of(run.config.model).is_encoder_decoder())
    run.network->backbone->encode(inputs, &traces.encoder);
  else
    run.network->backbone->hidden(inputs, &traces);
  AttentionMaps maps;
  for (const auto id : ids) maps.tokens.push_back(run.tokenizer.readable_piece(id));
  for (const auto& probabilities : traces.encoder.attentions)
    if (auto heads = maps_of(probabilities, length); !heads.empty()) maps.heads.push_back(std::move(heads));
  return maps;
}

std::vector<float> shrunk(std::vector<float> map, int64_t size, int64_t side) {
  if (size <= side) return map;
  const auto small = at::adaptive_avg_pool2d(at::from_blob(map.data(), {1, size, size}, at::kFloat), {side, side});
  return {small.const_data_ptr<float>(), small.const_data_ptr<float>() + small.numel()};
}

std::string picture_uri(const std::vector<float>& values, int64_t size, float highest) {
  const auto side = static_cast<uint32_t>(size), stride = (side + 3) / 4 * 4, begin = uint32_t{14 + 40 + 4 * 256};
  std::string bytes = "BM";
  add_number(bytes, begin + stride * side, 4);
  add_number(bytes, 0, 4);
  add_number(bytes, begin, 4);
  for (const uint32_t field : {uint32_t{40}, side, side}) add_number(bytes, field, 4);
  add_number(bytes, 1, 2);
  add_number(bytes, 8, 2);
  for (const uint32_t field : {0U, stride * side, 2835U, 2835U, 256U, 0U}) add_number(bytes, field, 4);
  for (uint32_t grey = 0; grey < 256; ++grey) add_number(bytes, (255 - grey) * 0x010101, 4);
  for (uint32_t row = side; row-- > 0;) {  // from the bottom up
    for (uint32_t column = 0; column < side; ++column) {
      const float fraction = highest > 0 ? values[row * side + column] / highest : 0;
      bytes += static_cast<char>(std::lround(255 * std::clamp(fraction, 0.0F, 1.0F)));
    }
    bytes.append(stride - side, '\0');
  }
  return "data:image/bmp;base64," + base64(bytes);
}

}  // namespace cloze
