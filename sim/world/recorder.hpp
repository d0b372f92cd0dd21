#pragma once
// Records what the ranks of one life do, without a trace of it in the life itself: it makes no
// calls to ports, takes no virtual time and decides nothing, so event hashes stay the same.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/ports.hpp"
#include "sim/fibers/scheduler.hpp"
#include "sim/world/recording.hpp"
#include "sim/world/resource.hpp"

namespace reprise::sim {

/// A World attaches its scheduler; the other calls may be made only after that. All fibers of a
/// world share one recorder. Of a rank that is dead, nothing is recorded.
class Recorder {
 public:
  /// Enough for the largest scenarios of the catalogue, and no more memory than a large job has.
  static constexpr std::size_t kSlicesMax = 200'000;

  /// If a life has more slices, the recording has those that ended last.
  explicit Recorder(std::size_t slices_max = kSlicesMax) : slices_max_(slices_max) {}

  /// Borrows the scheduler until finish().
  void attach(const Scheduler& scheduler) { scheduler_ = &scheduler; }

  /// Takes an event of the engine's trace. A phase that fails has no end; its slice ends where the
  /// rank begins another phase of the same save, or of a load, at the end of that save, or at the
  /// end of the rank's life.
  void phase(GlobalRank rank, const TraceEvent& event);
  /// Marks further events of the rank's trace as part of the save of this step, or of no save.
  void within(GlobalRank rank, std::optional<Step> save);
  /// A save of the rank has ended, well or not.
  void save_ended(GlobalRank rank, Step save);

  /// A call to the store that was made at `begin_ns` and takes effect now.
  struct StoreCall {
    std::string_view operation;
    std::string_view path;
    std::uint64_t bytes = 0;
    std::uint64_t begin_ns = 0;
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
  void returned(GlobalRank rank) { close_all(rank); }
  /// The rank's life is over in another way.
  void ended(GlobalRank rank, std::string_view how, std::string_view why);

  /// The life is over: ends everything that still goes on, and lets the scheduler go.
  void finish();
  /// Returns what was recorded. May be called once, after finish().
  Recording take();

 private:
  using Open = std::map<std::uint64_t, Slice>;  // by number, so in the order of their begins

  std::uint64_t begin(Slice slice);
  Open::iterator close(Open& own, Open::iterator open, bool cut);
  void close_all(GlobalRank rank);
  void close_stale(GlobalRank rank, const TraceEvent& event);
  std::optional<Step> save_of(GlobalRank rank) const;
  void keep(Slice slice);
  std::uint64_t now() const { return scheduler_->now_ns(); }

  std::size_t slices_max_;
  const Scheduler* scheduler_ = nullptr;
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
