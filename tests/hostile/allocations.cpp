#include "tests/hostile/allocations.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/contracts/sanitized.hpp"

namespace {

std::atomic<std::size_t> now = 0;
std::atomic<std::size_t> peak = 0;

}  // namespace

#if !REPRISE_SANITIZED

void* operator new(std::size_t size) {
  void* block = std::malloc(size == 0 ? 1 : size);
  if (block == nullptr) throw std::bad_alloc();
  const std::size_t total = now += malloc_usable_size(block);
  std::size_t seen = peak;
  while (seen < total && !peak.compare_exchange_weak(seen, total)) {
  }
  return block;
}
void* operator new[](std::size_t size) { return operator new(size); }

void operator delete(void* block) noexcept {
  if (block != nullptr) now -= malloc_usable_size(block);
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept { operator delete(block); }
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, std::size_t) noexcept { operator delete(block); }

#endif

namespace reprise::test {

bool allocations_counted() { return REPRISE_SANITIZED == 0; }
std::size_t allocated_bytes() { return now; }
std::size_t take_allocated_peak() { return peak.exchange(now); }

}  // namespace reprise::test
