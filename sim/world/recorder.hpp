#pragma once
// Records what the ranks of one life do, without a trace of it in the life itself: it makes no
// calls to ports, takes no virtual time and decides nothing, so event hashes stay the same. Ranks
// that are processes have a recorder each, in real time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/ports.hpp"
#include "sim/world/recording.hpp"
#include "sim/world/resource.hpp"

namespace reprise::sim {

/// Puts slices into the order of Recording::slices.
void put_in_order(std::vector<Slice>& slices);

/// A World attaches its scheduler, and a process its clock; the other calls may be made only after
/// that. All fibers of a world share one recorder, as do all threads of a process: any thread may
/// call it. Of a rank that is dead, nothing is recorded.
class Recorder {
 public:
  /// Answers what a recorder asks of the lane on which the life runs.
  struct Lane {
    std::function<std::uint64_t()> now_ns;
    /// Returns the number of the fiber or thread that calls; see Slice::fiber.
    std::function<std::size_t()> running;
    std::function<bool(GlobalRank)> is_dead;
  };
  /// Gets each slice and each instant when it is over, instead of the recording. A slice that goes
  /// on for a while also comes when it begins, with a number that is its own and not 0, and comes
  /// again with this number when it is over. Calls to the store and copies come once, with 0.
  struct Sink {
    std::function<void(std::uint64_t number, const Slice&)> begun;
    std::function<void(std::uint64_t number, const Slice&)> slice;
    std::function<void(const Instant&)> instant;
  };

  /// Enough for the largest scenarios of the catalogue, and no more memory than a large job has.
  static constexpr std::size_t kSlicesMax = 200'000;

  /// If a life has more slices, the recording has those that ended last.
  explicit Recorder(std::size_t slices_max = kSlicesMax) : slices_max_(slices_max) {}
  explicit Recorder(Sink sink) : slices_max_(kSlicesMax), sink_(std::move(sink)) {}

  /// Asks the lane until finish().
  void attach(Lane lane);
  std::uint64_t now_ns();

  /// Takes an event of the engine's trace. A phase that fails has no end; its slice ends where the
  /// rank begins another phase of the same save, or of a load, at the end of that save, or at the
  /// end of the rank's life. An event of kBrokenProtocol is an instant.
  void phase(GlobalRank rank, const TraceEvent& event);
  /// Marks further events of the rank's trace as part of the save of this step, or of no save.
  void within(GlobalRank rank, std::optional<Step> save);
  /// A save of the rank has ended, well or not.
  void save_ended(GlobalRank rank, Step save);

  /// A call to the store that was made at `begin_ns` and takes effect, or fails, now.
  struct StoreCall {
    std::string_view operation;
    std::string_view path;
    std::uint64_t bytes = 0;
    std::uint64_t begin_ns = 0;
    bool failed = false;
  };
  void store(GlobalRank rank, const StoreCall& call);

  /// Copies of a device, which somebody waits for now.
  struct Copies {
    std::string_view operation;
    std::string_view device;
    std::uint64_t bytes = 0;
    Transfer passes = {};
  };
  /// Records nothing if the copies take no time.
  void copies(GlobalRank rank, const Copies& copies);

  struct Collective {
    std::string_view operation;
    std::string_view group;
    std::uint64_t bytes = 0;  ///< bytes that the rank contributes
    std::uint64_t begin_ns = 0;
  };
  /// The rank has come to the call. Returns a number for the two calls below.
  std::uint64_t come(GlobalRank rank, const Collective& call);
  /// The rank takes part in the call, so its peers wait for it no more.
  void join(GlobalRank rank, std::uint64_t call, Meeting meeting);
  /// The rank has the call's result, or its error.
  void leave(GlobalRank rank, std::uint64_t call, bool failed);

  /// A planned fault strikes the rank.
  void fault(GlobalRank rank, std::string_view kind, std::string_view where);
  /// The rank dies. What it was doing ends now.
  void died(GlobalRank rank);
  /// The rank's program has returned.
  void returned(GlobalRank rank);
  /// The rank's life is over in another way.
  void ended(GlobalRank rank, std::string_view how, std::string_view why);

  /// The life is over: ends everything that still goes on, and lets the lane go.
  void finish();
  /// Returns what was recorded. May be called once, after finish().
  Recording take();

 private:
  using Open = std::map<std::uint64_t, Slice>;  // by number, so in the order of their begins

  std::uint64_t begin(Slice slice);
  Open::iterator close(Open& own, Open::iterator open, bool cut, std::uint64_t end_ns);
  void close_all(GlobalRank rank);
  void close_stale(GlobalRank rank, const TraceEvent& event);
  std::optional<Step> save_of(GlobalRank rank) const;
  void keep(std::uint64_t number, Slice slice);
  void keep(Instant instant);
  bool is_dead(GlobalRank rank) const { return lane_.is_dead(rank); }
  std::uint64_t now() const { return lane_.now_ns(); }

  std::size_t slices_max_;
  Sink sink_;
  std::mutex mutex_;  ///< guards the members below
  Lane lane_;
  std::uint64_t begun_ = 0;
  std::uint64_t duration_ns_ = 0;
  std::map<GlobalRank, Open> open_;
  std::deque<Slice> kept_;
  std::vector<Instant> instants_;
  std::map<GlobalRank, std::optional<Step>> within_;
  std::uint64_t left_out_ = 0;
};

/// A rank's part in a collective call. Does nothing if `recorder` is null.
class CollectivePart {
 public:
  CollectivePart(Recorder* recorder, GlobalRank rank, const Recorder::Collective& call)
      : recorder_(recorder), rank_(rank), call_(recorder ? recorder->come(rank, call) : 0) {}
  /// The same for a rank that takes part at once.
  CollectivePart(Recorder* recorder, GlobalRank rank, const Recorder::Collective& call,
                 Meeting meeting)
      : CollectivePart(recorder, rank, call) {
    join(meeting);
  }
  ~CollectivePart() {
    if (recorder_ == nullptr) return;
    recorder_->leave(rank_, call_, std::uncaught_exceptions() > exceptions_);
  }
  CollectivePart(const CollectivePart&) = delete;
  CollectivePart& operator=(const CollectivePart&) = delete;

  void join(Meeting meeting) {
    if (recorder_ != nullptr) recorder_->join(rank_, call_, meeting);
  }

 private:
  Recorder* recorder_;
  GlobalRank rank_;
  std::uint64_t call_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace reprise::sim
