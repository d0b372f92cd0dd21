#pragma once
// Errors put into a job on purpose, to see the machine at work: results are rejected at random and
// come out in re-runs as the kind of error wants it. The value itself is never changed.

#include <cstdint>
#include <optional>

#include "reprise/types.hpp"
#include "reprise/value.hpp"
#include "sim/job/rerun_state.hpp"

namespace reprise::sim {

class ErrorInjector {
 public:
  ErrorInjector() = default;
  /// One in `rate` results; 0: none. `kind` is not kNone.
  ErrorInjector(std::int64_t rate, RerunDiagnosis kind, std::uint64_t seed = 1);

  std::int64_t rate() const { return rate_; }
  RerunDiagnosis kind() const { return kind_; }
  /// What was injected and not yet seen through.
  RerunDiagnosis pending() const { return pending_; }

  /// Whether this result is rejected. Draws; at most one of the ranks of a job that has no more
  /// ranks than `rate` is hit by a draw.
  bool inject(GroupRank place);
  /// Whether the result is reproduced in that run: what was injected decides, else `really`.
  bool reproduced(bool really, RerunState state);

  /// The iteration is over: nothing is pending.
  void settle() { pending_ = RerunDiagnosis::kNone; }

  /// {error_injection_rate, error_injection_type, injected_error_type}
  Value encode() const;
  /// LOAD_REJECTED if it is not of that form.
  void decode(const Value& value);

 private:
  std::int64_t rate_ = 0;
  RerunDiagnosis kind_ = RerunDiagnosis::kTransientError;
  RerunDiagnosis pending_ = RerunDiagnosis::kNone;
  std::uint64_t seed_ = 1;
  std::uint64_t draws_ = 0;
};

}  // namespace reprise::sim
