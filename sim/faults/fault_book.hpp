#pragma once
// Holds all faults of one life and the progress of each.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
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
  kLock,
  kCollective,
  kLookAtTracker,  ///< a stat or open of the tracker
  kOther,
};

/// A port call that is about to be made.
struct PortCall {
  CallKind kind = CallKind::kOther;
  std::string_view what = {};  ///< name of the call: "write", "all_gather"
  std::string_view path = {};  ///< empty for calls without a file
};

/// A result that a job validates.
struct ResultOf {
  GlobalRank rank = {};
  std::string_view device = {};  ///< device of that rank
  std::int64_t iteration = 0;    ///< iteration that is running
  int call = 0;                  ///< index of the validation in the iteration
  int run = 0;                   ///< 0: the initial run, 1: the first re-run ...
};

/// Decides which faults strike. This depends only on the specs and on each rank's own calls, so
/// equal runs have equal faults. Fibers of several ranks and threads of one rank may share a book.
/// The specs that a book returns live as long as the book.
class FaultBook {
 public:
  /// Arms those bad results whose iteration is already known, and no other faults. Throws USAGE for
  /// an impossible fault.
  explicit FaultBook(std::vector<FaultSpec> specs);

  /// Calls `struck` whenever a fault strikes. It must not call the book.
  void watch(std::function<void(const FaultState&)> struck) { struck_ = std::move(struck); }

  /// Called when the program of `rank` reaches the action of fault `index`. Arms the fault if it
  /// belongs to that rank. Matching events are counted from this call on.
  void arm(std::size_t index, GlobalRank rank);
  /// Arms a bad result. Fills in `iteration` and `device` where the spec does not set them.
  void arm(std::size_t index, GlobalRank rank, std::int64_t iteration, const std::string& device);

  /// Returns the states of all faults in the order of the specs. States of bad results have
  /// iteration and device filled in.
  std::vector<FaultState> states() const;
  /// True once a planned fault has ended the rank's life.
  bool ended(GlobalRank rank) const;

  /// Returns the value that a device reports. This is `right`, the right value, unless a fault
  /// changes it.
  double result_of(const ResultOf& result, double right);

  // ---- calls for the decorators; begins(), ends() and strikes() return the fault that strikes, if
  // any

  /// begins() and ends() are called when the trace reports that a phase or a step begins or ends.
  /// For a phase, `step` is empty.
  const FaultSpec* begins(GlobalRank rank, std::string_view phase, std::string_view step);
  const FaultSpec* ends(GlobalRank rank, std::string_view phase, std::string_view step);
  const FaultSpec* strikes(GlobalRank rank, const PortCall& call);
  /// Marks the rank as dead: no fault strikes it any more.
  void bury(GlobalRank rank);

 private:
  /// A phase that a rank is in. Several phases may be open at once, since a rank votes while its
  /// files are written.
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
  static bool is_within(const FaultPlace& place, const PortCall& call, Place& at);
  static std::string describe(const Place& at, const PortCall& call);
  const FaultSpec* pass(GlobalRank rank, const Passage& passage);
  const FaultSpec* fire(std::size_t index, const std::string& where);

  void note_strike(FaultState& state, const std::string& where);

  mutable std::mutex mutex_;
  std::deque<FaultState> states_;
  std::vector<std::int64_t> counts_;  ///< for each fault: matching events on its rank so far
  std::map<GlobalRank, Place> places_;
  std::function<void(const FaultState&)> struck_;
};

}  // namespace reprise::sim
