#pragma once
// As gloo/context.h.
namespace gloo::transport {

class Device {
 public:
  virtual ~Device() = 0;
};

}  // namespace gloo::transport
