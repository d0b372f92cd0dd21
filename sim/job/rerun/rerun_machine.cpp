#include "sim/job/rerun/rerun_machine.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/codes.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kModule = "megatron.core.rerun_state_machine";

constexpr std::array kFlags = {
    std::pair{"rerun_requested", Vote::kRerun},
    std::pair{"checkpoint_requested", Vote::kCheckpoint},
    std::pair{"restart_again_requested", Vote::kRestartAgain},
    std::pair{"continue_requested", Vote::kContinue},
};

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kLoadRejected, "the stored rerun state " + what,
              {.key = "rerun_state_machine_state"});
}

const Value& entry(const Value& dict, std::string_view key) {
  const Value* found = dict.find(key);
  if (found == nullptr) refuse("has no '" + std::string(key) + "'");
  return *found;
}

template <class T>
const T& typed(const Value& value, std::string_view what) {
  const auto* found = value.as<T>();
  if (found == nullptr) refuse("has a '" + std::string(what) + "' of another type");
  return *found;
}

// --- calls and results, encoded in the types that Megatron compares ------------------------------

Value encode(const std::optional<ValidationCall>& call) {
  if (!call) return NoneType{};
  const Object caller{.type = {kModule, "Caller"},
                      .args = {call->message, std::int64_t{call->rank}}};
  return Object{.type = {kModule, "Call"}, .args = {caller, call->sequence}};
}

std::optional<ValidationCall> decode_call(const Value& value) {
  if (value.is_none()) return std::nullopt;
  const auto& call = typed<Object>(value, "failed_validation_call");
  if (call.args.size() != 2) refuse("has a failed call that is none");
  const auto& caller = typed<Object>(call.args[0], "caller");
  if (caller.args.size() != 2) refuse("has a caller that is none");
  return ValidationCall{typed<std::string>(caller.args[0], "message"),
                        static_cast<std::int32_t>(typed<std::int64_t>(caller.args[1], "rank")),
                        typed<std::int64_t>(call.args[1], "sequence")};
}

Value encode(const std::optional<double>& result) {
  if (!result) return NoneType{};
  TensorValue tensor{.dtype = DType::kFloat64};
  append_le(tensor.data, *result);
  return tensor;
}

std::optional<double> decode_result(const Value& value) {
  if (value.is_none()) return std::nullopt;
  if (const auto* number = value.as<double>()) return *number;
  const auto& tensor = typed<TensorValue>(value, "initial_result");
  if (tensor.dtype == DType::kFloat64 && tensor.data.size() == sizeof(double)) {
    return load_le<double>(tensor.data);
  }
  if (tensor.dtype == DType::kFloat32 && tensor.data.size() == sizeof(float)) {
    return double{load_le<float>(tensor.data)};
  }
  refuse("has an initial result that is not a number");
}

std::string text_of(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

// --- devices: "node:index" ----------------------------------------------------------------------

std::size_t colon_of(const std::string& device) {
  return std::min(device.rfind(':'), device.size());
}

Value node_of(const std::string& device) {
  if (device.empty()) return NoneType{};
  return device.substr(0, colon_of(device));
}

Value index_of(const std::string& device) {
  if (device.empty()) return NoneType{};
  std::int64_t index = 0;
  for (std::size_t at = colon_of(device) + 1; at < device.size(); ++at) {
    const char digit = device[at];
    if (digit >= '0' && digit <= '9' && index < 1'000'000) index = index * 10 + (digit - '0');
  }
  return index;
}

std::string decode_device(const Value& node, const Value& index) {
  if (node.is_none()) return {};
  return typed<std::string>(node, "suspicious_node") + ":" +
         std::to_string(typed<std::int64_t>(index, "suspicious_device"));
}

RerunDiagnosis found_by(RerunVotes votes) {
  if (votes.has(Vote::kPersistentError)) return RerunDiagnosis::kPersistentError;
  if (votes.has(Vote::kTransientError)) return RerunDiagnosis::kTransientError;
  if (votes.has(Vote::kCorrectResult)) return RerunDiagnosis::kCorrectResult;
  return RerunDiagnosis::kNone;
}

std::string why(RerunState state, std::int64_t iteration) {
  const std::string which = "iteration " + std::to_string(iteration);
  switch (state) {
    case RerunState::kRerunningInPlace:
      return which +
             ": a fatal result could not be reproduced; continue from an earlier checkpoint";
    case RerunState::kWillRerunFromCheckpoint:
      return which +
             ": a fatal result came out again; restart from the checkpoint that is saved "
             "now, on another device, to find out more";
    case RerunState::kRerunningFromCheckpoint:
      return which +
             ": run again from the checkpoint, which stays; each restart from it does so "
             "until the rerun machine is disabled, the layout changes or another "
             "checkpoint is loaded";
    case RerunState::kRerunningAgainFromCheckpoint:
      return which +
             ": still on the suspicious device; restart from the same checkpoint on "
             "another one";
    case RerunState::kNotRunningYet:
    case RerunState::kInitialRun:
      break;
  }
  return which + ": a fatal result, and the rerun machine is disabled";
}

}  // namespace

