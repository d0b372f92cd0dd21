#include "sim/job/model/content.hpp"

namespace reprise::sim {

Stream parameter_stream(std::uint64_t seed, std::string_view key) {
  return Stream(seed).split("parameter").split(key);
}

Stream Batch::gradients(const Stream& parameter) const {
  return parameter.split("gradient")
      .split(static_cast<std::uint64_t>(iteration))
      .split(static_cast<std::uint64_t>(consumed_samples))
      .split(static_cast<std::uint64_t>(loss));
}

Stream Batch::targets(const Stream& parameter) const {
  return parameter.split("target").split(static_cast<std::uint64_t>(consumed_samples));
}

}  // namespace reprise::sim
