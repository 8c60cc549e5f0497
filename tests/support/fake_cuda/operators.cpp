// The operators of the stand-in for a GPU: every one is LibTorch's for the processor, on copies of its arguments.
#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/NativeFunctions.h>
#include <ATen/native/CPUFallback.h>
#include <torch/library.h>

#include <set>

#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/record.h"

namespace fake_cuda {
namespace {

constexpr c10::DispatchKeySet on_device(c10::DispatchKey::CUDA);

// -- Memory and copies -------------------------------------------------------------------------------------------

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(sizes), &device_memory(), on_device,
                                   type.value_or(at::kFloat), format);
}

at::Tensor empty_strided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> type,
                         std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                           &device_memory(), on_device, type.value_or(at::kFloat));
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef sizes, std::optional<at::MemoryFormat>) {
  const auto wanted = C10_AS_INTARRAYREF_SLOW(sizes);
  const auto bytes = static_cast<size_t>(c10::multiply_integers(wanted)) * self.itemsize();
  if (auto* storage = self.storage().unsafeGetStorageImpl(); storage->nbytes() < bytes) {
    storage->set_data_ptr_noswap(device_memory().allocate(bytes));
    storage->set_nbytes(bytes);
  }
  self.unsafeGetTensorImpl()->set_sizes_contiguous(wanted);
  return self;
}

at::Tensor& set_storage(at::Tensor& self, at::Storage storage, c10::SymInt offset, c10::SymIntArrayRef sizes,
                        c10::SymIntArrayRef strides) {
  auto* tensor = self.unsafeGetTensorImpl();
  tensor->set_storage_keep_dtype(std::move(storage));
  tensor->set_sizes_and_strides(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), offset.expect_int());
  return self;
}

/// Copies between pinned memory and the device need not be waited for; all others are, as CUDA does with pageable
/// memory. A change of type on the way is an operator of the device.
at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool is_async) {
  const at::NoGradGuard no_grad;
  const auto copy = [&] {
    const OpenMemory source(from), target(to);
    auto on_host = target.on_host();
    on_host.copy_(source.on_host());
  };
  const std::lock_guard lock(device_mutex());
  if (from.is_cuda() && to.is_cuda()) {
    const OperatorScope scope("aten::copy_");
    copy();
    return to;
  }
  count_copy(from, to.is_cuda(), is_async && is_pinned((from.is_cuda() ? to : from).const_data_ptr()));
  copy();
  return to;
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool is_async) {
  copy_from(from.sizes() == to.sizes() ? from : from.expand_as(to), to, is_async);
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (from.sizes() != to.sizes()) to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar item(const at::Tensor& self) {
  const std::lock_guard lock(device_mutex());
  count_sync("item");
  const OpenMemory memory(self);
  return memory.on_host().item();
}

void record_stream(at::Tensor&, at::Stream) {}

// -- All others --------------------------------------------------------------------------------------------------

/// True if a GPU's kernel waits for the size of its result.
bool has_size_of_values(const std::string& name) {
  static const std::set<std::string> names{"aten::nonzero",         "aten::masked_select",
                                           "aten::_unique",         "aten::_unique2",
                                           "aten::unique_dim",      "aten::unique_consecutive",
                                           "aten::bincount",        "aten::repeat_interleave.Tensor",
                                           "aten::_nonzero_static", "aten::equal"};
  return names.contains(name);
}

/// An argument of an operator by its name in the schema.
const c10::IValue& argument_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack, const char* name) {
  const auto& schema = op.schema();
  const auto first = stack.size() - schema.arguments().size();
  return stack[first + static_cast<size_t>(*schema.argumentIndexWithName(name))];
}

/// Whether an index along an axis names an element twice.
bool has_twice(const at::Tensor& index, int64_t axis) {
  const OpenMemory memory(index);
  const auto sorted = std::get<0>(memory.on_host().sort(axis));
  const auto count = sorted.size(axis);
  return count > 1 && sorted.narrow(axis, 1, count - 1).eq(sorted.narrow(axis, 0, count - 1)).any().item<bool>();
}

/// True if a GPU adds several numbers to one by atomic additions, whose order is another in each run. Source: the list
/// of torch.use_deterministic_algorithms, of which these are the operators that a network here has called.
bool has_free_order(const std::string& name, const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& mode = at::globalContext();
  if (mode.deterministicAlgorithms() && !mode.deterministicAlgorithmsWarnOnly()) return false;
  const auto of = [&](const char* argument) -> const c10::IValue& { return argument_of(op, stack, argument); };
  const auto starts = [&](const char* with) { return name.starts_with(with); };
  if (starts("aten::index_add")) return has_twice(of("index").toTensor(), 0);
  if (starts("aten::scatter_add")) return has_twice(of("index").toTensor(), of("dim").toInt());
  if (starts("aten::cumsum")) {  // of one row by several blocks, which look back at each other
    const auto x = of("self").toTensor();
    return x.is_floating_point() && x.numel() > 1 && x.numel() == x.size(of("dim").toInt());
  }
  if (starts("aten::_efficient_attention_backward"))
    return of("num_splits_key").isNone() || of("num_splits_key").toInt() > 1;
  return starts("aten::_flash_attention_backward") || starts("aten::histc") || starts("aten::put_");
}

