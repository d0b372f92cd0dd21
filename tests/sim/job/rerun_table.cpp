#include "tests/sim/job/rerun_table.hpp"

#include <algorithm>
#include <ostream>

#include "core/base/check.hpp"

namespace reprise::sim::rerun_table {
namespace {

constexpr Mode kOff = Mode::kOff;
constexpr Mode kV = Mode::kValidate;
constexpr Mode kR = Mode::kReport;

/// Returns the index of the row that matches. If no row or several rows match, the table itself is
/// wrong.
template <class Row, class Holds>
std::size_t the_row(const std::vector<Row>& rows, const Holds& holds) {
  std::size_t found = rows.size();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!holds(rows[r])) continue;
    CHECK(found == rows.size(), found, r);
    found = r;
  }
  CHECK(found < rows.size());
  return found;
}

}  // namespace

// clang-format off
std::vector<RankRow> rank_rows() {
  using enum State;
  using enum Saw;
  const Cell<Kind> kind;
  const Cell<Place> place;
  const Place there = Place::kThere, elsewhere = Place::kElsewhere;
  const Kind fatal = Kind::kFatal, mild = Kind::kMild;
  return {
      {kOff, kFirstPass, kAccepted, place,     kind,  Want::kNothing,    Blame::kNone,       ""},
      {kOff, kFirstPass, kRejected, place,     fatal, Want::kStop,       Blame::kNone,       "rerun_disabled"},
      {kOff, kFirstPass, kRejected, place,     mild,  Want::kNothing,    Blame::kNone,       "rerun_disabled"},
      {kV,   kFirstPass, kAccepted, place,     kind,  Want::kNothing,    Blame::kNone,       ""},
      {kV,   kFirstPass, kRejected, place,     kind,  Want::kRerun,      Blame::kNone,       "initial_run"},
      {kV,   kInPlace,   kOther,    place,     fatal, Want::kNothing,    Blame::kTransient,  "first_rerun_not_reproducible"},
      {kV,   kInPlace,   kOther,    place,     mild,  Want::kContinue,   Blame::kTransient,  "first_rerun_not_reproducible"},
      {kV,   kInPlace,   kSame,     place,     fatal, Want::kCheckpoint, Blame::kNone,       "first_rerun_reproducible"},
      {kV,   kInPlace,   kSame,     place,     mild,  Want::kContinue,   Blame::kNone,       "first_rerun_reproducible"},
      {kV,   kFromDisk,  {},        there,     kind,  Want::kRestart,    Blame::kNone,       ""},
      {kV,   kFromDisk,  kOther,    elsewhere, fatal, Want::kNothing,    Blame::kPersistent, "second_rerun_not_reproducible"},
      {kV,   kFromDisk,  kOther,    elsewhere, mild,  Want::kContinue,   Blame::kPersistent, "second_rerun_not_reproducible"},
      {kV,   kFromDisk,  kSame,     elsewhere, fatal, Want::kNothing,    Blame::kCorrect,    "second_rerun_reproducible"},
      {kV,   kFromDisk,  kSame,     elsewhere, mild,  Want::kContinue,   Blame::kCorrect,    "second_rerun_reproducible"},
      {kR,   kFirstPass, {},        place,     kind,  Want::kRerun,      Blame::kNone,       ""},
      {kR,   kInPlace,   {},        place,     kind,  Want::kNothing,    Blame::kNone,       ""},
  };
}

