// The only include of Catch2. Tests that use LibTorch include it first; c10's CHECK would silently replace Catch's.
// A guard instead of #pragma once, which g++ forgets when it reads a precompiled header.
#ifndef CLOZE_TESTS_SUPPORT_CATCH_H
#define CLOZE_TESTS_SUPPORT_CATCH_H
#ifdef CHECK
#undef CHECK
#endif
#ifdef CHECK_THROWS
#undef CHECK_THROWS
#endif
#include <catch2/catch.hpp>
#endif
