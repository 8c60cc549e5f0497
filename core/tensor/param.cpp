#include "core/tensor/param.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/tensor/low_rank.h"
#include "core/tensor/parallel.h"

namespace cloze {

namespace {

constexpr int64_t range_alignment = 16;  // floats: one cache line, one AVX-512 register
constexpr int64_t init_block = 1 << 16;  // elements drawn from one stream

/// Normal draws by Box-Muller, both of each pair; if truncated, draws beyond two deviations are repeated.
void draw_normal(Stream stream, float* out, int64_t count, double range, bool truncated) {
  for (int64_t i = 0; i < count;) {
    const double u = (stream.bits() + 0.5) * 0x1p-32, angle = 2 * std::numbers::pi * ((stream.bits() + 0.5) * 0x1p-32);
    const double radius = std::sqrt(-2 * std::log(u));
    for (const double z : {radius * std::cos(angle), radius * std::sin(angle)})
      if (i < count && (!truncated || std::abs(z) <= 2)) out[i++] = static_cast<float>(range * z);
  }
}

/// Uniform draws whose standard deviation is `range`.
void draw_uniform(Stream stream, float* out, int64_t count, double range) {
  const double limit = std::sqrt(3.0) * range;
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<float>(limit * (2 * ((stream.bits() + 0.5) * 0x1p-32) - 1));
}

}  // namespace

void Param::set_stacked(int64_t count) {
  require<ShapeError>(count >= 1 && value().size(0) % count == 0, value().size(0), " rows cannot be ", count,
                      " tensors of one shape");
  state_->stacked = count;
}

void Param::set_base(bool on) {
  state_->is_base = on;
  state_->value.set_requires_grad(is_trained());
}

void Param::set_frozen(bool on) {
  state_->frozen = on;
  state_->value.set_requires_grad(is_trained());
}

const Tensor& Param::leaf() const {
  return state_->low_rank ? state_->low_rank->parts.front().a.value() : state_->value;
}

Role role_of(Init init) {
  switch (init) {
    case Init::weight:
      return Role::weight;
    case Init::one:
      return Role::norm;
    case Init::zero:
    case Init::fixed_zero:
      return Role::bias;
    case Init::embedding:
    case Init::sinusoid:
    case Init::fixed_sinusoid:
    case Init::fixed_sinusoid_halves:
      return Role::embedding;
    case Init::fixed_features:
      return Role::weight;
  }
  return Role::weight;
}

Param Layer::own_param(const std::string& name, at::IntArrayRef sizes, Init init, Role role) {
  Tensor value;
  try {
    value = at::empty(sizes, at::kFloat);
  } catch (const c10::Error&) {
    fail<ConfigError>("the model's weights do not fit into memory: one of them (", name, ") has the shape ", sizes,
                      "; make it smaller (model.hidden_size, model.vocab_size and the like)");
  }
  Param param(value, init, role);
  value.set_requires_grad(
      !param.fixed());  // a gradient of a fixed one would be in the norm, and nothing would clear it
  params_.emplace_back(name, param);
  return param;
}

void Layer::train(bool on) {
  training_ = on;
  for (const auto& [name, child] : children_) child->train(on);
}

namespace {

void collect(const Layer& layer, const std::string& path, std::vector<NamedParam>& params) {
  for (const auto& [name, param] : layer.own_params()) params.push_back({path + name, param});
  for (const auto& [name, child] : layer.children()) collect(*child, path + name + ".", params);
}

}  // namespace

std::vector<NamedParam> collect_params(const Layer& root) {
  std::vector<NamedParam> params;
  collect(root, "", params);
  return params;
}

void set_depth(const Layer& root, int64_t depth) {
  for (auto [name, param] : collect_params(root)) param.set_depth(depth);
}

void convert_params(const Layer& root, at::ScalarType type) {
  at::NoGradGuard no_grad;
  for (const auto& [name, param] : collect_params(root)) {
    auto value = param.value();
    value.set_data(value.to(type));
  }
}

namespace {

/// Even columns hold sines, odd ones cosines, of position / 10000^(2 floor(column / 2) / width); in halves, all sines
/// come first.
Tensor sinusoids(int64_t positions, int64_t width, bool in_halves) {
  const auto position = at::arange(positions, at::kDouble).unsqueeze(1), column = at::arange(width, at::kDouble);
  const auto angles = position / at::pow(10000.0, column.div(2, "floor").mul(2).div(static_cast<double>(width)));
  const auto interleaved = at::where(column.remainder(2).eq(0), angles.sin(), angles.cos());
  return in_halves ? interleaved.index_select(1, at::argsort(column.remainder(2), /*stable=*/true)) : interleaved;
}

/// Draws as the layer asks; where it leaves the range or the distribution to the network, these.
Tensor drawn(const Param& param, double range, bool truncated, const Rng& rng) {
  auto all = at::empty(param.value().sizes(), at::kFloat);
  auto* out = all.data_ptr<float>();
  const int64_t count = all.numel(), blocks = (count + init_block - 1) / init_block;
  const double deviation = param.init_range() > 0 ? param.init_range() : range;
  const auto spread = param.init_spread();
  const bool cut = spread == Spread::network ? truncated : spread == Spread::truncated;
  each_part(blocks, [&](int64_t b) {
    const int64_t first = b * init_block, size = std::min(init_block, count - first);
    if (spread == Spread::uniform)
      draw_uniform(rng.stream("init", 0, b), out + first, size, deviation);
    else
      draw_normal(rng.stream("init", 0, b), out + first, size, deviation, cut);
  });
  if (param.padding_row() >= 0) all[param.padding_row()].zero_();
  if (param.init_rows() > 0) all.narrow(0, 0, param.init_rows()).mul_(param.init_factor());
  return all;
}

}  // namespace

void initialize(const std::vector<NamedParam>& params, double range, bool truncated, const Rng& rng) {
  at::NoGradGuard no_grad;
  for (const auto& [name, param] : params) {
    const auto& value = param.value();
    switch (param.init()) {
      case Init::zero:
      case Init::fixed_zero:
        value.zero_();
        break;
      case Init::one:
        value.fill_(1);
        break;
      case Init::sinusoid:
      case Init::fixed_sinusoid:
      case Init::fixed_sinusoid_halves:
        value.copy_(sinusoids(value.size(0), value.size(1), param.init() == Init::fixed_sinusoid_halves));
        break;
      case Init::fixed_features:
        draw_features(value, Rng(rng.key(name)).stream("init"));
        break;
      case Init::weight:
      case Init::embedding:
        value.copy_(drawn(param, range, truncated, Rng(rng.key(name))));
        break;
    }
  }
}

at::Tensor lazy_zeros(int64_t count, at::Device device) {
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  if (!device.is_cpu() || bytes == 0) return at::zeros({count}, options);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return at::zeros({count}, options);  // which says what is wrong
  return at::from_blob(memory, {count}, [bytes](void* mapped) { munmap(mapped, bytes); }, options);
}

void forget(const at::Tensor& slice) {
  if (!slice.device().is_cpu()) return;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto from = reinterpret_cast<uintptr_t>(slice.data_ptr()), to = from + slice.nbytes();
  const auto begin = (from + page - 1) / page * page, end = to / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

std::vector<NamedParam> base_params(std::vector<NamedParam> all) {
  std::erase_if(all, [](const NamedParam& named) { return !named.param.is_base(); });
  return all;
}

std::vector<NamedParam> own_params(std::vector<NamedParam> all) {
  std::erase_if(all, [](const NamedParam& named) { return named.param.is_base(); });
  return all;
}

FlatParameters::FlatParameters(std::vector<NamedParam> params, at::Device device) : base_(base_params(params)) {
  at::NoGradGuard no_grad;
  for (const auto& [name, param] : base_) {
    auto value = param.value();
    value.set_data(value.to(device));
  }
  int64_t offset = 0;
  for (auto& named : own_params(std::move(params))) {
    const auto numel = named.param.value().numel();
    ranges_.push_back({std::move(named), offset, numel});
    offset += (numel + range_alignment - 1) / range_alignment * range_alignment;
  }
  values = at::zeros({offset}, at::TensorOptions(device).dtype(at::kFloat));
  grads = lazy_zeros(offset, device);
  for (auto& range : ranges_) {
    auto value = range.param.param.value();
    auto view = values.narrow(0, range.offset, range.numel).view(value.sizes());
    view.copy_(value);
    value.set_data(view);
    value.mutable_grad() = grads.narrow(0, range.offset, range.numel).view(value.sizes());
  }
}

int64_t FlatParameters::count() const {
  int64_t n = 0;
  for (const auto& range : ranges_) n += range.numel;
  return n;
}

void FlatParameters::use_bf16(bool on) {
  shadow = on ? values.to(at::kBFloat16) : Tensor();
  for (auto& range : ranges_)
    range.param.param.set_shadow(
        on ? shadow.narrow(0, range.offset, range.numel).view(range.param.param.value().sizes()) : Tensor());
  for (auto& [name, param] : base_) param.set_shadow(on ? param.value().to(at::kBFloat16) : Tensor());
}

void FlatParameters::refresh_shadow() {
  if (shadow.defined()) shadow.copy_(values);
}

namespace {

double length(const std::vector<double>& x) {
  double total = 0;
  for (const double v : x) total += v * v;
  return std::sqrt(total);
}

}  // namespace

void draw_features(const Tensor& w, Stream stream) {
  at::NoGradGuard no_grad;
  const int64_t rows = w.size(0), width = w.size(1);
  auto drawn = at::empty({rows, width}, at::kFloat);
  std::vector<std::vector<double>> block;
  std::vector<double> row(static_cast<size_t>(width));
  for (int64_t r = 0; r < rows; ++r) {
    if (r % width == 0) block.clear();
    for (auto& x : row) x = stream.normal();
    for (int twice = 0; twice < 2; ++twice)  // Gram-Schmidt, repeated to remove rounding errors
      for (const auto& other : block) {
        double along = 0;
        for (size_t c = 0; c < row.size(); ++c) along += row[c] * other[c];
        for (size_t c = 0; c < row.size(); ++c) row[c] -= along * other[c];
      }
    const double now = length(row);
    for (auto& x : row) x /= now;
    block.push_back(row);
    for (auto& x : row) x = stream.normal();
    const double wanted = length(row);
    for (int64_t c = 0; c < width; ++c)
      drawn.data_ptr<float>()[r * width + c] = static_cast<float>(wanted * block.back()[static_cast<size_t>(c)]);
  }
  w.copy_(drawn);
}

}  // namespace cloze
