// NVRTC and the driver of a stand-in: "compiles" kernels with g++, and runs them on the CPU a warp at a time.
// FAKE_NVRTC_BROKEN: it starts no compilation.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <string_view>

#include "tests/support/fake_nvrtc/kernel_runs.h"

namespace {

struct Program {
  std::string text, log{}, binary{};
};

std::string scratch_name(const char* ending) {
  std::string name = "/tmp/fake-nvrtc-XXXXXX" + std::string(ending);
  close(mkstemps(name.data(), static_cast<int>(std::string(ending).size())));
  return name;
}

std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What a module has of a kernel.
struct Kernel {
  std::string name;
  void (*call)(unsigned blocks, unsigned threads, void** arguments);
};

/// The text with a caller of each of its kernels by the addresses of its arguments.
std::string with_callers(const std::string& text) {
  std::string all = text;
  const std::regex kernel("__global__ void (\\w+)\\(");
  for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) {
    const auto name = (*at)[1].str();
    all += "extern \"C\" void call_" + name + "(unsigned blocks, unsigned threads, void** arguments) { warp::emulate(" +
           name + ", blocks, threads, arguments); }\n";
  }
  return all;
}

}  // namespace

fake_nvrtc::Around& fake_nvrtc::around_kernels() {
  static Around around;
  return around;
}

#pragma GCC visibility push(default)
extern "C" {

/// Another one whenever the header of kernels changes, so that no cache has what an older one made.
int nvrtcVersion(int* major, int* minor) {
  *major = 0;
  *minor = static_cast<int>(std::hash<std::string>()(content_of(FAKE_NVRTC_FOLDER "/warp.h")) >> 33);
  return 0;
}
int nvrtcCreateProgram(void** program, const char* text, const char*, int, const char**, const char**) {
  if (std::getenv("FAKE_NVRTC_BROKEN")) return 1;
  *program = new Program{.text = text};
  return 0;
}
int nvrtcCompileProgram(void* given, int count, const char** options) {
  auto& program = *static_cast<Program*>(given);
  const auto source = scratch_name(".cpp"), library = scratch_name(".so"), log = scratch_name(".log");
  std::ofstream(source) << with_callers(program.text);
  std::string command =
      FAKE_NVRTC_COMPILER " -O1 -std=c++20 -fPIC -shared -U_FORTIFY_SOURCE -w -include " FAKE_NVRTC_FOLDER "/warp.h";
  for (int i = 0; i < count; ++i)
    if (std::string(options[i]).starts_with("-D")) command += " " + std::string(options[i]);
  const int status = std::system((command + " -o " + library + " " + source + " >" + log + " 2>&1").c_str());
  program.binary = content_of(library);
  program.log = content_of(log);
  for (const auto& path : {source, library, log}) std::remove(path.c_str());
  return status == 0 ? 0 : 6;
}
int nvrtcGetProgramLogSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->log.size();
  return 0;
}
int nvrtcGetProgramLog(void* program, char* log) {
  auto& text = static_cast<Program*>(program)->log;
  text.copy(log, text.size());
  return 0;
}
int nvrtcGetCUBINSize(void* program, size_t* size) {
  *size = static_cast<Program*>(program)->binary.size();
  return 0;
}
int nvrtcGetCUBIN(void* program, char* binary) {
  auto& made = static_cast<Program*>(program)->binary;
  made.copy(binary, made.size());
  return 0;
}
int nvrtcDestroyProgram(void** program) {
  delete static_cast<Program*>(*program);
  *program = nullptr;
  return 0;
}

int cuCtxGetDevice(int* device) {
  *device = 0;
  return 0;
}
int cuDeviceGetAttribute(int* value, int, int) {
  const char* capability = std::getenv("FAKE_CUDA_CAPABILITY");
  *value = capability ? std::atoi(capability) : 9;
  return 0;
}
/// The size of a library is in its header: where its section headers end.
int cuModuleLoadData(void** module, const void* image) {
  const auto* bytes = static_cast<const char*>(image);
  const auto field = [&]<class T>(size_t at, T) { return *reinterpret_cast<const T*>(bytes + at); };
  const size_t size = field(40, uint64_t{}) + size_t{field(58, uint16_t{})} * field(60, uint16_t{});
  const auto path = scratch_name(".so");
  std::ofstream(path, std::ios::binary).write(bytes, static_cast<std::streamsize>(size));
  *module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!*module) std::fprintf(stderr, "%s\n", dlerror());
  std::remove(path.c_str());
  return *module ? 0 : 200;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  const auto caller = "call_" + std::string(name);
  auto* call = reinterpret_cast<decltype(Kernel::call)>(dlsym(module, caller.c_str()));
  if (!call) return 500;
  *function = new Kernel{name, call};
  return 0;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned,
                   void*, void** arguments, void**) {
  const auto& kernel = *static_cast<const Kernel*>(function);
  const auto& around = fake_nvrtc::around_kernels();
  if (around.begin) around.begin(kernel.name.c_str());
  kernel.call(blocks, threads, arguments);
  if (around.end) around.end();
  return 0;
}
int cuGetErrorString(int, const char** reason) {
  *reason = "an error of the stand-in";
  return 0;
}
}
#pragma GCC visibility pop
