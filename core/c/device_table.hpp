#pragma once
// The border between libreprise_c.so and libreprise_c_cuda.so, which is opened when a job first has
// a CUDA device. Each has its own C++ library, possibly that of another compiler. So only functions
// of C, numbers, addresses and structs without constructors cross it, and no exception does.

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "reprise/device.hpp"

namespace reprise::c {

static_assert(std::is_trivially_copyable_v<GatherCopy> && std::is_standard_layout_v<GatherCopy>);
static_assert(std::is_trivially_copyable_v<ScatterCopy> && std::is_standard_layout_v<ScatterCopy>);

/// Hears why a call failed: `code` is a number of the enumeration Code.
struct FailureSink {
  void (*tell)(FailureSink* self, std::uint32_t code, const char* message);
};

/// The calls of Device. Those that return bool return false if they fail, after they have told why.
struct DeviceTable {
  std::size_t struct_size;  ///< of this struct
  std::size_t copy_size;    ///< of a GatherCopy, and of a ScatterCopy
  const char* version;      ///< of the library that it belongs to

  /// Makes a device. close() ends it.
  bool (*open)(std::int32_t index, std::int64_t deadline_ns, void** device, FailureSink* failure);
  void (*close)(void* device);
  const char* (*name)(void* device);  ///< valid until close()
  std::uint64_t (*batch_bytes)(void* device);
  bool (*gather)(void* device, const GatherCopy* copies, std::size_t count, std::uint64_t* event,
                 FailureSink* failure);
  bool (*scatter)(void* device, const ScatterCopy* copies, std::size_t count, std::uint64_t* event,
                  FailureSink* failure);
  bool (*wait)(void* device, std::uint64_t event, FailureSink* failure);
  bool (*publish)(void* device, FailureSink* failure);
  bool (*use_stream)(void* device, void* stream, FailureSink* failure);
  bool (*reserve)(void* device, std::size_t bytes, FailureSink* failure);
  bool (*reaches)(void* device, const std::byte* address, bool* reached, FailureSink* failure);
  /// Sets the first byte of the memory, and what release() takes, also after close().
  bool (*staging)(void* device, std::size_t bytes, std::byte** first, void** owner,
                  FailureSink* failure);
  void (*release)(void* owner);
};

/// libreprise_c_cuda.so exports one function of this type, under this name.
using DeviceTableCall = const DeviceTable* (*)();
inline constexpr const char* kCudaTableName = "reprise_c_cuda_table";

}  // namespace reprise::c
