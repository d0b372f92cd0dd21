#include "sim/faults/memory_meter.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/geometry/dtype.hpp"
#include "core/ports/observed_ports.hpp"
#include "core/ports/passing_device.hpp"
#include "core/ports/traced_ports.hpp"
#include "core/save/phases.hpp"
#include "sim/faults/address_set.hpp"

namespace reprise::sim {
namespace {

AddressRange range_of(ByteSpan bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  return {begin, begin + bytes.size()};
}

/// Returns the number of elements that a region spans, from its first to its last element, gaps
/// included.
std::uint64_t span_of(const Dims& extents, const Dims& strides) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return 0;
    last += (extents[d] - 1) * strides[d];
  }
  return static_cast<std::uint64_t>(last) + 1;
}

/// Memory that one rank uses in its current operation.
class Tally {
 public:
  void set_own(std::span<const ByteSpan> own, const StateDict& leaves) {
    const std::scoped_lock lock(mutex_);
    own_.clear();
    beside_.clear();
    for (const ByteSpan memory : own) {
      if (!memory.empty()) own_.add(range_of(memory));
    }
    for (const auto& leaf : leaves.tensors) {
      for (const auto& piece : leaf.pieces) {
        const std::uint64_t width = size_of(leaf.dtype);
        const std::byte* first = leaf.data + static_cast<std::uint64_t>(piece.local) * width;
        const auto range = range_of({first, span_of(piece.box.extent, piece.strides) * width});
        if (!own_.covers(range)) beside_.add(range);
      }
    }
  }

  void set_own(const StateDict& leaves) {
    set_own({}, leaves);
    const std::scoped_lock lock(mutex_);
    own_ = std::exchange(beside_, {});
  }

  void begins(std::string_view phase) {
    const std::scoped_lock lock(mutex_);
    if (phase == phase::kStage) return start(Operation::kSave);
    if (phase == phase::kRead) return start(Operation::kLoad);
    if (phase == phase::kCommit || phase == phase::kCommon) return start(Operation::kNone);
    // A load reads its objects last: all exchanges are over, but the tensors' buffers still exist.
    if (phase == phase::kObjects) exchanges_ = false;
  }

  void gathered(AddressRange host) {
    const std::scoped_lock lock(mutex_);
    if (operation_ == Operation::kLoad) keep(host);
    if (operation_ != Operation::kSave) return;
    snapshot_.add(host);
    keep(host);
  }
  /// From now on, copies from this memory of a device are none from host memory.
  void received_on_device(AddressRange device) {
    const std::scoped_lock lock(mutex_);
    on_device_.add(device);
  }
  void scattered(AddressRange host) {
    const std::scoped_lock lock(mutex_);
    if (operation_ != Operation::kLoad || on_device_.meets(host)) return;
    keep(host);
    // Memory into which more was read at once is held as a whole.
    const auto after = passing_.upper_bound(host.begin);
    if (after == passing_.begin()) return;
    const auto& [begin, end] = *std::prev(after);
    if (host.end <= end) keep({begin, end});
  }
  void wrote(AddressRange bytes) {
    const std::scoped_lock lock(mutex_);
    if (operation_ == Operation::kSave) pass(bytes);
  }
  void read(AddressRange bytes) {
    const std::scoped_lock lock(mutex_);
    if (operation_ != Operation::kLoad) return;
    bytes_read_ += bytes.end - bytes.begin;
    pass(bytes);
  }
  struct Carried {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
  };
  void carried(const Carried& bytes) {
    const std::scoped_lock lock(mutex_);
    peaks_.wire = std::max(peaks_.wire, bytes.in + bytes.out);
    if (exchanges_) brought_ = std::max(brought_, bytes.out);
  }

  MemoryPeaks peaks() const {
    const std::scoped_lock lock(mutex_);
    MemoryPeaks peaks = peaks_;
    count_into(peaks);
    return peaks;
  }
  std::uint64_t bytes_read() const {
    const std::scoped_lock lock(mutex_);
    return bytes_read_;
  }

 private:
  enum class Operation : std::uint8_t { kNone, kSave, kLoad };

  void start(Operation operation) {
    count_into(peaks_);
    operation_ = operation;
    snapshot_.clear();
    held_.clear();
    passing_.clear();
    brought_ = 0;
    exchanges_ = operation == Operation::kLoad;
    if (exchanges_) bytes_read_ = 0;
  }
  /// Writes the peaks of the operation so far to `peaks`.
  void count_into(MemoryPeaks& peaks) const {
    std::uint64_t passing = 0;
    for (const auto& [begin, end] : passing_) {
      // A buffer that was also part of a copy is already counted as held memory.
      if (!held_.meets({begin, end})) passing = std::max<std::uint64_t>(passing, end - begin);
    }
    if (operation_ == Operation::kSave) {
      peaks.snapshot = snapshot_.bytes();
      peaks.stage = held_.bytes() + passing + beside_.bytes();
    } else if (operation_ == Operation::kLoad) {
      peaks.load = held_.bytes() + passing + brought_ + beside_.bytes();
    }
  }
  void keep(AddressRange range) {
    if (!is_counted(range)) held_.add(range);
  }
  /// True if this memory needs no further counting, because it is the job's own or already counted
  /// in beside_.
  bool is_counted(AddressRange range) const { return own_.meets(range) || beside_.meets(range); }
  void pass(AddressRange range) {
    if (is_counted(range)) return;
    if (held_.meets(range)) return held_.add(range);
    auto& end = passing_[range.begin];
    end = std::max(end, range.end);
  }

