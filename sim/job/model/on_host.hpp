#pragma once
// Copies a state to the host if necessary, so that judges can read its elements.

#include <optional>
#include <vector>

#include "core/state/state_dict.hpp"
#include "sim/job/model/processor.hpp"

namespace reprise::sim {

/// Refers to the original state if the processor's memory is host memory. Otherwise the constructor
/// copies the elements, and this object owns the copies.
class OnHost {
 public:
  /// Borrows both arguments.
  OnHost(Processor& processor, const StateDict& state);
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;

  const StateDict& state() const { return copy_ ? *copy_ : given_; }

 private:
  const StateDict& given_;
  std::optional<StateDict> copy_;
  std::vector<Bytes> elements_;  ///< elements of the copy, leaf by leaf
};

}  // namespace reprise::sim
