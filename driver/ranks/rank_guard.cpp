#include "driver/ranks/rank_guard.hpp"

#include <string>
#include <utility>

namespace reprise::driver {
namespace {

constexpr auto kBarrierPoll = std::chrono::milliseconds(20);

}  // namespace

std::optional<Error> why_end(RankLiveness& locks, GlobalRank self, std::int32_t world,
                             std::chrono::milliseconds since, const StartLimits& limits) {
  for (GlobalRank rank{0}; rank.value < world; ++rank.value) {
    if (rank == self) continue;
    const std::string who = "start of the ranks: rank " + std::to_string(rank.value);
    if (locks.has_ended(rank) && !locks.came_through(rank)) {
      return Error(Code::kPeerFailed, who + " has ended", {.rank = self});
    }
    if (since > limits.begun && !locks.has_begun(rank)) {
      return Error(Code::kDeadline, who + " did not start; it died early, or its host is slow",
                   {.rank = self});
    }
  }
  if (since <= limits.through) return std::nullopt;
  return Error(Code::kDeadline, "start of the ranks: all have started, but they don't connect",
               {.rank = self});
}

std::optional<Error> why_leave(RankLiveness& locks, GlobalRank self, std::int32_t world,
                               std::optional<std::chrono::steady_clock::time_point>& ended_since,
                               std::chrono::milliseconds noticed_within) {
  const auto now = std::chrono::steady_clock::now();
  for (GlobalRank rank{0}; rank.value < world; ++rank.value) {
    if (rank == self || !locks.has_ended(rank)) continue;
    if (!ended_since) ended_since = now;
    if (now - *ended_since < noticed_within) return std::nullopt;
    return Error(Code::kPeerFailed,
                 "rank " + std::to_string(rank.value) +
                     " has ended, but a call that needs it has not returned",
                 {.rank = self});
  }
  return std::nullopt;
}

RankGuard::RankGuard(Reason reason, EndProcess end_process)
    : reason_(std::move(reason)),
      end_process_(std::move(end_process)),
      thread_([this] { watch(); }) {}

RankGuard::~RankGuard() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void RankGuard::watch() {
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBarrierPoll, [this] { return over_; })) {
    if (const auto reason = reason_()) end_process_(*reason);
  }
}

RankGuard::Reason start_reason(RankLiveness& locks, GlobalRank self, std::int32_t world) {
  return [&locks, self, world, begin = std::chrono::steady_clock::now()] {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    return why_end(locks, self, world, since, {});
  };
}

}  // namespace reprise::driver
