#pragma once

namespace cloze {

/// Sets up the libraries below LibTorch so that every process computes the same bits. Called before their first use,
/// while there is one thread. Returns true.
bool set_up_math_libraries();

}  // namespace cloze
