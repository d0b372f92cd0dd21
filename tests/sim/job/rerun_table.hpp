#pragma once
// What the rerun machine must do, as rows that can be read, and nothing else: written from the
// requirements and from the documentation of Megatron's machine, not from the machine that is
// tested. Types of its own, so that no name of that machine stands for what it should mean here.
//
// An iteration is a few passes of forward and backward; between passes all ranks ask for the next
// move together, and in each pass every rank shows what it validated:
//
//   ask -> kRun   see, see, see ...   ask -> kRun ... ask -> kUpdate, kLeave
//
// A rank's row says what it wants; the world's row says what comes of all wants.

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

/// What a rank makes of a result: in the first pass it accepts or rejects; in a later one it holds
/// the result of the call that it rejected beside the one of then.
enum class Saw { kAccepted, kRejected, kSame, kOther };
enum class Place { kThere, kElsewhere };  ///< this rank's device: the one that rejected, or not
enum class Kind { kFatal, kMild };        ///< what a rejected result means: stop, or a warning
enum class Want { kNothing, kRerun, kContinue, kCheckpoint, kRestart, kStop };
inline constexpr std::array kWants = {Want::kRerun, Want::kContinue, Want::kCheckpoint,
                                      Want::kRestart, Want::kStop};
enum class Blame { kNone, kTransient, kPersistent, kCorrect };
enum class Move { kRun, kUpdate, kLeave };

/// A column that does not matter in a row stands open.
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
  std::string_view line;  ///< status in the log of rejected results; empty: no line
};

struct WorldRow {
  Mode mode;
  State state;
  /// Does any rank want it?
  Cell<bool> rerun;
  Cell<bool> go_on;
  Cell<bool> checkpoint;
  Cell<bool> restart;
  Cell<bool> stop;
  State next;
  Move move;
  int code = 0;           ///< kLeave: the exit code
  bool save = false;      ///< kLeave: a checkpoint first
  bool put_back = false;  ///< random states as before the first pass, iterators at its first batch

  bool holds(Mode in, State at, const std::set<Want>& wanted) const;
};

/// May a machine in that state be saved, and as what?
enum class Stored { kNothing, kSentinel, kContext, kForbidden };
struct SaveRow {
  Cell<Mode> mode;
  Cell<State> state;
  Stored stored;
};

/// What a machine of `own` mode makes of what a checkpoint holds, where world, TP, PP, DP, EP, CP
/// and rank order are the same or one of them is not.
struct LoadRow {
  Cell<Mode> own;
  Cell<Stored> found;
  Cell<bool> same_layout;
  bool taken;  ///< state 3 with its context, mode and iteration of the checkpoint; else as new
  bool told;   ///< a line says that a pending rerun was left aside
};

std::vector<RankRow> rank_rows();
std::vector<WorldRow> world_rows();
std::vector<SaveRow> save_rows();
std::vector<LoadRow> load_rows();

/// What one rank showed in a pass.
struct Sight {
  Saw saw = Saw::kAccepted;
  Place place = Place::kElsewhere;
  Kind kind = Kind::kFatal;
};

struct Verdict {
  State state;  ///< after it
  Move move;
  int code = 0;
  bool save = false;
  bool put_back = false;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};
std::ostream& operator<<(std::ostream& out, const Verdict& verdict);

/// Which rows were walked, so that a test can ask that all were. Rows are counted from 0.
struct Tally {
  std::set<std::size_t> rank_rows;
  std::set<std::size_t> world_rows;
  std::set<std::pair<std::size_t, std::size_t>> pairs;  ///< of world rows, one after the other
};
/// The pairs that the table allows: in one life, or over a restart in the same mode that takes what
/// the row before it left behind.
std::set<std::pair<std::size_t, std::size_t>> possible_pairs();

/// Walks the rows for a world of some ranks.
class Walk {
 public:
  Walk(Mode mode, std::size_t ranks, Tally& tally);

  Mode mode() const { return mode_; }
  State state() const { return state_; }
  Verdict ask();
  /// `line` is the log's status, empty if nothing is written.
  std::string see(std::size_t rank, const Sight& sight);
  Blame blame(std::size_t rank) const { return ranks_[rank].blame; }
  bool wants(std::size_t rank, Want want) const;
  /// Does this rank hold a result of which more is to be found out?
  bool suspect(std::size_t rank) const { return ranks_[rank].suspect; }
  /// Has it said on which device that was?
  bool device_known(std::size_t rank) const { return ranks_[rank].checkpoint; }
  Stored stored() const;
  /// A new process of `own` mode that reads what `stored` was when it was saved as `found`. `left`
  /// is the walk that ended before it, if it left by itself.
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
  std::optional<std::size_t> last_;  ///< world row
  bool first_iteration_ = true;      ///< of this process; one that failed does not end it
};

}  // namespace reprise::sim::rerun_table
