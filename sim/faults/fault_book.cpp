#include "sim/faults/fault_book.hpp"

#include <algorithm>
#include <limits>

#include "core/checkpoint/set_aside.hpp"
#include "core/save/phases.hpp"
#include "sim/faults/checkpoint_file.hpp"

namespace reprise::sim {
namespace {

bool strikes_kind(FaultKind fault, CallKind call) {
  switch (fault) {
    case FaultKind::kCrash:
      return true;
    case FaultKind::kWriteError:
    case FaultKind::kNoSpace:
    case FaultKind::kShortWrite:
    case FaultKind::kTornWrite:
    case FaultKind::kFlipWrite:
    case FaultKind::kZeroWrite:
    case FaultKind::kStaleWrite:
      return call == CallKind::kWrite;
    case FaultKind::kSyncError:
    case FaultKind::kLostSync:
      return call == CallKind::kSync;
    case FaultKind::kDirectorySyncError:
      return call == CallKind::kSyncDirectory;
    case FaultKind::kLostRename:
    case FaultKind::kLeaseLost:
    case FaultKind::kFleetingRename:
      return call == CallKind::kRename;
    case FaultKind::kOtherWriter:
      return call == CallKind::kLock;
    case FaultKind::kReadError:
    case FaultKind::kFlipRead:
      return call == CallKind::kRead;
    case FaultKind::kStaleTracker:
    case FaultKind::kStaleStore:
      return call == CallKind::kLookAtTracker;
    case FaultKind::kLate:
    case FaultKind::kLost:
    case FaultKind::kFails:
      return call == CallKind::kCollective;
    case FaultKind::kBadResult:
      return false;
  }
  return false;
}

bool is_known(const BadResult& result) {
  return result.iteration >= 0 &&
         (result.kind != ResultFault::kPersistentError || !result.device.empty());
}

bool is_wrong_in(const FaultSpec& spec, GlobalRank rank, std::string_view device, int run) {
  switch (spec.result.kind) {
    case ResultFault::kTransientError:
      return rank == spec.place.rank && run == spec.result.run;
    case ResultFault::kPersistentError:
      return device == spec.result.device;
    case ResultFault::kCorrectResult:
      return rank == spec.place.rank;
  }
  return false;
}

/// True if the rank is the fault's rank, or if the device is the broken one.
bool is_met_by(const FaultSpec& spec, GlobalRank rank, std::string_view device) {
  return rank == spec.place.rank ||
         (spec.result.kind == ResultFault::kPersistentError && device == spec.result.device);
}

/// True for a call of the background task that writes a rank's payload and reads it back. Depending
/// on the lane, such a task may run while its rank is still in the phase `stage`. Its calls belong
/// to the phase `write` on every lane, so their numbers do not depend on time.
bool is_of_writer(const PortCall& call) {
  if (kind_of_file(call.path) != FileKind::kPayload) return false;
  if (call.kind == CallKind::kWrite || call.kind == CallKind::kSync) return true;
  if (call.what == "close") return true;
  const std::string_view directory = call.path.substr(0, call.path.rfind('/'));
  const auto aside = aside_name(directory.substr(directory.rfind('/') + 1));
  const bool reads = call.kind == CallKind::kRead || call.what == "open";
  return reads && aside && aside->suffix == kSavingSuffix;
}

}  // namespace

FaultBook::FaultBook(std::vector<FaultSpec> specs) : counts_(specs.size(), 0) {
  for (auto& spec : specs) {
    require_possible(spec);
    const bool armed = spec.kind == FaultKind::kBadResult && is_known(spec.result);
    states_.push_back({.spec = std::move(spec), .armed = armed});
  }
}

void FaultBook::arm(std::size_t index, GlobalRank rank) {
  const std::scoped_lock lock(mutex_);
  FaultState& state = states_.at(index);
  if (state.spec.place.rank == rank) state.armed = true;
}

void FaultBook::arm(std::size_t index, GlobalRank rank, std::int64_t iteration,
                    const std::string& device) {
  const std::scoped_lock lock(mutex_);
  FaultState& state = states_.at(index);
  if (state.spec.place.rank != rank) return;
  state.armed = true;
  if (state.spec.result.iteration < 0) state.spec.result.iteration = iteration;
  if (state.spec.result.device.empty()) state.spec.result.device = device;
}

std::vector<FaultState> FaultBook::states() const {
  const std::scoped_lock lock(mutex_);
  return {states_.begin(), states_.end()};
}

bool FaultBook::ended(GlobalRank rank) const {
  const std::scoped_lock lock(mutex_);
  const auto found = places_.find(rank);
  return found != places_.end() && found->second.dead;
}

namespace {

double number_of(BadValue value) {
  using Limits = std::numeric_limits<double>;
  switch (value) {
    case BadValue::kInfinity:
      return Limits::infinity();
    case BadValue::kMinusInfinity:
      return -Limits::infinity();
    case BadValue::kNaN:
      break;
  }
  return Limits::quiet_NaN();
}

}  // namespace

double FaultBook::result_of(const ResultOf& result, double right) {
  const std::scoped_lock lock(mutex_);
  for (auto& state : states_) {
    const FaultSpec& spec = state.spec;
    if (!state.armed || spec.kind != FaultKind::kBadResult) continue;
    if (spec.result.iteration != result.iteration || spec.result.call != result.call) continue;
    if (!is_met_by(spec, result.rank, result.device)) continue;
    state.reached = true;
    if (!is_wrong_in(spec, result.rank, result.device, result.run)) continue;
    if (!state.fired) {
      note_strike(state, "iteration " + std::to_string(result.iteration) + ", run " +
                             std::to_string(result.run) + " on " + std::string(result.device));
    }
    return spec.result.fatal ? number_of(spec.result.value) : right * 1000;
  }
  return right;
}

const FaultSpec* FaultBook::fire(std::size_t index, const std::string& where) {
  note_strike(states_[index], where);
  return &states_[index].spec;
}

void FaultBook::note_strike(FaultState& state, const std::string& where) {
  state.fired = true;
  state.where = where;
  if (struck_) struck_(state);
}

const FaultSpec* FaultBook::pass(GlobalRank rank, const Passage& passage) {
  const FaultSpec* striking = nullptr;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    FaultState& state = states_[i];
    const FaultPlace& place = state.spec.place;
    if (!state.armed || state.fired || place.rank != rank || place.phase.empty()) continue;
    if (place.phase != passage.phase || place.step != passage.step) continue;
    if (passage.moment == FaultMoment::kBefore) state.reached = true;
    if (place.moment != passage.moment) continue;
    state.reached = true;
    if (striking != nullptr || counts_[i]++ != place.nth) continue;
    striking = fire(i, std::string(name_of(passage.moment)) + " " + std::string(passage.phase) +
                           (passage.step.empty() ? "" : "/" + std::string(passage.step)));
  }
  return striking;
}

