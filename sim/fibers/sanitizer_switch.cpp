#include "sim/fibers/sanitizer_switch.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define REPRISE_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define REPRISE_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define REPRISE_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define REPRISE_TSAN 1
#endif

#if defined(REPRISE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(REPRISE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace reprise::sim {
namespace {

#if defined(REPRISE_ASAN)
void start_switch(void** fake, const void* bottom, std::size_t size) {
  __sanitizer_start_switch_fiber(fake, bottom, size);
}
void finish_switch(void* fake, const void** bottom, std::size_t* size) {
  __sanitizer_finish_switch_fiber(fake, bottom, size);
}
// Clears the AddressSanitizer marks that an earlier fiber's frames left in this memory. The last
// frames of that fiber never returned, so they did not clear their own marks.
void forget_frames(const void* bottom, std::size_t size) {
  __asan_unpoison_memory_region(bottom, size);
}
#else
void forget_frames(const void* /*bottom*/, std::size_t /*size*/) {}
void start_switch(void** /*fake*/, const void* /*bottom*/, std::size_t /*size*/) {}
void finish_switch(void* /*fake*/, const void** /*bottom*/, std::size_t* /*size*/) {}
#endif

#if defined(REPRISE_TSAN)
void* this_tsan_fiber() { return __tsan_get_current_fiber(); }
void* new_tsan_fiber() { return __tsan_create_fiber(0); }
void delete_tsan_fiber(void* fiber) { __tsan_destroy_fiber(fiber); }
void switch_tsan(void* fiber) { __tsan_switch_to_fiber(fiber, 0); }
#else
void* this_tsan_fiber() { return nullptr; }
void* new_tsan_fiber() { return nullptr; }
void delete_tsan_fiber(void* /*fiber*/) {}
void switch_tsan(void* /*fiber*/) {}
#endif

}  // namespace

SanitizedStack::~SanitizedStack() {
  if (tsan_inner_ != nullptr) delete_tsan_fiber(tsan_inner_);
}

void SanitizedStack::set_memory(const void* bottom, std::size_t size) {
  bottom_ = bottom;
  size_ = size;
  forget_frames(bottom, size);
  tsan_inner_ = new_tsan_fiber();
}

void SanitizedStack::entering() {
  tsan_outer_ = this_tsan_fiber();
  start_switch(&outer_fake_, bottom_, size_);
  switch_tsan(tsan_inner_);
}

void SanitizedStack::returned() { finish_switch(outer_fake_, nullptr, nullptr); }

void SanitizedStack::entered_first() { finish_switch(nullptr, &outer_bottom_, &outer_size_); }

void SanitizedStack::entered_again() { finish_switch(inner_fake_, &outer_bottom_, &outer_size_); }

void SanitizedStack::leaving() {
  start_switch(&inner_fake_, outer_bottom_, outer_size_);
  switch_tsan(tsan_outer_);
}

void SanitizedStack::leaving_last() {
  start_switch(nullptr, outer_bottom_, outer_size_);
  switch_tsan(tsan_outer_);
}

}  // namespace reprise::sim
