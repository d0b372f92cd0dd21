#pragma once
// The memory of the model: the device's, which the host can't touch, and pinned host memory.

#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>

namespace reprise::models {

class Allocations {
 public:
  enum class Kind : std::uint8_t { kDevice, kPinned };
  struct Allocation {
    std::byte* first = nullptr;
    std::size_t bytes = 0;
    Kind kind = Kind::kDevice;
    int device = 0;
  };

  Allocations() = default;
  Allocations(const Allocations&) = delete;
  Allocations& operator=(const Allocations&) = delete;
  ~Allocations();

  /// Returns memory with content that no test expects, with inaccessible pages around it. The
  /// memory ends at the end of a page, rounded to 256 bytes. Returns null if the device has not as
  /// much left.
  std::byte* allocate(Kind kind, int device, std::size_t bytes, std::size_t device_bytes);
  /// Makes the memory inaccessible; keeps its addresses for a while, so that later uses crash.
  /// Returns false if there is no such allocation of that kind.
  bool free(Kind kind, void* first);

  /// Opens the memory of a device, because queued work runs on it, until close(). The host can
  /// touch no device memory at any other time.
  void open(int device);
  /// Called at the end of each call of the runtime: opening and closing takes longer than most
  /// work.
  void close();

  /// Returns the live allocation that holds this address; null if there is none.
  const Allocation* at(const void* address) const;
  /// True if the address lies in memory that was freed not long ago.
  bool is_freed(const void* address) const;
  std::size_t count() const { return live_.size(); }
  std::size_t count_on(int device) const;

 private:
  struct Mapping {
    std::byte* first = nullptr;
    std::size_t bytes = 0;
  };
  static void protect(const Allocation& allocation, int protection);

  std::map<const std::byte*, Allocation> live_;
  std::map<const std::byte*, Mapping> mappings_;  ///< by the address of the allocation
  std::deque<Mapping> freed_;
  void protect_all(int device, int protection) const;

  std::set<int> open_ = {};          ///< devices
  std::map<int, std::size_t> used_;  ///< bytes of device memory, by device
};

}  // namespace reprise::models
