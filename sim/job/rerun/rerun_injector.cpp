#include "sim/job/rerun/rerun_injector.hpp"

#include "core/base/random.hpp"
#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

const Value& config_entry(const Value& value, std::string_view key) {
  const Value* found = value.find(key);
  if (found != nullptr) return *found;
  throw Error(Code::kLoadRejected, "the stored error injector has no '" + std::string(key) + "'",
              {.key = "rerun_state_machine_state"});
}

}  // namespace

ErrorInjector::ErrorInjector(std::int64_t rate, RerunDiagnosis kind, std::uint64_t seed)
    : rate_(rate), kind_(kind), seed_(seed) {
  if (rate >= 0 && kind != RerunDiagnosis::kNone) return;
  throw Error(Code::kUsage, "errors are injected at a rate of 0 or more and are of some kind");
}

bool ErrorInjector::inject(GroupRank place) {
  if (rate_ == 0 || pending_ != RerunDiagnosis::kNone) return false;
  Stream draw = Stream(seed_).split("rerun errors").split(draws_++);
  const std::uint64_t drawn = draw.below(static_cast<std::uint64_t>(rate_));
  const auto own = static_cast<std::uint64_t>(place.value);
  if ((drawn + own) % static_cast<std::uint64_t>(rate_) != 0) return false;
  pending_ = kind_;
  return true;
}

bool ErrorInjector::reproduced(bool really, RerunState state) {
  if (pending_ == RerunDiagnosis::kNone) return really;
  if (state == RerunState::kRerunningInPlace) {
    const bool transient = pending_ == RerunDiagnosis::kTransientError;
    if (transient) clear();
    return !transient;
  }
  const bool correct = pending_ == RerunDiagnosis::kCorrectResult;
  clear();
  return correct;
}

Value ErrorInjector::encode() const {
  return Dict{{"error_injection_rate", rate_},
              {"error_injection_type", sim::encode(kind_)},
              {"injected_error_type", sim::encode(pending_)}};
}

void ErrorInjector::decode(const Value& value) {
  const auto* rate = config_entry(value, "error_injection_rate").as<std::int64_t>();
  if (rate == nullptr || *rate < 0) {
    throw Error(Code::kLoadRejected, "the stored rate of injected errors is not a count",
                {.key = "rerun_state_machine_state"});
  }
  rate_ = *rate;
  kind_ = decode_diagnosis(config_entry(value, "error_injection_type"));
  pending_ = decode_diagnosis(config_entry(value, "injected_error_type"));
}

}  // namespace reprise::sim