  mutable std::mutex mutex_;
  Operation operation_ = Operation::kNone;
  AddressSet own_;
  AddressSet beside_;  ///< memory of saved or filled leaves outside own_
  AddressSet snapshot_;
  AddressSet held_;
  AddressSet on_device_;
  std::map<std::uintptr_t, std::uintptr_t> passing_;  ///< maps each range's begin to its end
  bool exchanges_ = false;                            ///< true while a load reads tensors
  /// Size of the largest result that a collective returned while this load read tensors.
  std::uint64_t brought_ = 0;
  std::uint64_t bytes_read_ = 0;  ///< number of bytes that the last load read
  MemoryPeaks peaks_;
};

class MeteredDevice final : public PassingDevice {
 public:
  MeteredDevice(Device& inner, Tally& tally) : PassingDevice(inner), tally_(tally) {}

  DeviceEvent gather(std::span<const GatherCopy> copies) override {
    for (const auto& copy : copies) {
      const auto span = span_of(copy.extents, copy.host.strides) * copy.element_bytes;
      tally_.gathered(range_of({copy.host.data, span}));
    }
    return inner().gather(copies);
  }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    for (const auto& copy : copies) {
      const auto span = span_of(copy.extents, copy.host.strides) * copy.element_bytes;
      tally_.scattered(range_of({copy.host.data, span}));
    }
    return inner().scatter(copies);
  }

 private:
  Tally& tally_;
};

class MeteredStore final : public ObservedStore {
 public:
  MeteredStore(Store& inner, Tally& tally) : ObservedStore(inner), tally_(tally) {}

 private:
  void around(const Call& call, const Rest& rest) override {
    // Parts that are adjacent in memory are one buffer.
    for (std::size_t i = 0; i < call.into.size();) {
      AddressRange buffer = range_of(call.into[i]);
      for (++i; i < call.into.size() && range_of(call.into[i]).begin == buffer.end; ++i) {
        buffer.end = range_of(call.into[i]).end;
      }
      tally_.read(buffer);
    }
    if (call.operation == "write") tally_.wrote(range_of(call.from));
    rest();
  }

  Tally& tally_;
};

class MeteredCommunicator final : public ObservedCommunicator {
 public:
  MeteredCommunicator(Tally& tally, std::shared_ptr<Communicator> inner)
      : ObservedCommunicator(std::move(inner)), tally_(tally) {}

 private:
  void around(const Call& call, const Rest& rest) override {
    const Brought brought = rest();
    if (!brought.on_device.empty()) tally_.received_on_device(range_of(brought.on_device));
    if (brought.bytes != 0 || !brought.on_device.empty()) {
      tally_.carried({.in = call.bytes, .out = brought.bytes});
    }
  }

  Tally& tally_;
};

class MeteredFabric final : public Fabric {
 public:
  MeteredFabric(Fabric& inner, Tally& tally) : inner_(inner), tally_(tally) {}

  GlobalRank rank() const override { return inner_.rank(); }
  std::int32_t world_size() const override { return inner_.world_size(); }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    return std::make_shared<MeteredCommunicator>(tally_, inner_.communicator(group));
  }

 private:
  Fabric& inner_;
  Tally& tally_;
};

}  // namespace

struct MemoryMeter::State {
  explicit State(const Ports& inner)
      : store(inner.store, tally),
        fabric(inner.fabric, tally),
        data(inner.data ? std::make_unique<MeteredFabric>(*inner.data, tally) : nullptr),
        device(inner.device, tally),
        trace(inner.trace,
              [this](const TraceEvent& event) {
                if (event.moment == Moment::kBegin && event.detail.empty()) {
                  tally.begins(event.phase);
                }
              }),
        ports{store, fabric, device, inner.tasks, trace, data.get()} {}

  Tally tally;
  MeteredStore store;
  MeteredFabric fabric;
  std::unique_ptr<MeteredFabric> data;
  MeteredDevice device;
  TappedTrace trace;
  Ports ports;
};

MemoryMeter::MemoryMeter(const Ports& inner) : state_(std::make_unique<State>(inner)) {}
MemoryMeter::~MemoryMeter() = default;
const Ports& MemoryMeter::ports() const { return state_->ports; }
void MemoryMeter::set_own(std::span<const ByteSpan> own, const StateDict& leaves) {
  state_->tally.set_own(own, leaves);
}
void MemoryMeter::set_own(const StateDict& leaves) { state_->tally.set_own(leaves); }
MemoryPeaks MemoryMeter::peaks() const { return state_->tally.peaks(); }
std::uint64_t MemoryMeter::bytes_read() const { return state_->tally.bytes_read(); }

}  // namespace reprise::sim
