#pragma once
// Ends a rank whose peer has died while MPI would wait for that peer forever: while MPI starts, and
// later if a call of MPI does not come back.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "driver/lanes/rank_liveness.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {

struct StartLimits {
  std::chrono::milliseconds begun{10'000};    ///< time limit for each peer to take its lock
  std::chrono::milliseconds through{60'000};  ///< time limit for the whole start
};

/// Returns why rank `self` must give up; nothing while all is well. The reasons are: a peer ended
/// during its start (PEER_FAILED), a peer did not begin in time (DEADLINE), or the whole start
/// takes too long (DEADLINE). `since` is the time since this rank's start began.
std::optional<Error> why_end(RankLiveness& locks, GlobalRank self, std::int32_t world,
                             std::chrono::milliseconds since, const StartLimits& limits);

/// A peer that has ended is met in the next call that needs it, at the latest after this time. A
/// rank that still runs then is in a call that does not come back.
inline constexpr std::chrono::seconds kNoticedWithin{10};

/// Returns PEER_FAILED if a peer ended at least `noticed_within` ago; nothing while all peers run.
/// Keeps in `ended_since` when an end was first seen.
std::optional<Error> why_leave(RankLiveness& locks, GlobalRank self, std::int32_t world,
                               std::optional<std::chrono::steady_clock::time_point>& ended_since,
                               std::chrono::milliseconds noticed_within = kNoticedWithin);

/// While the object lives, its own thread looks again and again if there is a reason to give up.
/// Then it calls `end_process`, which ends the process.
class RankGuard {
 public:
  using Reason = std::function<std::optional<Error>()>;
  using EndProcess = std::function<void(const Error&)>;

  RankGuard(Reason reason, EndProcess end_process);
  ~RankGuard();
  RankGuard(const RankGuard&) = delete;
  RankGuard& operator=(const RankGuard&) = delete;

 private:
  void watch();

  Reason reason_;
  EndProcess end_process_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

/// Returns the reason to give up a start that begins now. `locks` must hold this rank's own lock
/// and outlive the result.
RankGuard::Reason start_reason(RankLiveness& locks, GlobalRank self, std::int32_t world);

}  // namespace reprise::driver
