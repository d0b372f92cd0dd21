#include "core/ports/staging_ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <utility>
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

/// Runs a task when somebody waits for it, or runs the latest ones first.
class LateTasks final : public Tasks {
 public:
  explicit LateTasks(bool backwards) : backwards_(backwards) {}
  std::unique_ptr<Task> start(std::function<void()> work) override {
    open_.push_back(std::make_shared<std::packaged_task<void()>>(std::move(work)));
    most = std::max(most, open_.size());
    return std::make_unique<Late>(*this, open_.back());
  }
  std::size_t most = 0;

 private:
  using Work = std::shared_ptr<std::packaged_task<void()>>;
  struct Late final : Task {
    Late(LateTasks& all, Work own) : tasks(all), work(std::move(own)), over(work->get_future()) {}
    ~Late() override {
      if (over.valid()) tasks.run(work);
    }
    Late(const Late&) = delete;
    Late& operator=(const Late&) = delete;
    bool done() override { return false; }
    void wait() override {
      tasks.run(work);
      over.get();
    }
    LateTasks& tasks;
    Work work;
    std::future<void> over;
  };

  void run(const Work& wanted) {
    if (std::find(open_.begin(), open_.end(), wanted) == open_.end()) return;
    if (backwards_) {
      for (auto all = std::exchange(open_, {}); !all.empty(); all.pop_back()) (*all.back())();
    } else {
      (*wanted)();
      std::erase(open_, wanted);
    }
  }

  bool backwards_;
  std::vector<Work> open_;
};

/// Passes parts of these sizes through the ring, part i filled with i + 1. Returns the target.
Bytes passed(StagingRing& ring, const std::vector<std::size_t>& sizes) {
  std::size_t all = 0;
  for (const auto size : sizes) all += size;
  Bytes target(all);
  std::size_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    ring.read(
        sizes[i],
        [i](MutableByteSpan part) {
          std::fill(part.begin(), part.end(), static_cast<std::byte>(i + 1));
        },
        [&ring, to = target.data() + at](MutableByteSpan part) {
          const ScatterCopy copy{
              {part.data(), {1}}, {to, {1}}, {static_cast<std::int64_t>(part.size())}, 1};
          ring.scatter({&copy, 1});
        });
    at += sizes[i];
  }
  ring.drain();
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
  const auto take = [&ring](std::size_t bytes, bool scatters) {
    ring.read(
        bytes, [](MutableByteSpan) {},
        [&](MutableByteSpan part) {
          const ScatterCopy copy{{part.data(), {1}}, {part.data(), {1}}, {0}, 1};
          if (scatters) ring.scatter({&copy, 1});
        });
  };
  for (int i = 0; i < 4; ++i) take(4, true);
  EXPECT_TRUE(device.waited.empty());
  take(3, false);
  EXPECT_EQ(device.waited, std::vector<std::uint64_t>{1});
  take(2, false);
  EXPECT_EQ(device.waited, (std::vector<std::uint64_t>{1, 2}));
  ring.drain();
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
      {
        StagingRing ring(staging, 5, device);
        EXPECT_EQ(passed(ring, sizes), wanted(sizes)) << bytes;
      }
      for (const bool backwards : {false, true}) {
        for (const std::size_t most : {1U, 2U, 3U}) {
          LateTasks tasks(backwards);
          StagingRing ring(staging, 5, device, {.tasks = &tasks, .most = most});
          EXPECT_EQ(passed(ring, sizes), wanted(sizes)) << bytes << " bytes, " << most << " reads";
          EXPECT_LE(tasks.most, most);
        }
      }
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

TEST(StagingRing, keeps_the_allowed_reads_in_flight_and_uses_them_in_order) {
  LateDevice device;
  LateTasks tasks(true);
  Bytes staging(16);
  StagingRing ring(staging, 4, device, {.tasks = &tasks, .most = 3});
  std::vector<int> used;
  for (int i = 0; i < 5; ++i) {
    ring.read(
        4, [](MutableByteSpan) {}, [&used, i](MutableByteSpan) { used.push_back(i); });
    EXPECT_EQ(used.size(), i < 3 ? 0U : static_cast<std::size_t>(i - 2));
  }
  EXPECT_EQ(tasks.most, 3U);
  ring.catch_up();
  EXPECT_EQ(used, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_TRUE(device.waited.empty());
}

TEST(StagingRing, reports_a_failed_read_in_its_turn_and_uses_nothing_after_it) {
  LateDevice device;
  LateTasks tasks(true);
  Bytes staging(16);
  std::vector<int> used;
  int read = 0;
  StagingRing ring(staging, 4, device, {.tasks = &tasks, .most = 4});
  for (int i = 0; i < 4; ++i) {
    ring.read(
        4,
        [&read, i](MutableByteSpan) {
          ++read;
          if (i == 1) throw Error(Code::kIo, "a read failed");
        },
        [&, i](MutableByteSpan part) {
          used.push_back(i);
          const ScatterCopy copy{{part.data(), {1}}, {part.data(), {1}}, {4}, 1};
          ring.scatter({&copy, 1});
        });
  }
  EXPECT_THROW(ring.drain(), Error);
  EXPECT_EQ(used, std::vector<int>{0});
  EXPECT_EQ(read, 4) << "reads into staging must be over";
  EXPECT_EQ(device.waited, std::vector<std::uint64_t>{1});
  EXPECT_NO_THROW(ring.drain());
}

TEST(StagingRing, waits_for_its_reads_before_it_goes) {
  LateDevice device;
  LateTasks tasks(false);
  Bytes staging(8);
  int read = 0;
  {
    StagingRing ring(staging, 4, device, {.tasks = &tasks, .most = 2});
    for (int i = 0; i < 2; ++i) {
      ring.read(
          4, [&read](MutableByteSpan) { ++read; },
          [](MutableByteSpan) { FAIL() << "used, though nobody asked for it"; });
    }
  }
  EXPECT_EQ(read, 2);
}

}  // namespace
}  // namespace reprise
