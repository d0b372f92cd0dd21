#include "sim/job/job_memory.hpp"
#include "sim/job/optimizer/slots.hpp"

#include <utility>

namespace reprise::sim {
namespace {

template <class T>
Moved move_elsewhere(Array<T>& array) {
  Array<T> before = std::exchange(array, array.clone());
  return {.now = array.address_of(0), .bytes = array.size_bytes(), .old = before.memory()};
}

}  // namespace

std::vector<ByteSpan> memory(JobData& job) {
  std::vector<ByteSpan> all;
  const auto add = [&all](const auto& array) {
    if (array.size() > 0) all.emplace_back(array.address_of(0), array.size_bytes());
  };
  const auto add_shard = [&add](OptimizerShard& shard) {
    for (const Slot slot : kSlots) add(shard.slot(slot));
    add(shard.stored());
  };
  for (auto& module : job.modules) {
    for (auto& family : module.families) {
      for (const auto& parameter : family.parameters) add(parameter.weight);
      add_shard(*family.optimizer);
      if (family.foreign) add_shard(*family.foreign);
    }
  }
  add(job.extra);
  for (const auto& moved : job.moved) all.emplace_back(moved.old.get(), moved.bytes);
  return all;
}

void reallocate(JobData& job) {
  for (auto& module : job.modules) {
    for (auto& family : module.families) {
      for (auto& parameter : family.parameters)
        job.moved.push_back(move_elsewhere(parameter.weight));
      for (const Slot slot : kSlots) {
        job.moved.push_back(move_elsewhere(family.optimizer->slot(slot)));
      }
      job.moved.push_back(move_elsewhere(family.optimizer->stored()));
    }
  }
  if (job.extra.size() > 0) job.moved.push_back(move_elsewhere(job.extra));
}

}  // namespace reprise::sim
