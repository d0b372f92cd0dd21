#pragma once
// Defines an array that a job keeps in its processor's memory. Only the processor and the leaves
// may use its addresses; host code must not dereference them.

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/check.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::sim {

template <class T>
class Array {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Array() = default;
  /// Allocates an array with undefined content. Borrows the processor.
  Array(Processor& processor, std::size_t size)
      : processor_(&processor), size_(size), memory_(processor.allocate(size * sizeof(T))) {}
  Array(Array&& other) noexcept = default;
  Array& operator=(Array&& other) noexcept = default;

  std::size_t size() const { return size_; }
  std::size_t size_bytes() const { return size_ * sizeof(T); }
  T* address() const { return reinterpret_cast<T*>(memory_.get()); }
  std::byte* address_of(std::size_t element) const { return memory_.get() + element * sizeof(T); }
  const ArrayMemory& memory() const { return memory_; }

  Processor& processor() const {
    CHECK(processor_ != nullptr, size_);
    return *processor_;
  }

  void fill(T value) {
    const ElementMap all = line_map(static_cast<std::int64_t>(size_));
    processor().run({&all, 1}, Fill<T>{address(), value});
  }
  /// Copies `values` from the host. There must be one value for each element of the array.
  void assign(std::span<const T> values) {
    CHECK(values.size() == size_, values.size(), size_);
    processor().copy_in(std::as_bytes(values), memory_.get());
  }
  /// Returns the content, copied to the host.
  Bytes bytes() const {
    Bytes bytes(size_bytes());
    processor().copy_out(memory_.get(), bytes);
    return bytes;
  }
  std::vector<T> values() const {
    std::vector<T> values(size_);
    processor().copy_out(memory_.get(), std::as_writable_bytes(std::span(values)));
    return values;
  }
  /// Returns an array in new memory with the same content.
  Array clone() const {
    Array other(processor(), size_);
    const BoxCopy all{{memory_.get(), {1}},
                      {other.memory_.get(), {1}},
                      {static_cast<std::int64_t>(size_)},
                      sizeof(T)};
    processor().copy({&all, 1});
    return other;
  }

 private:
  Processor* processor_ = nullptr;
  std::size_t size_ = 0;
  ArrayMemory memory_;
};

}  // namespace reprise::sim
