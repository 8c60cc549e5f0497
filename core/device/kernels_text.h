#pragma once
// The text of kernels.cu, which the build puts into the program.
namespace cloze::device {

extern const char* const kernels_text;

}  // namespace cloze::device
