// The only include of Catch2, of version 2 or 3. Tests that use LibTorch include it first; c10's CHECK would silently
// replace Catch's. A guard instead of #pragma once, which g++ forgets when it reads a precompiled header.
#ifndef CLOZE_TESTS_SUPPORT_CATCH_H
#define CLOZE_TESTS_SUPPORT_CATCH_H
#ifdef CHECK
#undef CHECK
#endif
#ifdef CHECK_THROWS
#undef CHECK_THROWS
#endif
#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
#else
#include <catch2/catch_all.hpp>
using Catch::Approx;
namespace Catch {  // names of version 2
using Matchers::EndsWith;
using Matchers::Equals;
using Matchers::Matches;
using Matchers::StartsWith;
using Matchers::WithinRel;
inline auto Contains(const std::string& text) { return Matchers::ContainsSubstring(text); }
}  // namespace Catch
#endif
#endif
