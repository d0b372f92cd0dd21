#pragma once
// The driver below the model of CUDA's runtime, for the model of NCCL: its queues, its memory, and
// what makes a call of CUDA wait.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tests/models/cuda/allocations.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/cuda/queues.hpp"
#include "tests/models/cuda/vendor/cuda_runtime_api.h"

namespace reprise::models {

/// Number of pauses after which a wait counts as a deadlock.
inline constexpr std::uint64_t kPausesMax = 5000;

/// Borrowed until the next reset().
struct Driver {
  Queues& queues;
  Allocations& memory;
  const Settings& settings;
};
Driver driver();

int caller_process();
std::uint64_t caller_thread();
int caller_device();  ///< number on the machine
bool caller_is_dead();
void pause_caller();

/// Counts a call. Returns true if it is to fail.
bool call_fails();
void add_fault(const std::string& what);
/// Returns the queue of a stream; null if there is no such stream.
std::shared_ptr<Queue> queue_of(cudaStream_t stream);
/// Pauses while the condition holds. Returns false and reports a deadlock if it holds for too long.
bool wait_while(const std::function<bool()>& condition, const std::string& what);

/// Tells what makes a call of CUDA wait, besides its own queues. Each function is asked about the
/// calling process.
struct DeviceWaits {
  std::function<bool()> is_locked;    ///< true if another thread holds the driver's lock
  std::function<bool()> awaits_peer;  ///< true if a kernel on the device may wait for a peer
};
/// Stays until it is set again.
void set_device_waits(DeviceWaits waits);

}  // namespace reprise::models
