#pragma once
// Counter-based random numbers: every draw is a function of (seed, purpose, epoch, item), so that no state is saved
// and nothing depends on threads, workers, ranks or resumption.
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

namespace cloze {

/// One block of Philox4x32-10. Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 4.3.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key, int rounds = 10) {
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < rounds; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

/// A well-mixed 64-bit hash of two words (the finaliser of SplitMix64 over both).
inline uint64_t mix(uint64_t a, uint64_t b) {
  auto finalise = [](uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  };
  return finalise(finalise(a + 0x9E3779B97F4A7C15) ^ (b + 0xD1B54A32D192ED03));
}

/// A 64-bit hash of a name (FNV-1a, then mixed).
constexpr uint64_t name_hash(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return h;
}

/// A sequence of random numbers; a copy continues from the same position.
class Stream {
 public:
  Stream(uint64_t key, uint64_t epoch, uint64_t item)
      : key_(mix(key, epoch)), high_{static_cast<uint32_t>(item), static_cast<uint32_t>(item >> 32)} {}

  /// 32 random bits.
  uint32_t bits() {
    if (used_ == 4) {
      block_ = philox({next_, 0, high_[0], high_[1]}, key_);
      ++next_;
      used_ = 0;
    }
    return block_[used_++];
  }
  /// 64 random bits.
  uint64_t bits64() {
    const uint64_t high = bits();
    return high << 32 | bits();
  }
  /// A number in [0, 1) with 53 random bits.
  double uniform() { return static_cast<double>(bits64() >> 11) * 0x1.0p-53; }
  /// An integer in [0, n) with equal probabilities (Lemire 2019, arXiv 1805.10941); n > 0.
  uint64_t below(uint64_t n) {
    if (n <= 0xFFFFFFFF) {
      const auto m = static_cast<uint32_t>(n);
      uint64_t product = uint64_t{bits()} * m;
      if (static_cast<uint32_t>(product) < m) {
        const uint32_t threshold = static_cast<uint32_t>(-m) % m;
        while (static_cast<uint32_t>(product) < threshold) product = uint64_t{bits()} * m;
      }
      return product >> 32;
    }
    for (;;) {
      const uint64_t draw = bits64();
      if (draw < ~uint64_t{0} - (~uint64_t{0} % n)) return draw % n;
    }
  }
  /// True with probability `p`, to 2^-32.
  bool bernoulli(double p) { return bits() < p * 4294967296.0; }
  /// A draw of the standard normal distribution (Box-Muller, one of the pair).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

 private:
  uint64_t key_;
  std::array<uint32_t, 2> high_;
  uint32_t next_ = 0;
  int used_ = 4;
  std::array<uint32_t, 4> block_{};
};

/// The seed of a run, from which every stream is derived.
class Rng {
 public:
  explicit Rng(uint64_t seed) : seed_(seed) {}
  /// The key of a purpose: different purposes are independent.
  uint64_t key(std::string_view purpose) const { return mix(seed_, name_hash(purpose)); }
  /// The stream of one item: `rng.stream("mask", epoch, item)`.
  Stream stream(std::string_view purpose, uint64_t epoch = 0, uint64_t item = 0) const {
    return Stream(key(purpose), epoch, item);
  }
  uint64_t seed() const { return seed_; }

 private:
  uint64_t seed_;
};

/// A keyed permutation of [0, n): the shuffled order of an epoch, without an array of indices.
/// A Feistel network of six rounds over the next even number of bits, walked until it falls below n.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t key) : n_(n), key_(key) {
    while (bits_ < 31 && (uint64_t{1} << (2 * bits_)) < n) ++bits_;
  }
  uint64_t operator()(uint64_t i) const {
    const uint64_t mask = (uint64_t{1} << bits_) - 1;
    do {
      uint64_t left = i >> bits_, right = i & mask;
      for (uint64_t round = 0; round < 6; ++round)
        left = std::exchange(right, left ^ (mix(key_ + round, right) & mask));
      i = left << bits_ | right;
    } while (i >= n_);
    return i;
  }
  uint64_t size() const { return n_; }

 private:
  uint64_t n_, key_;
  int bits_ = 1;
};

}  // namespace cloze