std::vector<WorldRow> world_rows() {
  using enum State;
  using enum Move;
  const Cell<bool> any;
  return {
      //                 rerun  go_on  check  restart stop   next        move     code save   put_back
      {kOff, kIdle,      any,   any,   any,   any,    any,   kFirstPass, kRun},
      {kOff, kFirstPass, any,   any,   any,   any,    false, kIdle,      kUpdate},
      {kOff, kFirstPass, any,   any,   any,   any,    true,  kIdle,      kLeave,  1},                  // error on all ranks
      {kV,   kIdle,      any,   any,   any,   any,    any,   kFirstPass, kRun},
      {kV,   kFirstPass, false, any,   any,   any,    any,   kIdle,      kUpdate},
      {kV,   kFirstPass, true,  any,   any,   any,    any,   kInPlace,   kRun,    0,  false, true},
      {kV,   kInPlace,   any,   true,  any,   any,    any,   kIdle,      kUpdate},                     // has precedence over a checkpoint
      {kV,   kInPlace,   any,   false, true,  any,    any,   kPending,   kLeave,  16, true,  true},
      {kV,   kInPlace,   any,   false, false, any,    any,   kInPlace,   kLeave,  17, false, true},
      {kV,   kPending,   any,   any,   any,   any,    any,   kFromDisk,  kRun},
      {kV,   kFromDisk,  any,   any,   any,   true,   any,   kAgain,     kLeave,  16},                 // has precedence over continuing
      {kV,   kFromDisk,  any,   true,  any,   false,  any,   kIdle,      kUpdate},
      {kV,   kFromDisk,  any,   false, any,   false,  any,   kFromDisk,  kLeave,  17},
      {kR,   kIdle,      any,   any,   any,   any,    any,   kFirstPass, kRun},
      {kR,   kFirstPass, false, any,   any,   any,    any,   kIdle,      kUpdate},                     // no result was validated
      {kR,   kFirstPass, true,  any,   any,   any,    any,   kInPlace,   kRun,    0,  false, true},
      {kR,   kInPlace,   any,   any,   any,   any,    any,   kIdle,      kUpdate},
  };
}

std::vector<SaveRow> save_rows() {
  return {
      {kOff, {}, Stored::kNothing},
      {kV, State::kIdle, Stored::kSentinel},
      {kV, State::kFirstPass, Stored::kForbidden},
      {kV, State::kInPlace, Stored::kForbidden},
      {kV, State::kPending, Stored::kContext},
      {kV, State::kFromDisk, Stored::kForbidden},
      {kV, State::kAgain, Stored::kForbidden},
      {kR, State::kIdle, Stored::kSentinel},
      {kR, State::kFirstPass, Stored::kForbidden},
      {kR, State::kInPlace, Stored::kForbidden},
  };
}

std::vector<LoadRow> load_rows() {
  return {
      {{}, Stored::kNothing, {}, false, false},
      {{}, Stored::kSentinel, {}, false, false},
      {kOff, Stored::kContext, {}, false, true},
      {kV, Stored::kContext, true, true, false},
      {kV, Stored::kContext, false, false, true},
      {kR, Stored::kContext, true, true, false},
      {kR, Stored::kContext, false, false, true},
  };
}
// clang-format on

std::ostream& operator<<(std::ostream& out, const Verdict& v) {
  constexpr std::array kMoves = {"run", "update", "leave"};
  return out << "state " << static_cast<int>(v.state) << ", " << kMoves[static_cast<int>(v.move)]
             << ", code " << v.code << (v.save ? ", save" : "") << (v.put_back ? ", put back" : "");
}

bool WorldRow::holds(Mode in, State at, const std::set<Want>& wanted) const {
  return mode == in && state == at && rerun.holds(wanted.contains(Want::kRerun)) &&
         go_on.holds(wanted.contains(Want::kContinue)) &&
         checkpoint.holds(wanted.contains(Want::kCheckpoint)) &&
         restart.holds(wanted.contains(Want::kRestart)) && stop.holds(wanted.contains(Want::kStop));
}

std::set<std::pair<std::size_t, std::size_t>> possible_pairs() {
  const auto rows = world_rows();
  std::set<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t a = 0; a < rows.size(); ++a) {
    std::set<State> then{rows[a].next};
    if (rows[a].move == Move::kLeave) {
      then.clear();  // the next life starts from the fault save or from an older save
      if (rows[a].mode == kV) then.insert(State::kPending);
      if (!rows[a].save && rows[a].state != State::kFromDisk) then.insert(State::kIdle);
    }
    for (std::size_t b = 0; b < rows.size(); ++b) {
      if (rows[b].mode == rows[a].mode && then.contains(rows[b].state)) pairs.emplace(a, b);
    }
  }
  return pairs;
}