RerunMachine::RerunMachine(RerunSetup setup, RerunPolicy policy)
    : setup_(std::move(setup)), policy_(policy), large_(setup_.large) {
  // Converts the device name to the form in which a load restores it. Names from before and after a
  // load can then be compared.
  setup_.device = decode_device(node_of(setup_.device), index_of(setup_.device));
}

int RerunMachine::run() const {
  return state_ == RerunState::kRerunningInPlace || state_ == RerunState::kRerunningFromCheckpoint
             ? 1
             : 0;
}

// --- an iteration -------------------------------------------------------------------------------

void RerunMachine::begin(std::int64_t iteration) {
  calls_.clear();
  world_ = {};
  if (state_ == RerunState::kWillRerunFromCheckpoint) {
    state_ = RerunState::kRerunningFromCheckpoint;
    fault_.votes = {};
    return;
  }
  if (state_ != RerunState::kNotRunningYet) {
    throw Error(Code::kUsage, "no iteration can begin in state " + std::string(name_of(state_)));
  }
  state_ = RerunState::kInitialRun;
  iteration_ = iteration;
}

ValidationCall RerunMachine::call_of(std::string_view message) {
  return {std::string(message), setup_.place.value, ++calls_[std::string(message)]};
}

void RerunMachine::write(RerunStatus status, const Validation& validation) {
  log_.push_back(line_of({.device = setup_.device,
                          .job_id = setup_.job_id,
                          .rank = setup_.rank,
                          .iteration = iteration_,
                          .status = status,
                          .result = validation.value,
                          .message = std::string(validation.message)}));
}

void RerunMachine::note(const std::string& text) {
  notes_.push_back("rank " + std::to_string(setup_.rank.value) + ", device " + setup_.device +
                   ", iteration " + std::to_string(iteration_) + ": " + text);
}

void RerunMachine::validate_disabled(const Validation& validation) {
  if (!validation.rejected) return;
  write(RerunStatus::kRerunDisabled, validation);
  note(std::string(validation.fatal ? "error" : "warning") + ": unexpected result " +
       text_of(validation.value) + " (" + std::string(validation.message) + ")");
  if (validation.fatal) fault_.votes.add(Vote::kFail);
}

void RerunMachine::collect(const Validation& validation, const ValidationCall& call) {
  if (state_ == RerunState::kInitialRun) {
    fault_.votes.add(Vote::kRerun);
    results_.emplace_back(call, validation.value);
    return;
  }
  const auto initial = std::find_if(results_.begin(), results_.end(),
                                    [&](const auto& result) { return result.first == call; });
  CHECK(initial != results_.end(), call.message, call.sequence);
  statistics_.record(call.message, relative_difference(initial->second, validation.value));
}

