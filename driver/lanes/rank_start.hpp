#pragma once
// Guards the start of a rank, since MPI would wait forever for a peer that died.

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
  std::chrono::milliseconds begun{10'000};    ///< time until every peer must have its lock
  std::chrono::milliseconds through{60'000};  ///< time until the whole start must be over
};

/// Returns why `self`, which began `since` ago, should give up: a peer ended during
/// its start (PEER_FAILED), a peer has not begun (DEADLINE), or the start hangs (DEADLINE). Nothing
/// while all is well.
std::optional<Error> why_give_up(RankLiveness& locks, GlobalRank self, std::int32_t world,
                                 std::chrono::milliseconds since, const StartLimits& limits);

/// Watches the peers' locks on its own thread while the object lives, and calls `give_up` there
/// once there is a reason; `give_up` ends the process.
class RankStart {
 public:
  using GiveUp = std::function<void(const Error&)>;

  /// Borrows `locks`, which already holds this rank's own lock.
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