Walk::Walk(Mode mode, std::size_t ranks, Tally& tally)
    : tally_(&tally), mode_(mode), ranks_(ranks) {}

void Walk::begin_iteration() {
  for (auto& rank : ranks_) {
    const Blame last = rank.blame;
    rank = {};
    rank.blame = last;
  }
}

Verdict Walk::ask() {
  static const auto rows = world_rows();
  std::set<Want> wanted;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    for (const Want want : kWants) {
      if (wants(r, want)) wanted.insert(want);
    }
  }
  const auto found =
      the_row(rows, [&](const WorldRow& row) { return row.holds(mode_, state_, wanted); });
  tally_->world_rows.insert(found);
  if (last_) tally_->pairs.emplace(*last_, found);
  last_ = found;
  const WorldRow& row = rows[found];
  if (state_ == State::kIdle) begin_iteration();
  state_ = row.next;
  if (row.move != Move::kRun) first_iteration_ = false;
  return {row.next, row.move, row.code, row.save, row.put_back};
}

std::string Walk::see(std::size_t rank, const Sight& sight) {
  static const auto rows = rank_rows();
  Rank& self = ranks_[rank];
  if (mode_ == Mode::kValidate) {
    // Ignores a result in the first iteration, since there may be no checkpoint yet to fall back
    // to. Also ignores a result if an earlier one was rejected.
    if (state_ == State::kFirstPass && (first_iteration_ || self.rerun)) return "";
    if (state_ != State::kFirstPass && !self.suspect) return "";
  }
  const auto found = the_row(rows, [&](const RankRow& row) {
    return row.mode == mode_ && row.state == state_ && row.saw.holds(sight.saw) &&
           row.place.holds(sight.place) && row.kind.holds(sight.kind);
  });
  tally_->rank_rows.insert(found);
  const RankRow& row = rows[found];
  self.rerun = self.rerun || row.want == Want::kRerun;
  self.suspect = self.suspect || (mode_ == Mode::kValidate && row.want == Want::kRerun);
  self.go_on = self.go_on || row.want == Want::kContinue;
  self.checkpoint = self.checkpoint || row.want == Want::kCheckpoint;
  self.restart = self.restart || row.want == Want::kRestart;
  self.stop = self.stop || row.want == Want::kStop;
  if (mode_ == Mode::kValidate && sight.saw != Saw::kAccepted) self.blame = row.blame;
  return std::string(row.line);
}

bool Walk::wants(std::size_t rank, Want want) const {
  const Rank& self = ranks_[rank];
  switch (want) {
    case Want::kNothing:
      return !self.rerun && !self.go_on && !self.checkpoint && !self.restart && !self.stop;
    case Want::kRerun:
      return self.rerun;
    case Want::kContinue:
      return self.go_on;
    case Want::kCheckpoint:
      return self.checkpoint;
    case Want::kRestart:
      return self.restart;
    case Want::kStop:
      return self.stop;
  }
  return false;
}

Stored Walk::stored() const {
  static const auto rows = save_rows();
  return rows[the_row(rows,
                      [this](const SaveRow& row) {
                        return row.mode.holds(mode_) && row.state.holds(state_);
                      })]
      .stored;
}

Walk Walk::restarted(const Walk& stored, const Walk* left, Mode own, Stored found,
                     bool same_layout) {
  static const auto rows = load_rows();
  const LoadRow& row = rows[the_row(rows, [&](const LoadRow& candidate) {
    return candidate.own.holds(own) && candidate.found.holds(found) &&
           candidate.same_layout.holds(same_layout);
  })];
  Walk fresh(own, stored.ranks_.size(), *stored.tally_);
  if (left != nullptr && own == left->mode_ && same_layout) fresh.last_ = left->last_;
  if (!row.taken) return fresh;
  fresh.mode_ = stored.mode_;
  fresh.state_ = State::kPending;
  fresh.ranks_ = stored.ranks_;
  for (auto& rank : fresh.ranks_) {
    rank.blame = Blame::kNone;
    // If false, the re-run in place gave a different result. The rank is then no longer suspect.
    rank.suspect = rank.checkpoint;
  }
  return fresh;
}

}  // namespace reprise::sim::rerun_table