void RerunMachine::validate_initial(const Validation& validation, const ValidationCall& call) {
  // Validation starts only after the first iteration: before that, there may be no checkpoint from
  // which a job can restart.
  if (!first_iteration_complete_ || fault_.failed) return;
  if (!setup_.injector.inject(setup_.place) && !validation.rejected) return;
  fault_.failed = call;
  fault_.initial_result = validation.value;
  fault_.votes.add(Vote::kRerun);
  diagnosis_ = RerunDiagnosis::kNone;
  write(RerunStatus::kInitialRun, validation);
  note("unexpected result " + text_of(validation.value) + " (" + call.message + ")");
}

void RerunMachine::validate_again(const Validation& validation) {
  const bool in_place = state_ == RerunState::kRerunningInPlace;
  // No device is suspicious if the re-run in place gave a different result. The fault is then
  // already diagnosed.
  if (!in_place && fault_.device.empty()) return;
  const bool same_device = !in_place && fault_.device == setup_.device;
  const bool really = relative_difference(fault_.initial_result.value_or(0), validation.value) <=
                      validation.tolerance;
  const bool reproduced = same_device || setup_.injector.reproduced(really, state_);
  const RerunVotes votes = policy_.judged({state_, reproduced, validation.fatal, same_device});
  fault_.votes = fault_.votes | votes;
  if (same_device) {
    note("still on the device of the unexpected result");
    return;
  }
  if (in_place && reproduced) fault_.device = setup_.device;
  diagnosis_ = found_by(votes);
  write(in_place ? (reproduced ? RerunStatus::kFirstRerunReproducible
                               : RerunStatus::kFirstRerunNotReproducible)
                 : (reproduced ? RerunStatus::kSecondRerunReproducible
                               : RerunStatus::kSecondRerunNotReproducible),
        validation);
  note("the re-run gives " + text_of(validation.value) + ", the initial run gave " +
       text_of(fault_.initial_result.value_or(0)) + " (" + std::string(validation.message) + ")" +
       (diagnosis_ == RerunDiagnosis::kNone ? "" : ": " + std::string(name_of(diagnosis_))));
}

void RerunMachine::validate(const Validation& validation) {
  if (mode() == RerunMode::kDisabled) {
    validate_disabled(validation);
    return;
  }
  const ValidationCall call = call_of(validation.message);
  if (state_ != RerunState::kInitialRun && state_ != RerunState::kRerunningInPlace &&
      state_ != RerunState::kRerunningFromCheckpoint) {
    throw Error(Code::kUsage,
                "results are validated within a run, not in state " + std::string(name_of(state_)));
  }
  if (mode() == RerunMode::kReportDeterminismStats) {
    collect(validation, call);
  } else if (state_ == RerunState::kInitialRun) {
    validate_initial(validation, call);
  } else if (fault_.failed == call) {
    validate_again(validation);
  }
}

bool RerunMachine::unexpectedly_large(std::string_view name, double value) {
  // Samples come only from valid results, that is, from initial runs without a rejection.
  if (mode() == RerunMode::kReportDeterminismStats) return false;
  if (mode() == RerunMode::kValidateResults &&
      (state_ != RerunState::kInitialRun || fault_.failed || !first_iteration_complete_)) {
    return false;
  }
  return large_.unexpectedly_large(name, value);
}

RunEnd RerunMachine::end_run(RerunVotes world) {
  const RunEnd end = policy_.end(state_, mode(), world);
  calls_.clear();
  world_ = world;
  state_ = end.next;
  if (state_ != RerunState::kNotRunningYet) return end;
  fault_ = {};
  results_.clear();
  setup_.injector.clear();
  return end;
}

std::optional<RerunExit> RerunMachine::conclude() {
  first_iteration_complete_ = true;
  const auto leaving = policy_.leaving(state_, mode(), world_);
  if (!leaving) return std::nullopt;
  const bool decided = leaving->code == kExitAfterDiagnosis;
  return RerunExit{.code = leaving->code,
                   .save = leaving->save,
                   .diagnosis = decided ? found_by(world_) : RerunDiagnosis::kNone,
                   .why = why(state_, iteration_)};
}

void RerunMachine::drop() {
  if (state_ == RerunState::kWillRerunFromCheckpoint) {
    note("it is skipped; the pending investigation of it is dropped");
  }
  state_ = RerunState::kNotRunningYet;
  fault_ = {};
  setup_.injector.clear();
}

