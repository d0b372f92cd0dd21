#pragma once
// A rank's way into its launch, where MPI would wait for ever for a peer that died.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "reprise/error.hpp"
#include "scenarios/driver/rank_locks.hpp"

namespace reprise::driver {

struct StartLimits {
  std::chrono::milliseconds begun{10'000};    ///< until every peer has taken its lock
  std::chrono::milliseconds through{60'000};  ///< until the whole start is over
};

/// Returns why `self`, which began `since` ago, should wait no longer: a peer has ended
/// (PEER_FAILED), has not begun (DEADLINE), or something hangs (DEADLINE). Nothing while all is
/// well.
std::optional<Error> why_give_up(RankLocks& locks, GlobalRank self, std::int32_t world,
                                 std::chrono::milliseconds since, const StartLimits& limits);

/// Looks at the peers' locks on a thread of its own while it lives, and calls `give_up` there once
/// there is a reason; `give_up` ends the process.
class RankStart {
 public:
  using GiveUp = std::function<void(const Error&)>;

  /// `locks` is borrowed, and holds this rank's own already.
  RankStart(RankLocks& locks, GlobalRank self, std::int32_t world, GiveUp give_up);
  ~RankStart();
  RankStart(const RankStart&) = delete;
  RankStart& operator=(const RankStart&) = delete;

 private:
  void watch(RankLocks& locks, GlobalRank self, std::int32_t world);

  GiveUp give_up_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace reprise::driver
