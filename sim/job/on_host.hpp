#pragma once
// A state whose elements the host may read, for those who judge it.

#include <optional>
#include <vector>

#include "core/state/state_dict.hpp"
#include "sim/job/processor.hpp"

namespace reprise::sim {

/// Where the processor's memory is the host's, the state itself; else the same state with copies of
/// the elements, made at once and owned by this.
class OnHost {
 public:
  /// Both are borrowed.
  OnHost(Processor& processor, const StateDict& state);
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;

  const StateDict& state() const { return copy_ ? *copy_ : given_; }

 private:
  const StateDict& given_;
  std::optional<StateDict> copy_;
  std::vector<Bytes> elements_;  ///< of the copy, leaf by leaf
};

}  // namespace reprise::sim
