#pragma once
// Tells AddressSanitizer and ThreadSanitizer about stack switches; does nothing in other builds.

#include <cstddef>

namespace reprise::sim {

/// The stack of one fiber. The calls surround the switches, in the order of a fiber's life:
///
///   outside:  entering() | switch in ........................ switch out | returned()
///   inside:                entered_first() ... leaving()/leaving_last() |
///                          entered_again() ...
class SanitizedStack {
 public:
  SanitizedStack() = default;
  ~SanitizedStack();
  SanitizedStack(const SanitizedStack&) = delete;
  SanitizedStack& operator=(const SanitizedStack&) = delete;

  void set_memory(const void* bottom, std::size_t size);
  void entering();
  void returned();
  void entered_first();
  void entered_again();
  void leaving();
  void leaving_last();

 private:
  const void* bottom_ = nullptr;
  std::size_t size_ = 0;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_size_ = 0;
  void* outer_fake_ = nullptr;  // AddressSanitizer's fake stack of the outer context
  void* inner_fake_ = nullptr;  // AddressSanitizer's fake stack of the fiber
  void* tsan_outer_ = nullptr;  // ThreadSanitizer's handle of the outer context
  void* tsan_inner_ = nullptr;
};

}  // namespace reprise::sim
