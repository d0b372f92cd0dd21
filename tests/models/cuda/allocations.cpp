#include "tests/models/cuda/allocations.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "core/base/check.hpp"
#include "tests/contracts/sanitized.hpp"

#if REPRISE_SANITIZED
#include <sanitizer/asan_interface.h>
#else
#define ASAN_UNPOISON_MEMORY_REGION(address, bytes) static_cast<void>(address)
#endif

namespace reprise::models {
namespace {

constexpr std::size_t kAlignment = 256;  // of cudaMalloc
constexpr std::size_t kFreedMax = 64;    // mappings that stay inaccessible after they were freed

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t rounded(std::size_t bytes, std::size_t grain) {
  return (bytes + grain - 1) / grain * grain;
}

/// Returns the address of the first page that a byte of the allocation lies in.
std::byte* page_of(std::byte* first) {
  return first - reinterpret_cast<std::uintptr_t>(first) % page_bytes();
}

}  // namespace

Allocations::~Allocations() {
  for (const auto& [first, mapping] : mappings_) ::munmap(mapping.first, mapping.bytes);
  for (const auto& mapping : freed_) ::munmap(mapping.first, mapping.bytes);
}

std::byte* Allocations::allocate(Kind kind, int device, std::size_t bytes,
                                 std::size_t device_bytes) {
  if (kind == Kind::kDevice && (bytes > device_bytes || used_[device] > device_bytes - bytes)) {
    return nullptr;
  }
  const std::size_t room = rounded(rounded(bytes, kAlignment), page_bytes());
  const std::size_t all = room + 2 * page_bytes();
  void* const mapped =
      ::mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(mapped);
  // A stack of an ended thread may have been here, which AddressSanitizer remembers.
  ASAN_UNPOISON_MEMORY_REGION(begin, all);
  // The end is where the next page faults.
  std::byte* const first = begin + page_bytes() + room - rounded(bytes, kAlignment);
  const Allocation allocation{first, bytes, kind, device};
  // A flag that the pages around it lack: Linux would otherwise merge the areas each time they are
  // closed and split them when they are opened, which takes longer than all else.
  ::madvise(begin + page_bytes(), room, MADV_DONTDUMP);
  protect(allocation, PROT_READ | PROT_WRITE);
  std::memset(first, kind == Kind::kDevice ? 0xA5 : 0xD7, bytes);
  if (kind == Kind::kDevice) {
    protect(allocation, PROT_NONE);
    used_[device] += bytes;
  }
  live_.emplace(first, allocation);
  mappings_.emplace(first, Mapping{begin, all});
  return first;
}

bool Allocations::free(Kind kind, void* first) {
  const auto found = live_.find(static_cast<const std::byte*>(first));
  if (found == live_.end() || found->second.kind != kind) return false;
  protect(found->second, PROT_NONE);
  if (kind == Kind::kDevice) used_[found->second.device] -= found->second.bytes;
  freed_.push_back(mappings_.at(found->first));
  mappings_.erase(found->first);
  live_.erase(found);
  if (freed_.size() > kFreedMax) {
    ::munmap(freed_.front().first, freed_.front().bytes);
    freed_.pop_front();
  }
  return true;
}

const Allocations::Allocation* Allocations::at(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto after = live_.upper_bound(byte);
  if (after == live_.begin()) return nullptr;
  const Allocation& allocation = std::prev(after)->second;
  return byte < allocation.first + allocation.bytes ? &allocation : nullptr;
}

bool Allocations::is_freed(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  for (const auto& mapping : freed_) {
    if (byte >= mapping.first && byte < mapping.first + mapping.bytes) return true;
  }
  return false;
}

std::size_t Allocations::count_on(int device) const {
  return static_cast<std::size_t>(
      std::count_if(live_.begin(), live_.end(),
                    [device](const auto& one) { return one.second.device == device; }));
}

void Allocations::protect(const Allocation& allocation, int protection) {
  std::byte* const page = page_of(allocation.first);
  const auto bytes = static_cast<std::size_t>(allocation.first + allocation.bytes - page);
  CHECK(::mprotect(page, rounded(bytes, page_bytes()), protection) == 0, bytes, protection);
}

void Allocations::protect_all(int device, int protection) const {
  for (const auto& [first, allocation] : live_) {
    if (allocation.kind == Kind::kDevice && allocation.device == device) {
      protect(allocation, protection);
    }
  }
}

void Allocations::open(int device) {
  if (open_.insert(device).second) protect_all(device, PROT_READ | PROT_WRITE);
}

void Allocations::close() {
  for (const int device : open_) protect_all(device, PROT_NONE);
  open_.clear();
}

}  // namespace reprise::models
