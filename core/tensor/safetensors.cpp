#include "core/tensor/safetensors.h"

#include <ATen/ATen.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/config/config.h"
#include "core/error.h"
#include "core/file.h"
#include "core/json.h"
#include "core/mapped_file.h"
#include "core/spelling.h"

namespace cloze {

using nlohmann::json;

namespace {

constexpr uint64_t max_header = 100'000'000;
constexpr size_t max_tensors = 100'000;

struct DtypeName {
  const char* name;
  at::ScalarType type;
};
constexpr DtypeName dtypes[] = {{"F64", at::kDouble}, {"I64", at::kLong},      {"F32", at::kFloat}, {"I32", at::kInt},
                                {"F16", at::kHalf},   {"BF16", at::kBFloat16}, {"I16", at::kShort}, {"I8", at::kChar},
                                {"U8", at::kByte},    {"BOOL", at::kBool}};

const char* name_of(at::ScalarType type) {
  for (const auto& d : dtypes)
    if (d.type == type) return d.name;
  fail<CheckpointError>("tensors of type ", c10::toString(type),
                        " cannot be written as safetensors; convert them first");
}

/// A mapped file, unmapped when its last view is destroyed.
struct Mapping {
  explicit Mapping(const std::string& path) {
    const int file = open_to_read(path);
    require<CheckpointError>(file >= 0, path, ": cannot be read (", system_reason(), ")");
    struct stat info{};
    fstat(file, &info);
    size = S_ISREG(info.st_mode) ? static_cast<uint64_t>(info.st_size) : 0;
    void* mapped = size ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    require<CheckpointError>(mapped != MAP_FAILED, path, ": is no safetensors file (it is ",
                             size ? "not mappable" : "empty", ")");
    base = static_cast<char*>(mapped);
    guard.emplace(base, size, path, "get the file again, or go on from an earlier checkpoint");
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { munmap(base, size); }
  char* base = nullptr;
  uint64_t size = 0;
  std::optional<GuardedMapping> guard{};
};

struct Entry {
  at::ScalarType type;
  std::vector<int64_t> shape;
  uint64_t begin, end;
};

/// Looks for doubled keys, and counts those of the outermost object. nlohmann's parser with a callback takes time that
/// is quadratic in them.
class KeyWatch : public nlohmann::json_sax<json> {
 public:
  std::string doubled{};
  size_t tensors = 0;
  bool key(string_t& name) override {
    tensors += keys_.size() == 1;
    if (!keys_.back().insert(name).second) doubled = name;
    return tensors <= max_tensors;
  }
  bool start_object(size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::vector<std::set<std::string>> keys_{};
};

/// Rejects duplicate keys, too many tensors and nesting deeper than the format has.
json parse_header(std::string_view text, const std::string& path) {
  require<CheckpointError>(too_deep(text, 8) == std::string_view::npos, path,
                           ": the header is nested too deep for a safetensors file; it is damaged");
  KeyWatch watch;
  json::sax_parse(text, &watch);
  require<CheckpointError>(watch.tensors <= max_tensors, path, ": names more than ", max_tensors,
                           " tensors, which no model has; the file is damaged");
  json header = parse_json(text);
  require<CheckpointError>(header.is_object(), path,
                           ": the header after byte 8 is not JSON; the file is damaged or no safetensors file");
  require<CheckpointError>(text.starts_with('{') && text.find('\0') == std::string_view::npos, path,
                           ": the header after byte 8 does not begin with '{', or contains NUL bytes; the file is "
                           "damaged or no safetensors file");
  require<CheckpointError>(watch.doubled.empty(), path, ": the header names '", shortened(watch.doubled),
                           "' twice; the file is damaged");
  return header;
}

Entry read_entry(const std::string& name, const json& value, const std::string& path) {
  const auto bad = [&](const std::string& what) {
    fail<CheckpointError>(path, ": tensor '", shortened(name), "' ", what, "; the file is damaged");
  };
  if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() || !value.contains("shape") ||
      !value["shape"].is_array() || !value.contains("data_offsets") || !value["data_offsets"].is_array() ||
      value["data_offsets"].size() != 2)
    bad("has no dtype, shape and data_offsets");
  Entry entry{};
  const auto type = value["dtype"].get<std::string>();
  const auto* known = std::find_if(std::begin(dtypes), std::end(dtypes), [&](const auto& d) { return d.name == type; });
  if (known == std::end(dtypes))
    fail<CheckpointError>(path, ": tensor '", shortened(name), "' has dtype ", shortened(type.substr(0, 20)),
                          ", which is not supported; convert it to F32");
  entry.type = known->type;
  uint64_t bytes = c10::elementSize(entry.type);
  if (value["shape"].size() > 16) bad("has more than 16 dimensions");
  for (const auto& size : value["shape"]) {
    if (!size.is_number_unsigned() || size.get<uint64_t>() > (uint64_t{1} << 40))
      bad("has a shape that is not made of whole numbers");
    entry.shape.push_back(size.get<int64_t>());
    if (__builtin_mul_overflow(bytes, size.get<uint64_t>(), &bytes)) bad("has a shape that is too large");
  }
  for (const auto& offset : value["data_offsets"])
    if (!offset.is_number_unsigned()) bad("has offsets that are not whole numbers");
  entry.begin = value["data_offsets"][0].get<uint64_t>();
  entry.end = value["data_offsets"][1].get<uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    bad(concat("takes bytes ", entry.begin, " to ", entry.end, ", but its shape needs ", bytes, " bytes"));
  return entry;
}

}  // namespace

struct SafeTensors::Impl {
  std::string path;
  std::shared_ptr<Mapping> mapping;
  uint64_t data = 0;
  std::map<std::string, Entry> entries;
  std::map<std::string, std::string> metadata;
};

namespace {

/// The header of a mapped file, and how many bytes precede the data.
std::pair<json, uint64_t> header_of(const Mapping& mapping, const std::string& path) {
  uint64_t length = 0;
  require<CheckpointError>(mapping.size >= 8, path, ": is ", mapping.size,
                           " bytes long, too short for a safetensors file");
  std::memcpy(&length, mapping.base, 8);
  require<CheckpointError>(length <= max_header && length + 8 <= mapping.size, path, ": its header should be ", length,
                           " bytes long, which the file is not; it is cut off or no safetensors file");
  return {parse_header({mapping.base + 8, length}, path), 8 + length};
}

std::map<std::string, std::string> read_metadata(const json& value, const std::string& path) {
  const char* fault = ": __metadata__ is not a map of texts; the file is damaged";
  require<CheckpointError>(value.is_object(), path, fault);
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    require<CheckpointError>(text.is_string(), path, fault);
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

/// Throws CheckpointError unless every byte of the data belongs to one tensor.
void require_no_gaps(const std::map<std::string, Entry>& entries, uint64_t held, const std::string& path) {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [name, entry] : entries) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  uint64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    require<CheckpointError>(begin == at, path, ": bytes ", std::min(begin, at), " to ", std::max(begin, at),
                             " of its data belong to ", begin < at ? "two tensors" : "no tensor",
                             "; the file is damaged");
    at = end;
  }
  require<CheckpointError>(at == held, path, ": holds ", held, " bytes of data, its header says ", at, "; the file is ",
                           held < at ? "cut off" : "damaged");
}

}  // namespace

SafeTensors SafeTensors::open(const std::string& path) {
  auto impl = std::make_shared<Impl>();
  impl->path = path;
  impl->mapping = std::make_shared<Mapping>(path);
  json header;
  std::tie(header, impl->data) = header_of(*impl->mapping, path);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__")
      impl->metadata = read_metadata(value, path);
    else
      impl->entries.emplace(name, read_entry(name, value, path));
  }
  require_no_gaps(impl->entries, impl->mapping->size - impl->data, path);
  SafeTensors file;
  file.impl_ = std::move(impl);
  return file;
}

