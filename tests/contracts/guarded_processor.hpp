#pragma once
// Simulates device memory without a device. Only the operations of its processor and its device can
// access the pages of this memory. Host code that dereferences an address in them crashes.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "core/base/check.hpp"
#include "reprise/device.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::contracts {

/// Reserves all pages once and allocates from the front. Freed memory is reused for the next
/// request of the same size.
class GuardedPages {
 public:
  GuardedPages()
      : begin_(static_cast<std::byte*>(::mmap(
            nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    CHECK(begin_ != MAP_FAILED);
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() { ::munmap(begin_, kReserved); }

  /// Keeps the pages accessible while any instance exists.
  class Opening {
   public:
    explicit Opening(GuardedPages& pages) : pages_(pages) {
      ++pages_.open_;
      pages_.protect(PROT_READ | PROT_WRITE);
    }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;
    ~Opening() {
      if (--pages_.open_ == 0) pages_.protect(PROT_NONE);
    }

   private:
    GuardedPages& pages_;
  };

  sim::ArrayMemory allocate(std::size_t bytes) {
    constexpr std::size_t kAlignment = 256;
    const std::size_t size = (bytes / kAlignment + 1) * kAlignment;
    auto found = free_.find(size);
    if (found == free_.end()) {
      found = free_.emplace(size, begin_ + used_);
      used_ += size;
      CHECK(used_ <= kReserved, used_);
    }
    std::byte* const memory = found->second;
    free_.erase(found);
    const Opening open(*this);
    std::fill_n(memory, bytes, std::byte{0xcd});
    return {memory, [this, size](std::byte* given_back) { free_.emplace(size, given_back); }};
  }

  bool holds(const std::byte* at) const { return at >= begin_ && at < begin_ + kReserved; }

 private:
  static constexpr std::size_t kReserved = std::size_t{1} << 30;

  void protect(int how) const { CHECK(::mprotect(begin_, used_, how) == 0, used_); }

  std::byte* begin_;
  std::size_t used_ = 0;
  int open_ = 0;
  std::multimap<std::size_t, std::byte*> free_;
};

/// A processor whose memory consists of guarded pages. During each operation, it makes the pages
/// accessible to the host.
class GuardedProcessor final : public sim::Processor {
 public:
  GuardedPages& pages() { return pages_; }

  bool host_memory() const override { return false; }
  sim::ArrayMemory allocate(std::size_t bytes) override { return pages_.allocate(bytes); }
  void copy_in(ByteSpan host, std::byte* to) override {
    CHECK(!pages_.holds(host.data()) && pages_.holds(to), host.size());
    const GuardedPages::Opening open(pages_);
    host_.copy_in(host, to);
  }
  void copy_out(const std::byte* from, MutableByteSpan host) override {
    CHECK(!pages_.holds(host.data()) && (host.empty() || pages_.holds(from)), host.size());
    const GuardedPages::Opening open(pages_);
    host_.copy_out(from, host);
  }
  void copy(std::span<const sim::BoxCopy> copies) override {
    for (const auto& copy : copies) {
      CHECK(pages_.holds(copy.source.data) && pages_.holds(copy.target.data), copy.extents);
    }
    const GuardedPages::Opening open(pages_);
    host_.copy(copies);
  }
  void run(std::span<const ElementMap> over, const sim::ElementWork& work) override {
    const GuardedPages::Opening open(pages_);
    host_.run(over, work);
  }
  sim::Sums sum(std::span<const ElementMap> over, const sim::ElementTerm& term) override {
    const GuardedPages::Opening open(pages_);
    return host_.sum(over, term);
  }
  std::optional<std::int64_t> first(std::span<const ElementMap> over,
                                    const sim::StaleWeight& stale) override {
    const GuardedPages::Opening open(pages_);
    return host_.first(over, stale);
  }

 private:
  sim::Processor& host_ = sim::host_processor();
  GuardedPages pages_;
};

/// A device that uses host memory and can also access the pages of a guarded processor.
class GuardedDevice final : public Device {
 public:
  GuardedDevice(Device& inner, GuardedPages& pages) : inner_(inner), pages_(pages) {}

  std::string name() const override { return inner_.name(); }
  StagingMemory staging(std::size_t bytes) override { return inner_.staging(bytes); }
  std::uint64_t batch_bytes() const override { return inner_.batch_bytes(); }
  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    for (const auto& copy : copies) check(copy.device.data, copy.host.data, copy.extents);
    const GuardedPages::Opening open(pages_);
    return inner_.gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    for (const auto& copy : copies) check(copy.device.data, copy.host.data, copy.extents);
    const GuardedPages::Opening open(pages_);
    return inner_.scatter(copies);
  }
  void wait(DeviceEvent event) override {
    const GuardedPages::Opening open(pages_);
    inner_.wait(event);
  }

 private:
  void check(const std::byte* device, const std::byte* host, const Dims& extents) const {
    CHECK(volume(extents) == 0 || (pages_.holds(device) && !pages_.holds(host)), extents);
  }

  Device& inner_;
  GuardedPages& pages_;
};

}  // namespace reprise::contracts