/// What the fused attention of a GPU asks of tensors, whose copies on the host have other strides.
void check_layout(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto aligned = static_cast<int64_t>(16 / argument_of(op, stack, "query").toTensor().itemsize());
  for (const char* name : {"query", "key", "value"}) {
    const auto x = argument_of(op, stack, name).toTensor();
    TORCH_CHECK(x.stride(-1) == 1 && x.stride(-2) % aligned == 0, name, " is not correctly aligned");
  }
  if (!op.schema().argumentIndexWithName("bias") || argument_of(op, stack, "bias").isNone()) return;
  const auto bias = argument_of(op, stack, "bias").toTensor();
  TORCH_CHECK(
      bias.stride(3) == 1 && (bias.size(2) == 1 || bias.stride(2) % aligned == 0) && bias.stride(1) % aligned == 0,
      "attn_bias is not correctly aligned");
}

struct Devices {
  bool device = false, host = false;  ///< has tensors there
  bool masks = false;                 ///< of a list of indices some are masks
};

void look_at(const at::Tensor& tensor, Devices& seen) {
  if (!tensor.defined()) return;
  if (tensor.is_cuda()) seen.device = true;
  if (tensor.is_cpu() && tensor.dim() > 0) seen.host = true;
}

Devices devices_of(c10::ArrayRef<c10::IValue> arguments) {
  Devices seen;
  for (const auto& argument : arguments) {
    if (argument.isTensor()) look_at(argument.toTensor(), seen);
    if (argument.isTensorList())
      for (const auto& tensor : argument.toTensorVector()) look_at(tensor, seen);
    if (!argument.isOptionalTensorList()) continue;
    for (const std::optional<at::Tensor>& index : argument.toOptionalTensorVector()) {
      if (!index || !index->defined()) continue;
      look_at(*index, seen);
      seen.masks |= index->scalar_type() == at::kBool || index->scalar_type() == at::kByte;
    }
  }
  return seen;
}

void on_processor(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto& schema = op.schema();
  const auto name = schema.overload_name().empty() ? schema.name() : schema.name() + "." + schema.overload_name();
  const auto seen = devices_of(torch::jit::last(*stack, schema.arguments().size()));
  if (seen.device && seen.host) count_mixed(name);
  // `index` calls `nonzero` by itself; `index_put_` does so within its kernel.
  if (has_size_of_values(name) || (seen.masks && name.find("index_put") != std::string::npos)) count_sync(name);
  if (name.find("_attention_") != std::string::npos && name.find("aten::_") == 0) check_layout(op, *stack);
  if (has_free_order(name, op, *stack)) count_unordered(name);
  const OperatorScope scope(name);
  at::native::cpu_fallback(op, stack);
}

/// Operators of which LibTorch would else make several of others, where CUDA has a kernel; and products with a wider
/// result, whose kernels a program looks for.
void register_single_kernels(torch::Library& library) {
  std::vector<std::string> names{"native_layer_norm"};
  for (const auto* product : {"mm", "bmm", "addmm", "baddbmm"})
    for (const auto* overload : {".dtype", ".dtype_out"}) names.push_back(std::string(product) + overload);
  for (const auto& op : c10::Dispatcher::singleton().getAllOpNames()) {
    const bool is_foreach = op.name.starts_with("aten::_foreach_") && !op.overload_name.ends_with("out");
    if (!is_foreach) continue;
    const auto name = op.name.substr(std::string("aten::").size());
    names.push_back(op.overload_name.empty() ? name : name + "." + op.overload_name);
  }
  for (const auto& name : names) library.impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&on_processor>());
}

}  // namespace
}  // namespace fake_cuda

TORCH_LIBRARY_IMPL(_, CUDA, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&fake_cuda::on_processor>());
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", fake_cuda::empty);
  library.impl("empty_strided", fake_cuda::empty_strided);
  library.impl("resize_", fake_cuda::resize);
  library.impl("set_.source_Storage_storage_offset", fake_cuda::set_storage);
  library.impl("copy_", fake_cuda::copy);
  library.impl("_copy_from", fake_cuda::copy_from);
  library.impl("_copy_from_and_resize", fake_cuda::copy_from_and_resize);
  library.impl("_local_scalar_dense", fake_cuda::item);
  library.impl("record_stream", fake_cuda::record_stream);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("unfold", at::native::unfold);
  fake_cuda::register_single_kernels(library);
}
