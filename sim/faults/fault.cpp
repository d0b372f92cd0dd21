#include "sim/faults/fault.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "reprise/error.hpp"
#include "sim/faults/checkpoint_file.hpp"

namespace reprise::sim {
namespace {

constexpr std::array<std::string_view, 3> kBadValues = {"nan", "inf", "-inf"};

template <class T>
using Name = std::pair<T, std::string_view>;

constexpr std::array kKinds = {
    Name<FaultKind>{FaultKind::kCrash, "crash"},
    Name<FaultKind>{FaultKind::kWriteError, "write_error"},
    Name<FaultKind>{FaultKind::kNoSpace, "no_space"},
    Name<FaultKind>{FaultKind::kShortWrite, "short_write"},
    Name<FaultKind>{FaultKind::kTornWrite, "torn_write"},
    Name<FaultKind>{FaultKind::kFlipWrite, "flip_write"},
    Name<FaultKind>{FaultKind::kZeroWrite, "zero_write"},
    Name<FaultKind>{FaultKind::kStaleWrite, "stale_write"},
    Name<FaultKind>{FaultKind::kSyncError, "sync_error"},
    Name<FaultKind>{FaultKind::kDirectorySyncError, "directory_sync_error"},
    Name<FaultKind>{FaultKind::kLostSync, "lost_sync"},
    Name<FaultKind>{FaultKind::kLostRename, "lost_rename"},
    Name<FaultKind>{FaultKind::kLeaseLost, "lease_lost"},
    Name<FaultKind>{FaultKind::kOtherWriter, "other_writer"},
    Name<FaultKind>{FaultKind::kFleetingRename, "fleeting_rename"},
    Name<FaultKind>{FaultKind::kReadError, "read_error"},
    Name<FaultKind>{FaultKind::kFlipRead, "flip_read"},
    Name<FaultKind>{FaultKind::kStaleTracker, "stale_tracker"},
    Name<FaultKind>{FaultKind::kStaleStore, "stale_store"},
    Name<FaultKind>{FaultKind::kLate, "late"},
    Name<FaultKind>{FaultKind::kLost, "lost"},
    Name<FaultKind>{FaultKind::kFails, "fails"},
    Name<FaultKind>{FaultKind::kBadResult, "bad_result"},
};

constexpr std::array kMoments = {
    Name<FaultMoment>{FaultMoment::kBefore, "before"},
    Name<FaultMoment>{FaultMoment::kDuring, "during"},
    Name<FaultMoment>{FaultMoment::kAfter, "after"},
};

constexpr std::array kResults = {
    Name<ResultFault>{ResultFault::kTransientError, "transient_error"},
    Name<ResultFault>{ResultFault::kPersistentError, "persistent_error"},
    Name<ResultFault>{ResultFault::kCorrectResult, "correct_result"},
};

template <class Table>
std::vector<std::string_view> names_in(const Table& table) {
  std::vector<std::string_view> names;
  for (const auto& [one, name] : table) names.push_back(name);
  return names;
}

template <class Table, class T>
std::string_view name_in(const Table& table, T value) {
  for (const auto& [one, name] : table) {
    if (one == value) return name;
  }
  return "unknown";
}

template <class T, class Table>
std::optional<T> named_in(const Table& table, std::string_view wanted) {
  for (const auto& [one, name] : table) {
    if (name == wanted) return one;
  }
  return std::nullopt;
}

[[noreturn]] void impossible(const FaultSpec& spec, const std::string& why) {
  throw Error(Code::kUsage, to_string(spec) + ": " + why);
}

bool can_strike_between_calls(FaultKind kind) {
  return kind == FaultKind::kCrash || kind == FaultKind::kLate || kind == FaultKind::kLost;
}

}  // namespace

std::string_view name_of(FaultKind kind) { return name_in(kKinds, kind); }
std::vector<std::string_view> fault_names() { return names_in(kKinds); }
std::optional<FaultKind> fault_named(std::string_view name) {
  return named_in<FaultKind>(kKinds, name);
}
std::string_view name_of(FaultMoment moment) { return name_in(kMoments, moment); }
std::vector<std::string_view> moment_names() { return names_in(kMoments); }
std::optional<FaultMoment> moment_named(std::string_view name) {
  return named_in<FaultMoment>(kMoments, name);
}
std::span<const std::string_view> bad_values() { return kBadValues; }
std::string_view name_of(BadValue value) { return kBadValues.at(static_cast<std::size_t>(value)); }
std::optional<BadValue> bad_value_named(std::string_view name) {
  const auto* const found = std::find(kBadValues.begin(), kBadValues.end(), name);
  if (found == kBadValues.end()) return std::nullopt;
  return static_cast<BadValue>(found - kBadValues.begin());
}
std::string_view name_of(ResultFault kind) { return name_in(kResults, kind); }
std::vector<std::string_view> result_fault_names() { return names_in(kResults); }
std::optional<ResultFault> result_fault_named(std::string_view name) {
  return named_in<ResultFault>(kResults, name);
}

bool ends_life(FaultKind kind) {
  return kind == FaultKind::kCrash || kind == FaultKind::kTornWrite || kind == FaultKind::kLost;
}

bool outlives(const FaultSpec& spec) {
  return spec.kind == FaultKind::kBadResult && spec.result.kind != ResultFault::kTransientError;
}

void require_possible(const FaultSpec& spec) {
  const FaultPlace& place = spec.place;
  if (spec.kind == FaultKind::kBadResult) {
    if (!place.phase.empty() || !place.step.empty() || place.file) {
      impossible(spec, "a result belongs to no phase, step or file");
    }
    return;
  }
  if (place.nth < 0) impossible(spec, "places are counted from 0");
  if (!place.step.empty() && place.phase.empty()) impossible(spec, "a step is one of a phase");
  if (place.moment == FaultMoment::kDuring) return;
  if (!can_strike_between_calls(spec.kind)) impossible(spec, "it strikes a call, so it is during");
  if (place.phase.empty()) impossible(spec, "before or after which phase?");
  if (place.file) impossible(spec, "a file is met in a call, so it is during");
}

std::string to_string(const FaultSpec& spec) {
  const FaultPlace& place = spec.place;
  std::string text(name_of(spec.kind));
  if (spec.kind == FaultKind::kBadResult)
    text += " (" + std::string(name_of(spec.result.kind)) + ")";
  text += " of rank " + std::to_string(place.rank.value);
  if (!place.phase.empty()) {
    text += " " + std::string(name_of(place.moment)) + " " + place.phase;
    if (!place.step.empty()) text += "/" + place.step;
  }
  if (place.file) text += " at " + std::string(name_of(*place.file));
  if (place.nth > 0) text += ", after " + std::to_string(place.nth) + " such";
  return text;
}

}  // namespace reprise::sim
