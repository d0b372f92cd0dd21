#include "reprise/device.hpp"

#include "reprise/error.hpp"

namespace reprise {

void Device::use_stream(void* stream) {
  if (stream == nullptr) return;
  throw Error(Code::kUsage, "stream: device " + name() + " has no streams; leave it out");
}

}  // namespace reprise
