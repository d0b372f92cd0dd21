#pragma once
// Runs ranks as threads of the test's process. The members of a collective wait for each other in a
// Meeting. When a rank fails, it closes all meetings, and ranks that wait in a meeting get
// PEER_FAILED.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise::contracts {

/// The place where one group's members meet. When a member fails, all meetings of the world are
/// closed.
class Meeting {
 public:
  explicit Meeting(std::size_t size) : size_(size) {}

  std::vector<Bytes> exchange(std::size_t rank, ByteSpan mine) {
    std::unique_lock lock(mutex_);
    if (arrived_ == 0) arriving_.assign(size_, {});
    arriving_[rank] = Bytes(mine.begin(), mine.end());
    const std::size_t round = round_;
    if (++arrived_ == size_) {
      arrived_ = 0;
      ++round_;
      all_ = arriving_;
      met_.notify_all();
    } else {
      met_.wait(lock, [&] { return round_ != round || closed_; });
    }
    if (round_ == round) throw Error(Code::kPeerFailed, "a peer left");
    return all_;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    met_.notify_all();
  }

 private:
  std::size_t size_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::vector<Bytes> arriving_;
  std::vector<Bytes> all_;
  std::size_t arrived_ = 0;
  std::size_t round_ = 0;
  bool closed_ = false;
};

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(Group group, GroupRank rank, Meeting& meeting)
      : group_(std::move(group)), rank_(rank), meeting_(meeting) {}

  const Group& group() const override { return group_; }
  GroupRank rank() const override { return rank_; }
  void barrier() override { all_gather({}); }
  std::vector<Bytes> all_gather(ByteSpan mine) override {
    return meeting_.exchange(static_cast<std::size_t>(rank_.value), mine);
  }
  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    return all_gather(bytes)[static_cast<std::size_t>(root.value)];
  }
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    std::vector<std::int64_t> result;
    for (const auto& bytes : all_gather(std::as_bytes(mine))) {
      for (std::size_t i = 0; i < mine.size(); ++i) {
        const auto value = load_le<std::int64_t>(ByteSpan(bytes).subspan(i * sizeof(std::int64_t)));
        if (result.size() <= i) {
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
  Meeting& meeting_;
};

/// All meetings of one world, each created on first use.
class Meetings {
 public:
  Meeting& of(const Group& group) {
    const std::lock_guard lock(mutex_);
    auto& meeting = by_members_[group.members()];
    if (!meeting) meeting = std::make_unique<Meeting>(group.members().size());
    return *meeting;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    for (auto& [members, meeting] : by_members_) meeting->close();
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<GlobalRank>, std::unique_ptr<Meeting>> by_members_;
};

class ThreadFabric final : public Fabric {
 public:
  ThreadFabric(GlobalRank rank, std::int32_t size, Meetings& meetings)
      : rank_(rank), size_(size), meetings_(meetings) {}
  GlobalRank rank() const override { return rank_; }
  std::int32_t world_size() const override { return size_; }
  std::shared_ptr<Communicator> communicator(const Group& group) override {
    return std::make_shared<ThreadCommunicator>(group, group.rank_of(rank_).value(),
                                                meetings_.of(group));
  }

 private:
  GlobalRank rank_;
  std::int32_t size_;
  Meetings& meetings_;
};

/// Runs `work` on every rank and waits for all ranks; rethrows the exception of the lowest-numbered
/// rank that failed.
inline void run_world(std::int32_t size, const std::function<void(Fabric&)>& work) {
  Meetings meetings;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (std::int32_t r = 0; r < size; ++r) {
    threads.emplace_back([&, r] {
      ThreadFabric fabric({r}, size, meetings);
      try {
        work(fabric);
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
        meetings.close();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace reprise::contracts
