#include "tests/bench/bare.hpp"

#include <benchmark/benchmark.h>
#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <thread>
#include <utility>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/format/zip/crc32.hpp"
#include "core/geometry/piece.hpp"
#include "core/ports/passing_device.hpp"
#include "core/ports/passing_store.hpp"
#include "tests/bench/limit.hpp"
#include "tests/bench/solo_rank.hpp"

namespace reprise::bench {
namespace {

bool within(MutableByteSpan memory, const std::byte* address) {
  return !std::less<>()(address, memory.data()) &&
         std::less<>()(address, memory.data() + memory.size());
}

std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

void require(ssize_t moved, std::size_t wanted, const char* call) {
  if (moved != static_cast<ssize_t>(wanted)) {
    give_up(std::string(call) + " moved " + std::to_string(moved) + " of " +
            std::to_string(wanted) + " bytes");
  }
}

}  // namespace

/// Passes copies on and remembers them. Keeps the staging memory, and gives it again to the next
/// load.
class BareCalls::Device final : public PassingDevice {
 public:
  Device(BareCalls& calls, reprise::Device& inner) : PassingDevice(inner), calls_(calls) {}

  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    for (const auto& copy : copies) {
      calls_.steps_.push_back({.first = static_cast<std::uint32_t>(calls_.copies_.size())});
      calls_.copies_.push_back(copy);
    }
    return inner().scatter(copies);
  }
  StagingMemory staging(std::size_t bytes) override {
    for (std::size_t i = 0; i < calls_.staging_.size(); ++i) {
      const StagingMemory& memory = calls_.staging_[i];
      if (memory.use_count() == 1 && calls_.kept_[i + 1].size() >= bytes) return memory;
    }
    calls_.staging_.push_back(inner().staging(bytes));
    calls_.kept_.emplace_back(calls_.staging_.back().get(), bytes);
    return calls_.staging_.back();
  }

 private:
  BareCalls& calls_;
};

/// Passes reads on and remembers them.
class BareCalls::Store final : public PassingStore {
 public:
  Store(BareCalls& calls, reprise::Store& inner) : PassingStore(inner), calls_(calls) {}

  std::unique_ptr<ReadFile> open(const std::string& path) override {
    auto file = inner().open(path);
    calls_.files_.push_back(display(path));
    return std::make_unique<File>(calls_, std::move(file));
  }

 private:
  class File final : public ReadFile {
   public:
    File(BareCalls& calls, std::unique_ptr<ReadFile> inner)
        : calls_(calls),
          number_(static_cast<std::uint32_t>(calls.files_.size() - 1)),
          inner_(std::move(inner)) {}
    std::uint64_t size() const override { return inner_->size(); }
    std::optional<Entry> entry() const override { return inner_->entry(); }
    void read_at(std::uint64_t offset, MutableByteSpan out) override {
      calls_.add_read(number_, offset, {&out, 1});
      inner_->read_at(offset, out);
    }
    void read_parts(std::uint64_t offset, std::span<const MutableByteSpan> parts) override {
      calls_.add_read(number_, offset, parts);
      inner_->read_parts(offset, parts);
    }

   private:
    BareCalls& calls_;
    std::uint32_t number_;
    std::unique_ptr<ReadFile> inner_;
  };

  BareCalls& calls_;
};

BareCalls::BareCalls(const std::string& directory, std::span<StateDict> into,
                     const LoadOptions& options, MutableByteSpan memory)
    : memory_(memory), checked_(options.checksums == LoadChecksums::kVerified), kept_{memory} {
  HostDevice host("bench", 0);
  Device device(*this, host);
  SoloRank rank(directory, device);
  Store store(*this, rank.store());
  for (StateDict& state : into) rank.load_from(store, state, options);
  // Memory that the load has given back by now is replaced by other memory.
  std::size_t largest = 0;
  for (const iovec& part : parts_) {
    if (!keeps(static_cast<std::byte*>(part.iov_base))) largest = std::max(largest, part.iov_len);
  }
  other_.resize(largest);
  for (iovec& part : parts_) {
    if (!keeps(static_cast<std::byte*>(part.iov_base))) part.iov_base = other_.data();
  }
}

bool BareCalls::keeps(const std::byte* address) const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [&](const auto& memory) { return within(memory, address); });
}

void BareCalls::add_read(std::uint32_t file, std::uint64_t offset,
                         std::span<const MutableByteSpan> parts) {
  steps_.push_back({offset, file, static_cast<std::uint32_t>(parts_.size()),
                    static_cast<std::uint32_t>(parts.size())});
  for (const auto part : parts) parts_.push_back({part.data(), part.size()});
}

void BareCalls::check(const Step& step) const {
  if (!checked_) return;
  for (const iovec& part : parts_of(step)) {
    const auto* const bytes = static_cast<const std::byte*>(part.iov_base);
    if (within(memory_, bytes)) benchmark::DoNotOptimize(crc32_of({bytes, part.iov_len}));
  }
}

void BareCalls::load() {
  std::vector<OpenFile> files;
  for (const auto& path : files_) files.emplace_back(path, O_RDONLY);
  for (const Step& step : steps_) {
    if (step.parts == 0) {
      const ScatterCopy& copy = copies_[step.first];
      copy_strided(copy.host, copy.device, copy.extents, copy.element_bytes);
      continue;
    }
    const auto parts = parts_of(step);
    require(::preadv(files[step.file].get(), parts.data(), static_cast<int>(parts.size()),
                     static_cast<off_t>(step.offset)),
            bytes_of(parts), "preadv");
    check(step);
  }
}

void BareCalls::save(const std::string& directory, int threads) {
  std::filesystem::create_directory(directory);
  std::vector<OpenFile> files;
  for (std::size_t n = 0; n < files_.size(); ++n) {
    files.emplace_back(directory + "/" + std::to_string(n), O_WRONLY | O_CREAT | O_EXCL);
  }
  std::atomic<std::size_t> next = 0;
  const auto write = [&] {
    for (std::size_t n = next++; n < steps_.size(); n = next++) {
      const Step& step = steps_[n];
      const auto parts = parts_of(step);
      check(step);
      require(::pwritev(files[step.file].get(), parts.data(), static_cast<int>(parts.size()),
                        static_cast<off_t>(step.offset)),
              bytes_of(parts), "pwritev");
    }
  };
  std::vector<std::jthread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(write);
  write();
}

BareCalls::Count BareCalls::count(const std::string& ending) const {
  Count count;
  for (const Step& step : steps_) {
    if (step.parts == 0 || !files_[step.file].ends_with(ending)) continue;
    ++count.calls;
    count.bytes += bytes_of(parts_of(step));
  }
  return count;
}

}  // namespace reprise::bench
