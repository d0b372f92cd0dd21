#include "sim/job/extra_tensor.hpp"

#include <vector>

#include "core/base/hash.hpp"

namespace reprise::sim {
namespace {

/// An odd number, so that what is stored after the tensor is not aligned as it is without it.
constexpr std::size_t kExtraBytes = 1031;

}  // namespace

void make_extra(JobData& job) {
  if (!job.config.checkpoint.extra_tensor) return;
  std::vector<std::uint8_t> bytes(kExtraBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(mix64(job.config.training.seed, i));
  }
  job.extra = Array<std::uint8_t>(*job.config.hardware.processor, bytes.size());
  job.extra.assign(bytes);
}

void add_extra(const JobData& job, StateDict& state) {
  if (job.extra.size() == 0) return;
  const Dims shape = {static_cast<std::int64_t>(job.extra.size())};
  state.tensors.push_back({.key = kExtraKey,
                           .dtype = DType::kUInt8,
                           .shape = shape,
                           .pieces = {contiguous_piece(Box::whole(shape))},
                           .data = job.extra.address_of(0),
                           .replica = job.world->rank().value});
}

}  // namespace reprise::sim
