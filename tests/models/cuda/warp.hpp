#pragma once
// Runs the threads of a kernel, a warp at a time. Its lanes are fibers, so that they can exchange
// values in the middle of a kernel.

#include <cstdint>
#include <functional>
#include <string>

#include "tests/models/cuda/vendor/cuda_runtime.h"

namespace reprise::models {

/// The order of a kernel's threads. A GPU promises none.
enum class Threads : std::uint8_t { kForwards, kBackwards };

/// Calls `body` once per thread of the grid, block by block and warp by warp, with the built-in
/// variables set. Returns what the kernel did wrong; empty if nothing.
std::string run_grid(dim3 grid, dim3 block, Threads order, const std::function<void()>& body);

}  // namespace reprise::models
