#pragma once
// CUDA devices, whose code is in a file of its own, which is opened when the first of them is made.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "reprise/device.hpp"

namespace reprise::c {

/// Returns the CUDA device with this index. `file` has the code; if it is empty,
/// libreprise_c_cuda.so beside this library does. A call that waits for longer than `deadline`
/// throws DEADLINE. Throws UNSUPPORTED if the file can't be opened or is of another version, if
/// there is no driver for it, or if there is no such device.
std::shared_ptr<Device> opened_cuda_device(const std::string& file, std::int32_t index,
                                           std::chrono::nanoseconds deadline);

}  // namespace reprise::c
