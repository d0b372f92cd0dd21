#pragma once
// Ranks as threads of the test's process over one real directory: the smallest world in which the
// engine runs with several ranks.

#include <condition_variable>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/adapters/posix/host_device.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/adapters/posix/posix_store.hpp"
#include "core/adapters/posix/thread_tasks.hpp"
#include "core/base/check.hpp"
#include "core/ports/ports.hpp"

namespace reprise::contracts {

/// Where the members of one group meet: a round ends when everybody has put its bytes.
class Meeting {
 public:
  explicit Meeting(std::size_t size) : slots_(size) {}

  std::vector<Bytes> meet(std::size_t rank, ByteSpan mine) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !leaving_; });
    slots_[rank].assign(mine.begin(), mine.end());
    if (++present_ == slots_.size()) {
      leaving_ = true;
      ready_.notify_all();
    } else {
      ready_.wait(lock, [this] { return leaving_; });
    }
    auto all = slots_;
    if (--present_ == 0) {
      leaving_ = false;
      ready_.notify_all();
    }
    return all;
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<Bytes> slots_;
  std::size_t present_ = 0;
  bool leaving_ = false;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(Group group, GroupRank rank, std::shared_ptr<Meeting> meeting)
      : group_(std::move(group)), rank_(rank), meeting_(std::move(meeting)) {}

  const Group& group() const override { return group_; }
  GroupRank rank() const override { return rank_; }
  void barrier() override { all_gather({}); }
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    return meeting_->meet(static_cast<std::size_t>(rank_.value), mine);
  }
  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    return all_gather(bytes)[static_cast<std::size_t>(root.value)];
  }
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    std::vector<std::int64_t> result;
    for (const Bytes& other : all_gather(std::as_bytes(mine))) {
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const auto value = load_le<std::int64_t>(ByteSpan(other).subspan(8 * i));
        if (i == result.size()) {
          result.push_back(value);
        } else if (how == Reduce::kSum) {
          result[i] += value;
        } else {
          result[i] = how == Reduce::kMin ? std::min(result[i], value) : std::max(result[i], value);
        }
      }
    }
    return result;
  }

 private:
  Group group_;
  GroupRank rank_;
  std::shared_ptr<Meeting> meeting_;
};

/// Hands out one meeting per group.
class ThreadFabric final : public Fabric {
 public:
  struct Shared {
    std::mutex mutex;
    std::map<std::vector<GlobalRank>, std::shared_ptr<Meeting>> meetings;
  };

  ThreadFabric(GlobalRank rank, std::int32_t world, std::shared_ptr<Shared> shared)
      : rank_(rank), world_(world), shared_(std::move(shared)) {}

  GlobalRank rank() const override { return rank_; }
  std::int32_t world_size() const override { return world_; }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    const std::lock_guard lock(shared_->mutex);
    auto& meeting = shared_->meetings[group.members()];
    if (!meeting) meeting = std::make_shared<Meeting>(static_cast<std::size_t>(group.size()));
    return std::make_shared<ThreadCommunicator>(group, *group.rank_of(rank_), meeting);
  }

 private:
  GlobalRank rank_;
  std::int32_t world_;
  std::shared_ptr<Shared> shared_;
};

struct SilentTrace final : Trace {
  void event(const TraceEvent&) override {}
};

/// Runs `body` once per rank, each on its own thread with its own ports; rethrows the first failure
/// by rank. `wrap` may put a decorator around a rank's store.
using WrapStore = std::function<std::unique_ptr<Store>(Store&, GlobalRank)>;
inline void run_ranks(std::int32_t world, const std::string& directory,
                      const std::function<void(const Ports&)>& body, const WrapStore& wrap = {}) {
  const auto shared = std::make_shared<ThreadFabric::Shared>();
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(world));
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < world; ++r) {
    threads.emplace_back([&, r] {
      PosixStore store(directory);
      const auto wrapped = wrap ? wrap(store, {r}) : nullptr;
      ThreadFabric fabric({r}, world, shared);
      HostDevice device("node", r);
      PosixClock clock;
      ThreadTasks tasks(1);
      SilentTrace trace;
      try {
        body({wrapped ? *wrapped : store, fabric, device, clock, tasks, trace});
      } catch (...) {
        failures[static_cast<std::size_t>(r)] = std::current_exception();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace reprise::contracts
