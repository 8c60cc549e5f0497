#pragma once
// A warp on the CPU: the 32 lanes of a kernel as coroutines, which meet where they exchange values. Comes before the
// text of a kernel, which g++ then compiles.
#include <csetjmp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <ucontext.h>
#include <tuple>
#include <utility>
#include <vector>

#define __device__
#define __global__

namespace warp {

constexpr int lanes = 32;

struct Index {
  unsigned x = 0;
};

struct Lane {
  ucontext_t start{};
  jmp_buf at{};
  bool begun = false, done = false;
  std::vector<char> stack = std::vector<char>(64 << 10);
};

struct Warp {
  Lane all[lanes];
  int current = 0;
  jmp_buf scheduler{};
  uint32_t values[2][lanes]{};
  int exchanges[lanes]{};
  void (*run)(void*) = nullptr;
  void* argument = nullptr;
};
inline thread_local Warp* current = nullptr;

/// Every lane gives a value; the values of all.
inline const uint32_t* exchange(uint32_t value) {
  auto& warp = *current;
  const int lane = warp.current;
  auto* values = warp.values[warp.exchanges[lane]++ % 2];
  values[lane] = value;
  if (_setjmp(warp.all[lane].at) == 0) _longjmp(warp.scheduler, 1);
  return values;
}

inline void begin() {
  auto& warp = *current;
  warp.run(warp.argument);
  warp.all[warp.current].done = true;
  _longjmp(warp.scheduler, 1);
}

/// Lets a lane go on to its next exchange, or to its end.
inline void resume(Warp& warp, int lane) {
  warp.current = lane;
  auto& own = warp.all[lane];
  if (_setjmp(warp.scheduler) != 0) return;
  if (own.begun) _longjmp(own.at, 1);
  own.begun = true;
  getcontext(&own.start);
  own.start.uc_stack.ss_sp = own.stack.data();
  own.start.uc_stack.ss_size = own.stack.size();
  own.start.uc_link = nullptr;
  makecontext(&own.start, &begin, 0);
  setcontext(&own.start);
}

}  // namespace warp

inline thread_local warp::Index blockIdx, blockDim, threadIdxOfWarp;
struct ThreadIndex {
  struct X {
    operator unsigned() const { return threadIdxOfWarp.x + static_cast<unsigned>(warp::current->current); }
  } x;
};
inline ThreadIndex threadIdx;

inline uint32_t __ballot_sync(unsigned, bool yes) {
  const auto* all = warp::exchange(yes);
  uint32_t bits = 0;
  for (int lane = 0; lane < warp::lanes; ++lane) bits |= all[lane] << lane;
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline uint32_t __float_as_uint(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
inline float __shfl_xor_sync(unsigned, float x, int mask) {
  const int lane = warp::current->current;
  return __uint_as_float(warp::exchange(__float_as_uint(x))[lane ^ mask]);
}

namespace warp {

/// Runs a kernel warp after warp. arguments: pointers to its parameters
template <class... Parameters>
void emulate(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, void** arguments) {
  auto values = [&]<size_t... I>(std::index_sequence<I...>) {
    return std::tuple<Parameters...>(*static_cast<Parameters*>(arguments[I])...);
  }(std::index_sequence_for<Parameters...>{});
  auto bound = [&] { std::apply(kernel, values); };
  static thread_local Warp warp;  // whose stacks are used again
  warp.run = [](void* f) { (*static_cast<decltype(bound)*>(f))(); };
  warp.argument = &bound;
  current = &warp;
  blockDim.x = threads;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdxOfWarp.x = 0; threadIdxOfWarp.x < threads; threadIdxOfWarp.x += lanes) {
      for (auto& lane : warp.all) lane.begun = lane.done = false;
      for (auto& count : warp.exchanges) count = 0;
      while (!warp.all[0].done)
        for (int lane = 0; lane < lanes; ++lane)
          if (!warp.all[lane].done) resume(warp, lane);
    }
  current = nullptr;
}

}  // namespace warp
