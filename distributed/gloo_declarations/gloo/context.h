#pragma once
// What c10d's header of Gloo names of it. The wheel of torch has Gloo's code without its headers.
#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds);
};

namespace transport {

class UnboundBuffer {
 public:
  virtual ~UnboundBuffer() = 0;
};

}  // namespace transport

}  // namespace gloo
