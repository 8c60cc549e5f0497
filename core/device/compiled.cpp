#include "core/device/compiled.h"

#include <glob.h>
#include <link.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "core/device/kernels_text.h"
#include "core/device/loaded.h"
#include "core/file.h"
#include "core/fingerprint.h"

namespace cloze::device {

namespace {

/// The folder of LibTorch's CUDA library, if this process has it.
std::string cuda_folder() {
  std::string library_folder;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* folder) {
        const std::string path = info->dlpi_name;
        if (path.find("libtorch_cuda.so") == std::string::npos) return 0;
        *static_cast<std::string*>(folder) = path.substr(0, path.rfind('/'));
        return 1;
      },
      &library_folder);
  return library_folder;
}

/// The first of the libraries that a pattern of paths names, or null.
void* open_first(const std::string& pattern) {
  glob_t matches{};
  void* library = nullptr;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) library = dlopen(matches.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
  globfree(&matches);
  return library;
}

/// NVRTC: where the loader finds it, or among the packages that PyTorch's wheel comes with.
void* open_nvrtc() {
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"})
    if (void* library = dlopen(name, RTLD_NOW | RTLD_GLOBAL)) return library;
  for (const char* libraries : {"/../../nvidia/*/lib/", "/"}) {
    const auto folder = cuda_folder() + libraries;
    open_first(folder + "libnvrtc-builtins*.so*");  // which NVRTC asks the loader for, by its name alone
    if (void* library = open_first(folder + "libnvrtc.so.[0-9]*")) return library;
  }
  return nullptr;
}

void* open_driver() { return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL); }

/// The dozen functions that are used. Their types are those of cuda.h and nvrtc.h.
struct Functions {
  void* nvrtc = open_nvrtc();
  void* driver = open_driver();
  int (*version)(int*, int*) = function_of<int(int*, int*)>(nvrtc, "nvrtcVersion");
  int (*create)(void**, const char*, const char*, int, const char**, const char**) =
      function_of<int(void**, const char*, const char*, int, const char**, const char**)>(nvrtc, "nvrtcCreateProgram");
  int (*compile)(void*, int, const char**) = function_of<int(void*, int, const char**)>(nvrtc, "nvrtcCompileProgram");
  int (*log_size)(void*, size_t*) = function_of<int(void*, size_t*)>(nvrtc, "nvrtcGetProgramLogSize");
  int (*log)(void*, char*) = function_of<int(void*, char*)>(nvrtc, "nvrtcGetProgramLog");
  int (*binary_size)(void*, size_t*) = function_of<int(void*, size_t*)>(nvrtc, "nvrtcGetCUBINSize");
  int (*binary)(void*, char*) = function_of<int(void*, char*)>(nvrtc, "nvrtcGetCUBIN");
  int (*destroy)(void**) = function_of<int(void**)>(nvrtc, "nvrtcDestroyProgram");
  int (*current_device)(int*) = function_of<int(int*)>(driver, "cuCtxGetDevice");
  int (*load)(void**, const void*) = function_of<int(void**, const void*)>(driver, "cuModuleLoadData");
  int (*function)(void**, void*, const char*) = function_of<int(void**, void*, const char*)>(driver,
                                                                                             "cuModuleGetFunction");
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**,
                void**) = function_of<int(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                          void*, void**, void**)>(driver, "cuLaunchKernel");
  int (*reason)(int, const char**) = function_of<int(int, const char**)>(driver, "cuGetErrorString");

  void check(int status, const char* what) const {
    if (status == 0) return;
    const char* why = nullptr;
    reason(status, &why);
    fail<Error>("the GPU: ", what, ": ", why ? why : "unknown error");
  }
};

const Functions& functions() {
  static const Functions loaded;
  return loaded;
}

/// `sm_90` of the current card.
std::string architecture() {
  int card = 0;
  functions().check(functions().current_device(&card), "its number");
  const auto capability = compute_capability(card);
  return "sm_" + std::to_string(capability.first) + std::to_string(capability.second);
}

