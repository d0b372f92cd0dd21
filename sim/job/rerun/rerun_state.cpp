#include "sim/job/rerun/rerun_state.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/base/print.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kStateModule = "megatron.core.rerun_state_machine";

constexpr std::array<std::string_view, 3> kModes = {"disabled", "validate_results",
                                                    "report_determinism_stats"};
constexpr std::array<std::string_view, 5> kFormats = {"torch_dist", "torch", "torch_dcp",
                                                      "fsdp_dtensor", "zarr"};
constexpr std::array<std::string_view, 6> kStates = {
    "NOT_RUNNING_YET",           "INITIAL_RUN",
    "RERUNNING_IN_PLACE",        "WILL_RERUN_FROM_CHECKPOINT",
    "RERUNNING_FROM_CHECKPOINT", "RERUNNING_AGAIN_FROM_CHECKPOINT"};
constexpr std::array<std::string_view, 4> kDiagnoses = {"none", "correct_result", "transient_error",
                                                        "persistent_error"};
constexpr std::array<std::string_view, 6> kStatuses = {"rerun_disabled",
                                                       "initial_run",
                                                       "first_rerun_not_reproducible",
                                                       "first_rerun_reproducible",
                                                       "second_rerun_not_reproducible",
                                                       "second_rerun_reproducible"};

template <class Enum, std::size_t n>
std::string_view word(const std::array<std::string_view, n>& names, Enum value) {
  return names.at(static_cast<std::size_t>(value));
}

template <class Enum, std::size_t n>
Enum named(const std::array<std::string_view, n>& names, std::string_view name, const char* what) {
  const auto* const found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    const std::string near = closest(name, std::vector<std::string>(names.begin(), names.end()));
    throw Error(Code::kUsage, "there is no " + std::string(what) + " '" + std::string(name) + "'" +
                                  (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                  " Known: " + reprise::join(names, ", "));
  }
  return static_cast<Enum>(found - names.begin());
}

Value member(const char* type, Value value) {
  return Object{
      .type = {kStateModule, type}, .how = Object::How::kCall, .args = {std::move(value)}};
}

[[noreturn]] void refuse(const Value& value, const char* type) {
  throw Error(Code::kLoadRejected, to_string(value) + " is not a member of " + type,
              {.key = "rerun_state_machine"});
}

/// Returns the value of an enum member. Also accepts a plain value, which some writers store.
const Value& inside(const Value& value, const char* type) {
  const auto* object = value.as<Object>();
  if (object == nullptr) return value;
  if (object->type != Name{kStateModule, type} || object->args.size() != 1) refuse(value, type);
  return object->args.front();
}

template <class Enum, std::size_t n>
Enum decode_word(const Value& value, const std::array<std::string_view, n>& names,
                 const char* type) {
  const auto* text = inside(value, type).as<std::string>();
  const auto* const found =
      text == nullptr ? names.end() : std::find(names.begin(), names.end(), *text);
  if (found == names.end()) refuse(value, type);
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name_of(RerunMode mode) { return word(kModes, mode); }
std::string_view name_of(RerunState state) { return word(kStates, state); }
std::string_view name_of(RerunDiagnosis diagnosis) { return word(kDiagnoses, diagnosis); }
std::string_view name_of(RerunStatus status) { return word(kStatuses, status); }

std::span<const std::string_view> checkpoint_formats() { return kFormats; }
std::string_view name_of(CheckpointFormat format) { return word(kFormats, format); }
CheckpointFormat checkpoint_format_named(std::string_view name) {
  return named<CheckpointFormat>(kFormats, name, "checkpoint format");
}

std::span<const std::string_view> rerun_modes() { return kModes; }
RerunMode rerun_mode_named(std::string_view name) {
  return named<RerunMode>(kModes, name, "rerun mode");
}
RerunDiagnosis rerun_diagnosis_named(std::string_view name) {
  return named<RerunDiagnosis>(kDiagnoses, name, "diagnosis");
}

std::ostream& operator<<(std::ostream& out, RerunMode mode) { return out << name_of(mode); }
std::ostream& operator<<(std::ostream& out, RerunState state) { return out << name_of(state); }
std::ostream& operator<<(std::ostream& out, RerunDiagnosis diagnosis) {
  return out << name_of(diagnosis);
}
std::ostream& operator<<(std::ostream& out, RerunStatus status) { return out << name_of(status); }

Value encode(RerunMode mode) { return member("RerunMode", std::string(name_of(mode))); }
Value encode(RerunState state) { return member("RerunState", static_cast<std::int64_t>(state)); }
Value encode(RerunDiagnosis diagnosis) {
  if (diagnosis == RerunDiagnosis::kNone) return NoneType{};
  return member("RerunDiagnostic", std::string(name_of(diagnosis)));
}

RerunMode decode_mode(const Value& value) {
  return decode_word<RerunMode>(value, kModes, "RerunMode");
}

RerunState decode_state(const Value& value) {
  const auto* number = inside(value, "RerunState").as<std::int64_t>();
  if (number == nullptr || *number < 0 || *number >= static_cast<std::int64_t>(kStates.size())) {
    refuse(value, "RerunState");
  }
  return static_cast<RerunState>(*number);
}

RerunDiagnosis decode_diagnosis(const Value& value) {
  if (value.is_none()) return RerunDiagnosis::kNone;
  const auto found = decode_word<RerunDiagnosis>(value, kDiagnoses, "RerunDiagnostic");
  if (found == RerunDiagnosis::kNone) refuse(value, "RerunDiagnostic");
  return found;
}

}  // namespace reprise::sim
