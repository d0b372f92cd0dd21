#pragma once
// All faults of one incarnation, and how far each came.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/faults/fault.hpp"

namespace reprise::sim {

/// The kinds of port calls that a fault can strike.
enum class CallKind : std::uint8_t {
  kWrite,
  kSync,
  kSyncDirectory,
  kRename,
  kRead,
  kCollective,
  kLookAtTracker,  ///< stat or open
  kOther,
};

/// One port call, before it is made.
struct PortCall {
  CallKind kind = CallKind::kOther;
  std::string_view what = {};  ///< "write", "all_gather"
  std::string_view path = {};  ///< none for calls without a file
};

/// A result that a job validates.
struct ResultOf {
  GlobalRank rank = {};
  std::string_view device = {};  ///< of that rank
  std::int64_t iteration = 0;    ///< that is being tried
  int call = 0;                  ///< which validation in it
  int run = 0;                   ///< 0: the initial run, 1: the first re-run ...
};

/// Deterministic: what it says depends on the specs and on the rank's own calls. Ranks' fibers and
/// a rank's threads may share it. Specs that it gives live as long as it does.
class FaultBook {
 public:
  /// Not armed yet, but for results whose iteration is known. USAGE for what can't be.
  explicit FaultBook(std::vector<FaultSpec> specs);

  /// The program of `rank` is where fault `index` is set; counts where that is the fault's rank.
  /// From here places are counted.
  void arm(std::size_t index, GlobalRank rank);
  /// The same for a bad result of the iteration that is tried next, on the device that tries it.
  void arm(std::size_t index, GlobalRank rank, std::int64_t iteration, const std::string& device);

  /// In the order of the specs; iteration and device of results filled in.
  std::vector<FaultState> states() const;
  /// True once a fault ended the rank's life: a planned end, unlike others.
  bool ended(GlobalRank rank) const;

  /// What a device makes of a result.
  double result_of(const ResultOf& result, double right);

  // ---- for the decorators: each returns the fault that strikes, if any

  /// `step` may be empty.
  const FaultSpec* begins(GlobalRank rank, std::string_view phase, std::string_view step);
  const FaultSpec* ends(GlobalRank rank, std::string_view phase, std::string_view step);
  const FaultSpec* strikes(GlobalRank rank, const PortCall& call);
  /// The rank's life is over: nothing strikes it any more.
  void bury(GlobalRank rank);

 private:
  /// A phase that a rank is in. Several may be open at once: votes while files are written.
  struct Open {
    std::string phase = {};
    std::string step = {};
    int depth = 0;
  };
  struct Place {
    std::vector<Open> open = {};
    bool dead = false;
  };
  struct Passage {
    std::string_view phase;
    std::string_view step;
    FaultMoment moment;
  };

  static Open* find(Place& place, std::string_view phase);
  static bool is_within(const FaultPlace& place, Place& at);
  static std::string describe(const Place& at, const PortCall& call);
  const FaultSpec* pass(GlobalRank rank, const Passage& passage);
  const FaultSpec* fire(std::size_t index, const std::string& where);

  mutable std::mutex mutex_;
  std::deque<FaultState> states_;
  std::vector<std::int64_t> counts_;  ///< per fault: places that its rank came to
  std::map<GlobalRank, Place> places_;
};

}  // namespace reprise::sim
