#pragma once
// Defines the required behavior of the rerun machine as rows of a table. The rows are derived from
// the requirements and from the documentation of Megatron's machine, not from the machine under
// test. The table has its own types, so it does not depend on that machine's names.
//
// An iteration consists of a few passes, each a forward and a backward pass. Before each of them,
// all ranks together call ask(), which returns the next move. During a pass, each rank calls see()
// to report the results that it validated:
//
//   ask -> kRun   see, see, see ...   ask -> kRun ... ask -> kUpdate, kLeave
//
// A rank's row says what the rank wants; the world's row says what follows from the wishes of all
// ranks.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reprise::sim::rerun_table {

enum class Mode { kOff, kValidate, kReport };
enum class State { kIdle, kFirstPass, kInPlace, kPending, kFromDisk, kAgain };  // 0-5, as on disk
inline constexpr std::array kStates = {State::kIdle,    State::kFirstPass, State::kInPlace,
                                       State::kPending, State::kFromDisk,  State::kAgain};

/// How a rank judges a result. In the first pass, it accepts or rejects the result. In a later
/// pass, it compares the result of the call that was rejected with the earlier result.
enum class Saw { kAccepted, kRejected, kSame, kOther };
/// Whether this rank now uses the device on which the result was rejected, or another one.
enum class Place { kThere, kElsewhere };
enum class Kind { kFatal, kMild };  ///< a rejected result is fatal for the job, or only a warning
enum class Want { kNothing, kRerun, kContinue, kCheckpoint, kRestart, kStop };
inline constexpr std::array kWants = {Want::kRerun, Want::kContinue, Want::kCheckpoint,
                                      Want::kRestart, Want::kStop};
enum class Blame { kNone, kTransient, kPersistent, kCorrect };
enum class Move { kRun, kUpdate, kLeave };

/// A cell of a row. If `open`, it matches anything.
template <class T>
struct Cell {
  bool open = true;
  T value{};

  Cell() = default;
  Cell(T only) : open(false), value(only) {}  // NOLINT: a cell is written as its value
  bool holds(T other) const { return open || value == other; }
};

struct RankRow {
  Mode mode;
  State state;
  Cell<Saw> saw;
  Cell<Place> place;
  Cell<Kind> kind;
  Want want;
  Blame blame;
  std::string_view line;  ///< status in the log of rejected results; empty if no line is written
};

struct WorldRow {
  Mode mode;
  State state;
  /// True if any rank wants a re-run.
  Cell<bool> rerun;
  Cell<bool> go_on;
  Cell<bool> checkpoint;
  Cell<bool> restart;
  Cell<bool> stop;
  State next;
  Move move;
  int code = 0;           ///< exit code, if the move is kLeave
  bool save = false;      ///< true to save a checkpoint before leaving, if the move is kLeave
  bool put_back = false;  ///< true to reset iterators and random states to before the first pass

  bool holds(Mode in, State at, const std::set<Want>& wanted) const;
};

/// The form in which a machine in a given state may be saved.
enum class Stored { kNothing, kSentinel, kContext, kForbidden };
struct SaveRow {
  Cell<Mode> mode;
  Cell<State> state;
  Stored stored;
};

/// How a machine in mode `own` reacts to a checkpoint. `same_layout` is true if the world size, TP,
/// PP, DP, EP, CP and the rank order are all the same.
struct LoadRow {
  Cell<Mode> own;
  Cell<Stored> found;
  Cell<bool> same_layout;
  /// If true, the machine continues in state 3, with the context, mode and iteration from the
  /// checkpoint. If false, it starts fresh.
  bool taken;
  bool told;  ///< true if the log must say that a pending re-run was ignored
};

std::vector<RankRow> rank_rows();
std::vector<WorldRow> world_rows();
std::vector<SaveRow> save_rows();
std::vector<LoadRow> load_rows();

/// The result that one rank saw in a pass.
struct Sight {
  Saw saw = Saw::kAccepted;
  Place place = Place::kElsewhere;
  Kind kind = Kind::kFatal;
};

struct Verdict {
  State state;  ///< state after the pass
  Move move;
  int code = 0;
  bool save = false;
  bool put_back = false;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};
std::ostream& operator<<(std::ostream& out, const Verdict& verdict);

/// Records which rows were used, so that a test can require all of them. Rows are numbered from 0.
struct Tally {
  std::set<std::size_t> rank_rows;
  std::set<std::size_t> world_rows;
  std::set<std::pair<std::size_t, std::size_t>> pairs;  ///< world rows used in direct succession
};
/// Returns all pairs of world rows in which the second row can follow the first, within one life or
/// across a restart in the same mode. After a restart, the second row begins in the state in which
/// the first row left the machine.
std::set<std::pair<std::size_t, std::size_t>> possible_pairs();

/// Follows the rows of the table for a world with this number of ranks.
class Walk {
 public:
  Walk(Mode mode, std::size_t ranks, Tally& tally);

  Mode mode() const { return mode_; }
  State state() const { return state_; }
  Verdict ask();
  /// Returns the status for the log; empty if no line is written.
  std::string see(std::size_t rank, const Sight& sight);
  Blame blame(std::size_t rank) const { return ranks_[rank].blame; }
  bool wants(std::size_t rank, Want want) const;
  /// True if this rank has a result that needs more investigation.
  bool suspect(std::size_t rank) const { return ranks_[rank].suspect; }
  /// True if this rank has recorded the device of the suspicious result.
  bool device_known(std::size_t rank) const { return ranks_[rank].checkpoint; }
  Stored stored() const;
  /// Returns the walk of a new process in mode `own`. The process loads `stored`, which was saved
  /// in the form `found`. `left` is the walk of the previous process; null if that process crashed.
  static Walk restarted(const Walk& stored, const Walk* left, Mode own, Stored found,
                        bool same_layout);

 private:
  struct Rank {
    bool rerun = false, go_on = false, checkpoint = false, restart = false, stop = false;
    bool suspect = false;
    Blame blame = Blame::kNone;
  };
  void begin_iteration();

  Tally* tally_;
  Mode mode_;
  State state_ = State::kIdle;
  std::vector<Rank> ranks_;
  std::optional<std::size_t> last_;  ///< index of the last world row
  bool first_iteration_ = true;      ///< true until this process completes an iteration
};

}  // namespace reprise::sim::rerun_table
