#include "core/ports/mixed_device.hpp"

#include <algorithm>

#include "core/geometry/piece.hpp"

namespace reprise {
namespace {

/// Returns the address of the piece's last element.
const std::byte* last_of(const PieceMemory& memory, const Piece& piece, DType dtype) {
  std::int64_t offset = piece.local;
  for (std::size_t d = 0; d < piece.box.ndim(); ++d) {
    offset += (piece.box.extent[d] - 1) * piece.strides[d];
  }
  return memory.data + static_cast<std::size_t>(offset) * size_of(dtype);
}

template <class Visit>
void each_on_host(const StateDict& state, const Visit& visit) {
  for (const TensorLeaf& leaf : state.tensors) {
    for (const Piece& piece : leaf.pieces) {
      const PieceMemory memory = memory_of(leaf, piece);
      if (memory.kind == MemoryKind::kHost && !piece.box.empty()) visit(memory, piece, leaf.dtype);
    }
  }
}

}  // namespace

MixedDevice::MixedDevice(Device& device, const StateDict& state) : PassingDevice(device) {
  each_on_host(state, [this](const PieceMemory& memory, const Piece& piece, DType dtype) {
    host_.emplace_back(memory.data, last_of(memory, piece, dtype));
  });
  std::sort(host_.begin(), host_.end());
  // Views of one buffer may overlap. Each range then also ends where those before it end.
  for (std::size_t i = 1; i < host_.size(); ++i) {
    host_[i].second = std::max(host_[i].second, host_[i - 1].second);
  }
}

bool MixedDevice::is_on_host(const std::byte* address) const {
  const auto after = std::upper_bound(
      host_.begin(), host_.end(), address,
      [](const std::byte* wanted, const auto& range) { return wanted < range.first; });
  return after != host_.begin() && address <= std::prev(after)->second;
}

/// Makes the copies of host memory by `make`, and returns the others.
template <class Copy, class Make>
std::vector<Copy> MixedDevice::others(std::span<const Copy> copies, const Make& make) const {
  std::vector<Copy> others;
  for (const Copy& copy : copies) {
    if (is_on_host(copy.device.data)) {
      make(copy);
    } else {
      others.push_back(copy);
    }
  }
  return others;
}

DeviceEvent MixedDevice::gather(std::span<const GatherCopy> copies) {
  return inner().gather(others(copies, [](const GatherCopy& copy) {
    copy_strided(copy.device, copy.host, copy.extents, copy.element_bytes);
  }));
}

DeviceEvent MixedDevice::scatter(std::span<const ScatterCopy> copies) {
  return inner().scatter(others(copies, [](const ScatterCopy& copy) {
    copy_strided(copy.host, copy.device, copy.extents, copy.element_bytes);
  }));
}

bool needs_mixed_device(const Device& device, const StateDict& state) {
  if (device.host_memory()) return false;
  bool found = false;
  each_on_host(state, [&found](const auto&...) { found = true; });
  return found;
}

}  // namespace reprise