// --- checkpoints --------------------------------------------------------------------------------

RerunSnapshot RerunMachine::snapshot() const {
  if (!policy_.persisted(state_)) {
    throw Error(passed_on::kIllegalStatePersisted,
                "the rerun state " + std::string(name_of(state_)) +
                    " depends on what is in memory alone and can't be saved; save between "
                    "iterations, or where the machine says so",
                {.rank = setup_.rank, .key = "rerun_state_machine"});
  }
  return {mode(), state_, iteration_};
}

Value RerunMachine::encode_object(const std::vector<DataPosition>& data) const {
  Dict object;
  for (const auto& [name, vote] : kFlags) object.emplace_back(name, fault_.votes.has(vote));
  Value batches = NoneType{};
  if (state_ != RerunState::kNotRunningYet) {
    List iterators;
    for (const auto& position : data) iterators.push_back(sim::encode(position));
    batches = std::move(iterators);
  }
  object.emplace_back("error_injector_checkpoint", setup_.injector.encode());
  object.emplace_back("failed_validation_call", encode(fault_.failed));
  object.emplace_back("initial_result", encode(fault_.initial_result));
  object.emplace_back("suspicious_node", node_of(fault_.device));
  object.emplace_back("suspicious_device", index_of(fault_.device));
  object.emplace_back("data_iterator_checkpoints", std::move(batches));
  object.emplace_back("large_value_counts", large_.encode_counts());
  object.emplace_back("max_values", large_.encode_maxima());
  return object;
}

void RerunMachine::restore(const RerunSnapshot& snapshot, const Value& object) {
  FaultContext fault;
  for (const auto& [name, vote] : kFlags) {
    if (typed<bool>(entry(object, name), name)) fault.votes.add(vote);
  }
  fault.failed = decode_call(entry(object, "failed_validation_call"));
  fault.initial_result = decode_result(entry(object, "initial_result"));
  fault.device =
      decode_device(entry(object, "suspicious_node"), entry(object, "suspicious_device"));
  setup_.injector.decode(entry(object, "error_injector_checkpoint"));
  large_.decode(entry(object, "large_value_counts"), entry(object, "max_values"));
  fault_ = std::move(fault);
  setup_.mode = snapshot.mode;
  state_ = snapshot.state;
  iteration_ = snapshot.iteration;
  diagnosis_ = RerunDiagnosis::kNone;
  if (setup_.place != GroupRank{0}) return;
  log_.push_back(restart_line(setup_.device, setup_.job_id, setup_.rank, iteration_));
}

// --- messages and statistics --------------------------------------------------------------------

std::vector<std::string> RerunMachine::take_notes() { return std::exchange(notes_, {}); }

bool RerunMachine::reports_now() const { return policy_.reported(mode(), iteration_); }

RerunVotes votes_of_all(Communicator& world, RerunVotes mine) {
  std::array<std::int64_t, kVotes> flags{};
  for (std::size_t v = 0; v < flags.size(); ++v) flags[v] = mine.has(static_cast<Vote>(v)) ? 1 : 0;
  const auto all = world.all_reduce(Reduce::kMax, flags);
  RerunVotes votes;
  for (std::size_t v = 0; v < all.size(); ++v) {
    if (all[v] != 0) votes.add(static_cast<Vote>(v));
  }
  return votes;
}

Value encode(const RerunSnapshot& snapshot) {
  return Dict{{"mode", encode(snapshot.mode)},
              {"state", encode(snapshot.state)},
              {"current_iteration", snapshot.iteration}};
}

std::optional<RerunSnapshot> rerun_of(const Value& common) {
  const Value* machine = common.find("rerun_state_machine");
  if (machine == nullptr || machine->is_none()) return std::nullopt;
  return RerunSnapshot{
      decode_mode(entry(*machine, "mode")), decode_state(entry(*machine, "state")),
      typed<std::int64_t>(entry(*machine, "current_iteration"), "current_iteration")};
}

}  // namespace reprise::sim
