#include "core/ports/staging_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "core/geometry/piece.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

/// Makes a copy only when somebody waits for it. So a part that is used again too early shows.
class LateDevice final : public Device {
 public:
  std::string name() const override { return "late"; }
  DeviceEvent gather(std::span<const GatherCopy> /*copies*/) override { return {}; }
  DeviceEvent scatter(std::span<const ScatterCopy> copies) override {
    queued_.emplace(++last_, std::vector<ScatterCopy>(copies.begin(), copies.end()));
    return {.id = last_};
  }
  void wait(DeviceEvent event) override {
    waited.push_back(event.id);
    if (event.id == failing) throw Error(Code::kInternal, "a copy failed");
    for (const auto& copy : queued_[event.id]) {
      copy_strided(copy.host, copy.device, copy.extents, copy.element_bytes);
    }
    queued_.erase(event.id);
  }
  void publish() override { ++published; }

  std::vector<std::uint64_t> waited;
  std::uint64_t failing = 0;
  int published = 0;

 private:
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, std::vector<ScatterCopy>> queued_;
};

/// Passes parts of these sizes through the ring, part i filled with i + 1. Returns the target.
Bytes passed(StagingRing& ring, const std::vector<std::size_t>& sizes) {
  std::size_t all = 0;
  for (const auto size : sizes) all += size;
  Bytes target(all);
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const MutableByteSpan part = ring.take(sizes[i]);
    std::fill(part.begin(), part.end(), static_cast<std::byte>(i + 1));
    const ScatterCopy copy{
        {part.data(), {1}}, {target.data() + at, {1}}, {static_cast<std::int64_t>(sizes[i])}, 1};
    ring.scatter({&copy, 1});
    at += sizes[i];
  }
  ring.settle();
  return target;
}

Bytes wanted(const std::vector<std::size_t>& sizes) {
  Bytes bytes;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    bytes.insert(bytes.end(), sizes[i], static_cast<std::byte>(i + 1));
  }
  return bytes;
}

TEST(StagingRing, waits_only_for_copies_from_the_part_that_it_gives_again) {
  LateDevice device;
  Bytes staging(16);
  StagingRing ring(staging, 4, device);
  for (int i = 0; i < 4; ++i) {
    const ScatterCopy copy{{ring.take(4).data(), {1}}, {staging.data(), {1}}, {0}, 1};
    ring.scatter({&copy, 1});
  }
  EXPECT_TRUE(device.waited.empty());
  ring.take(3);
  EXPECT_EQ(device.waited, std::vector<std::uint64_t>{1});
  ring.take(2);
  EXPECT_EQ(device.waited, (std::vector<std::uint64_t>{1, 2}));
  ring.settle();
  EXPECT_EQ(device.waited, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_EQ(device.published, 1);
}

TEST(StagingRing, loses_no_byte_whatever_the_sizes_are) {
  for (const std::size_t bytes : {5U, 7U, 10U, 11U, 40U}) {
    for (const auto& sizes : {std::vector<std::size_t>{5, 5, 5, 5},
                              {1, 2, 3, 4, 5, 4, 3, 2, 1},
                              {5, 1, 5, 1, 5},
                              {3, 3, 3, 3, 3, 3, 3}}) {
      LateDevice device;
      Bytes staging(bytes);
      StagingRing ring(staging, 5, device);
      EXPECT_EQ(passed(ring, sizes), wanted(sizes)) << bytes;
    }
  }
}

TEST(StagingRing, waits_for_all_copies_even_if_one_fails_and_then_tells_it) {
  LateDevice device;
  device.failing = 2;
  Bytes staging(16);
  StagingRing ring(staging, 4, device);
  EXPECT_THROW(passed(ring, {4, 4, 4}), Error);
  EXPECT_EQ(device.waited, (std::vector<std::uint64_t>{1, 2, 3}));
}

}  // namespace
}  // namespace reprise
