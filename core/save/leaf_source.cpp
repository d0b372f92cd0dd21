#include "core/save/leaf_source.hpp"

#include <exception>
#include <utility>

namespace reprise {
namespace {

class LeafSource final : public ContentSource {
 public:
  LeafSource(Device& device, std::vector<LeafOrigin> origins)
      : device_(device), origins_(std::move(origins)) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    const auto& [leaf, piece] = origins_[item];
    const std::size_t width = size_of(leaf->dtype);
    copies_.clear();
    std::byte* to = out.data();
    for (const Box& part : boxes_of_range(piece->box, begin, end)) {
      const auto from = static_cast<std::size_t>(local_offset(*piece, part.offset)) * width;
      copies_.push_back({.device = {leaf->data + from, piece->strides},
                         .host = {to, contiguous_strides(part.extent)},
                         .extents = part.extent,
                         .element_bytes = width});
      to += static_cast<std::size_t>(part.elements()) * width;
    }
    events_.push_back(device_.gather(copies_));
  }

  /// Waits for all copies even if one fails, so that none is still running afterwards.
  void settle() override {
    std::exception_ptr first;
    while (!events_.empty()) {
      const DeviceEvent last = events_.back();
      events_.pop_back();
      try {
        device_.wait(last);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    if (first) std::rethrow_exception(first);
  }

  StagingMemory staging(std::size_t bytes) override { return device_.staging(bytes); }

 private:
  Device& device_;
  std::vector<LeafOrigin> origins_;
  std::vector<GatherCopy> copies_;
  std::vector<DeviceEvent> events_;
};

}  // namespace

std::unique_ptr<ContentSource> leaf_source(Device& device, std::vector<LeafOrigin> origins) {
  return std::make_unique<LeafSource>(device, std::move(origins));
}

}  // namespace reprise