std::vector<std::string> SafeTensors::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : impl_->entries) all.push_back(name);
  return all;
}

bool SafeTensors::contains(const std::string& name) const { return impl_->entries.count(name) > 0; }
const std::map<std::string, std::string>& SafeTensors::metadata() const { return impl_->metadata; }

at::Tensor SafeTensors::get(const std::string& name) const {
  const auto found = impl_->entries.find(name);
  if (found == impl_->entries.end())
    fail<CheckpointError>(impl_->path, ": has no tensor '", name, "'", did_you_mean(name, names()));
  const auto& entry = found->second;
  char* at = impl_->mapping->base + impl_->data + entry.begin;
  auto view = at::from_blob(at, entry.shape, [mapping = impl_->mapping](void*) {}, at::TensorOptions(entry.type));
  // Views at unaligned offsets are copied: kernels expect elements at multiples of their size.
  return reinterpret_cast<uintptr_t>(at) % c10::elementSize(entry.type) == 0 ? view : [&] {
    auto copy = at::empty(entry.shape, at::TensorOptions(entry.type));
    std::memcpy(copy.data_ptr(), at, entry.end - entry.begin);
    return copy;
  }();
}

void save_safetensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                      std::map<std::string, std::string> metadata) {
  metadata.emplace("format", "pt");
  auto sorted = tensors;
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const auto x = c10::elementSize(a.tensor.scalar_type()), y = c10::elementSize(b.tensor.scalar_type());
    return x != y ? x > y : a.name < b.name;
  });
  json header;
  header["__metadata__"] = metadata;
  uint64_t at = 0;
  for (const auto& [name, tensor] : sorted) {
    require<CheckpointError>(!header.contains(name), "tensor '", name, "' would be written twice to ", path);
    const uint64_t bytes = static_cast<uint64_t>(tensor.numel()) * c10::elementSize(tensor.scalar_type());
    header[name] = {
        {"dtype", name_of(tensor.scalar_type())}, {"shape", tensor.sizes().vec()}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  std::string text = json_text(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const uint64_t length = text.size();
  const std::string temporary = staged_name(path);
  const auto reason = [&](std::FILE* out) {
    const auto why = system_reason();
    if (out) std::fclose(out);
    unlink(temporary.c_str());
    fail<CheckpointError>(path, ": cannot be written (", why, ")");
  };
  std::FILE* out = std::fopen(temporary.c_str(), "wbxe");  // x: no file or link is there
  if (!out) reason(nullptr);
  if (std::fwrite(&length, 8, 1, out) != 1 || std::fwrite(text.data(), 1, length, out) != length) reason(out);
  for (const auto& [name, tensor] : sorted) {
    const auto flat = tensor.detach().to(at::kCPU).contiguous();
    const size_t bytes = static_cast<size_t>(flat.numel()) * c10::elementSize(flat.scalar_type());
    if (bytes > 0 && std::fwrite(flat.data_ptr(), 1, bytes, out) != bytes) reason(out);
  }
  if (std::fflush(out) != 0 || fsync(fileno(out)) != 0) reason(out);
  std::fclose(out);
  if (rename(temporary.c_str(), path.c_str()) != 0) reason(nullptr);
}

}  // namespace cloze
