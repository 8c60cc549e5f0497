#pragma once
// The only include of Catch2. Tests that use LibTorch include it first; c10's CHECK would silently replace Catch's.
#ifdef CHECK
#undef CHECK
#endif
#ifdef CHECK_THROWS
#undef CHECK_THROWS
#endif
#include <catch2/catch.hpp>