std::string compiled_anew(const std::vector<std::string>& options) {
  const auto& f = functions();
  void* program = nullptr;
  require<Error>(f.create(&program, kernels_text, "kernels.cu", 0, nullptr, nullptr) == 0, "NVRTC does not start");
  std::vector<const char*> words;
  for (const auto& option : options) words.push_back(option.c_str());
  const bool compiles = f.compile(program, static_cast<int>(words.size()), words.data()) == 0;
  size_t size = 0;
  std::string result;
  if (compiles) {
    f.binary_size(program, &size);
    result.resize(size);
    f.binary(program, result.data());
  } else {
    f.log_size(program, &size);
    result.resize(size);
    f.log(program, result.data());
  }
  f.destroy(&program);
  require<Error>(compiles, "NVRTC refuses the kernels: ", result);
  return result;
}

/// The user's folder of what can be made again; empty: he has none.
std::string cache_folder() {
  const char *cache = std::getenv("XDG_CACHE_HOME"), *home = std::getenv("HOME");
  if (cache && *cache) return std::string(cache) + "/cloze";
  return home && *home ? std::string(home) + "/.cache/cloze" : "";
}

/// From the cache, or compiled; a cache that cannot be written costs seconds at the next start.
std::string binary_of(bool bf16) {
  const std::vector<std::string> options{"--gpu-architecture=" + architecture(), "--std=c++17",
                                         bf16 ? "-DELEMENT=bf16" : "-DELEMENT=float"};
  std::array<int, 2> version{};
  functions().version(&version[0], &version[1]);
  std::string key = kernels_text + std::to_string(version[0]) + "." + std::to_string(version[1]);
  for (const auto& option : options) key += " " + option;
  const auto path = cache_folder() + "/kernels-" + hash_hex(key) + ".cubin";
  if (!cache_folder().empty() && std::filesystem::is_regular_file(path)) return read_text(path);
  auto made = compiled_anew(options);
  try {
    std::filesystem::create_directories(cache_folder());
    write_atomic(path, made);
  } catch (const std::exception&) {  // a full disk or a folder of another's
  }
  return made;
}

/// The kernels of one element type on one card.
struct Module {
  void* loaded = nullptr;
  std::map<std::string, void*> functions{};
};

/// The function of a kernel, loaded with its module at the first call.
void* kernel_of(bool bf16, const char* name) {
  static std::mutex mutex;
  static std::map<std::pair<int, bool>, Module> modules;
  const auto& f = functions();
  const std::lock_guard lock(mutex);
  int device = 0;
  f.check(f.current_device(&device), "its number");
  auto& module = modules[{device, bf16}];
  if (!module.loaded) f.check(f.load(&module.loaded, binary_of(bf16).data()), "its kernels do not load");
  auto& kernel = module.functions[name];
  if (!kernel) f.check(f.function(&kernel, module.loaded, name), name);
  return kernel;
}

}  // namespace

std::pair<int, int> compute_capability(int card) {
  constexpr int major = 75, minor = 76;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  std::pair<int, int> capability{0, 0};
  try {
    static auto* const ask = function_of<int(int*, int, int)>(open_driver(), "cuDeviceGetAttribute");
    if (ask(&capability.first, major, card) != 0 || ask(&capability.second, minor, card) != 0) return {0, 0};
  } catch (const Error&) {  // no driver
  }
  return capability;
}

const std::string& without_kernels() {
  static const std::string reason = []() -> std::string {
    try {
      kernel_of(false, "dropout");
      kernel_of(true, "dropout");
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }();
  return reason;
}

void launch(const Launch& where, void** arguments) {
  constexpr unsigned lanes = 32, warps = 8;  // of a block
  if (where.warps == 0) return;
  const auto blocks = static_cast<unsigned>((where.warps + warps - 1) / warps);
  const auto& f = functions();
  f.check(f.launch(kernel_of(where.bf16, where.kernel), blocks, 1, 1, warps * lanes, 1, 1, 0, where.stream, arguments,
                   nullptr),
          where.kernel);
}

}  // namespace cloze::device
