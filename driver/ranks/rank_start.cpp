#include "driver/ranks/rank_start.hpp"

#include <string>
#include <utility>

namespace reprise::driver {
namespace {

constexpr auto kBarrierPoll = std::chrono::milliseconds(20);

}  // namespace

std::optional<Error> why_give_up(RankLiveness& locks, GlobalRank self, std::int32_t world,
                                 std::chrono::milliseconds since, const StartLimits& limits) {
  for (GlobalRank rank{0}; rank.value < world; ++rank.value) {
    if (rank == self) continue;
    const std::string who = "start of the ranks: rank " + std::to_string(rank.value);
    if (locks.has_ended(rank) && !locks.came_through(rank)) {
      return Error(Code::kPeerFailed, who + " has ended", {.rank = self});
    }
    if (since > limits.begun && !locks.has_begun(rank)) {
      return Error(Code::kDeadline, who + " did not begin; it died early, or its host is slow",
                   {.rank = self});
    }
  }
  if (since <= limits.through) return std::nullopt;
  return Error(Code::kDeadline, "start of the ranks: all have begun, and they don't come together",
               {.rank = self});
}

RankStart::RankStart(RankLiveness& locks, GlobalRank self, std::int32_t world, GiveUp give_up)
    : give_up_(std::move(give_up)),
      thread_([this, &locks, self, world] { watch(locks, self, world); }) {}

RankStart::~RankStart() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void RankStart::watch(RankLiveness& locks, GlobalRank self, std::int32_t world) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, kBarrierPoll, [this] { return over_; })) {
    const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - begin);
    if (const auto reason = why_give_up(locks, self, world, since, {})) give_up_(*reason);
  }
}

}  // namespace reprise::driver
