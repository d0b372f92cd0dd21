#pragma once
// Ends a rank if a peer dies while MPI starts. MPI itself would wait forever for that peer.

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
std::optional<Error> why_give_up(RankLiveness& locks, GlobalRank self, std::int32_t world,
                                 std::chrono::milliseconds since, const StartLimits& limits);

/// While the object lives, its own thread watches the peers' locks. When there is a reason to give
/// up, this thread calls `give_up`, which ends the process.
class RankStart {
 public:
  using GiveUp = std::function<void(const Error&)>;

  /// `locks` must outlive this object, and must already hold this rank's own lock.
  RankStart(RankLiveness& locks, GlobalRank self, std::int32_t world, GiveUp give_up);
  ~RankStart();
  RankStart(const RankStart&) = delete;
  RankStart& operator=(const RankStart&) = delete;

 private:
  void watch(RankLiveness& locks, GlobalRank self, std::int32_t world);

  GiveUp give_up_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace reprise::driver