FaultBook::Open* FaultBook::find(Place& place, std::string_view phase) {
  for (auto& open : place.open) {
    if (open.phase == phase) return &open;
  }
  return nullptr;
}

// A phase opens at its first begin event and closes at its last end event. If an error leaves a
// phase open, the phase is closed when the next save or load begins, or at the phase's next begin
// event without a step.
const FaultSpec* FaultBook::begins(GlobalRank rank, std::string_view phase, std::string_view step) {
  const std::scoped_lock lock(mutex_);
  Place& place = places_[rank];
  if (place.dead) return nullptr;
  const bool anew = phase == phases_of_save().front() || phase == phases_of_load().front();
  if (anew) place.open.clear();
  if (step.empty()) std::erase_if(place.open, [&](const Open& one) { return one.phase == phase; });
  const FaultSpec* striking = nullptr;
  Open* open = find(place, phase);
  if (open == nullptr) {
    open = &place.open.emplace_back(Open{.phase = std::string(phase)});
    striking = pass(rank, {phase, "", FaultMoment::kBefore});
  }
  ++open->depth;
  open->step = step;
  if (step.empty() || striking != nullptr) return striking;
  return pass(rank, {phase, step, FaultMoment::kBefore});
}

const FaultSpec* FaultBook::ends(GlobalRank rank, std::string_view phase, std::string_view step) {
  const std::scoped_lock lock(mutex_);
  Place& place = places_[rank];
  Open* open = place.dead ? nullptr : find(place, phase);
  if (open == nullptr) return nullptr;
  const FaultSpec* striking = nullptr;
  if (!step.empty() && open->step == step) {
    striking = pass(rank, {phase, step, FaultMoment::kAfter});
    open->step.clear();
  }
  if (--open->depth > 0) return striking;
  std::erase_if(place.open, [&](const Open& one) { return one.phase == phase; });
  return striking != nullptr ? striking : pass(rank, {phase, "", FaultMoment::kAfter});
}

bool FaultBook::is_within(const FaultPlace& place, const PortCall& call, Place& at) {
  if (place.phase.empty()) return true;
  if (is_of_writer(call)) return place.phase == phase::kWrite && place.step.empty();
  const Open* open = find(at, place.phase);
  return open != nullptr && (place.step.empty() || place.step == open->step);
}

std::string FaultBook::describe(const Place& at, const PortCall& call) {
  std::string where;
  if (is_of_writer(call)) {
    where = std::string(phase::kWrite) + ": ";
  } else if (!at.open.empty()) {
    const Open& last = at.open.back();
    where = last.phase + (last.step.empty() ? "" : "/" + last.step) + ": ";
  }
  where += call.what;
  if (!call.path.empty()) where += " " + std::string(call.path);
  return where;
}

const FaultSpec* FaultBook::strikes(GlobalRank rank, const PortCall& call) {
  const std::scoped_lock lock(mutex_);
  Place& at = places_[rank];
  if (at.dead) return nullptr;
  const FaultSpec* striking = nullptr;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    FaultState& state = states_[i];
    const FaultPlace& place = state.spec.place;
    if (!state.armed || state.fired || place.rank != rank) continue;
    if (place.moment != FaultMoment::kDuring || !strikes_kind(state.spec.kind, call.kind)) continue;
    if (!is_within(place, call, at)) continue;
    if (place.file && place.file != kind_of_file(call.path)) continue;
    state.reached = true;
    if (striking != nullptr || counts_[i]++ != place.nth) continue;
    striking = fire(i, describe(at, call));
  }
  return striking;
}

void FaultBook::bury(GlobalRank rank) {
  const std::scoped_lock lock(mutex_);
  places_[rank].dead = true;
}

}  // namespace reprise::sim
