#pragma once
// Injects errors to test the rerun machine. Rejects results at random. The kind of the injected
// error decides whether a re-run counts as reproducing the rejected result. Values themselves are
// never changed.

#include <cstdint>
#include <optional>

#include "reprise/types.hpp"
#include "reprise/value.hpp"
#include "sim/job/rerun/rerun_state.hpp"

namespace reprise::sim {

class ErrorInjector {
 public:
  ErrorInjector() = default;
  /// Rejects one in `rate` results; if `rate` is 0, rejects none. `kind` must not be kNone.
  ErrorInjector(std::int64_t rate, RerunDiagnosis kind, std::uint64_t seed = 1);

  std::int64_t rate() const { return rate_; }
  RerunDiagnosis kind() const { return kind_; }

  /// Decides at random whether to reject this result. All ranks draw the same random number. It
  /// selects one remainder modulo `rate`; only ranks whose index in the job has this remainder
  /// reject. If the job has at most `rate` ranks, at most one rank rejects.
  bool inject(GroupRank place);
  /// True if the result counts as reproduced. If an injected error is pending, its kind decides;
  /// otherwise returns `really`.
  bool reproduced(bool really, RerunState state);

  /// Ends the iteration and clears the pending error.
  void clear() { pending_ = RerunDiagnosis::kNone; }

  /// Encodes {error_injection_rate, error_injection_type, injected_error_type}.
  Value encode() const;
  /// Throws LOAD_REJECTED if the value does not have the right form.
  void decode(const Value& value);

 private:
  std::int64_t rate_ = 0;
  RerunDiagnosis kind_ = RerunDiagnosis::kTransientError;
  RerunDiagnosis pending_ = RerunDiagnosis::kNone;
  std::uint64_t seed_ = 1;
  std::uint64_t draws_ = 0;
};

}  // namespace reprise::sim
