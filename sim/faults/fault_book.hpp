#pragma once
// Holds all faults of one incarnation and the progress of each.

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "sim/faults/fault.hpp"

namespace reprise::sim {

/// Kinds of port calls that a fault can strike.
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

/// A port call that is about to be made.
struct PortCall {
  CallKind kind = CallKind::kOther;
  std::string_view what = {};  ///< "write", "all_gather"
  std::string_view path = {};  ///< empty for calls without a file
};

/// A result that a job validates.
struct ResultOf {
  GlobalRank rank = {};
  std::string_view device = {};  ///< device of that rank
  std::int64_t iteration = 0;    ///< iteration being tried
  int call = 0;                  ///< index of the validation in it
  int run = 0;                   ///< 0: the initial run, 1: the first re-run ...
};

/// Deterministic: its answers depend only on the specs and on the rank's own calls. Ranks' fibers
/// and a rank's threads may share it. Specs that it returns live as long as it does.
class FaultBook {
 public:
  /// Arms only results whose iteration is known. USAGE for an impossible fault.
  explicit FaultBook(std::vector<FaultSpec> specs);

  /// Arms fault `index` if it belongs to `rank`, whose program has reached it. Places are counted
  /// from here on.
  void arm(std::size_t index, GlobalRank rank);
  /// Arms a bad result of the next iteration on the device that tries it.
  void arm(std::size_t index, GlobalRank rank, std::int64_t iteration, const std::string& device);

  /// Returns the states in the order of the specs, with iteration and device of results filled in.
  std::vector<FaultState> states() const;
  /// True once a planned fault ended the rank's life.
  bool ended(GlobalRank rank) const;

  /// Returns the result that a device reports instead of `right`.
  double result_of(const ResultOf& result, double right);

  // ---- for the decorators: each returns the fault that strikes, if any

  /// `step` may be empty.
  const FaultSpec* begins(GlobalRank rank, std::string_view phase, std::string_view step);
  const FaultSpec* ends(GlobalRank rank, std::string_view phase, std::string_view step);
  const FaultSpec* strikes(GlobalRank rank, const PortCall& call);
  /// Marks the rank as dead: no fault strikes it any more.
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
  std::vector<std::int64_t> counts_;  ///< places that its rank reached, per fault
  std::map<GlobalRank, Place> places_;
};

}  // namespace reprise::sim
