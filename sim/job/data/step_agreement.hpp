#pragma once
// Makes all ranks agree before an update. All modules then continue or stop together, and none
// waits for a module that has stopped.
//
//   own                    each module's ranks            the world
//   loss scale overflows   -                              found-inf: MAX
//   sum of squares, zeros  SUM                            MAX for each module
//   updated                -                              success: MIN

#include <cstdint>
#include <span>
#include <vector>

#include "reprise/fabric.hpp"

namespace reprise::sim {

/// What a rank knows about a module of its job.
struct ModuleStep {
  Communicator* group = nullptr;  ///< ranks of the module; null if this rank is not one of them
  bool overflow = false;          ///< true if gradients of the module are not finite
  double loss_scale = 0;
  std::int64_t squares = 0;  ///< sum of squared gradients, copies counted once, in units of 2^-20
  std::int64_t zeros = 0;    ///< number of zero gradients
};

struct StepAgreement {
  bool overflow = false;  ///< true if any module overflowed; in that case no module is updated
  std::vector<ModuleStep> modules;  ///< one per module, in the job's order; `group` is not set

  /// Returns the norm over all modules; 0 after an overflow.
  double gradient_norm() const;
  std::int64_t zeros() const;
};

/// Collective over the world. `own` has an entry for each module of the job, even those of which
/// this rank has no part.
StepAgreement agree_on_step(Communicator& world, std::span<const ModuleStep> own);

/// Collective over the world. Returns true if all ranks have updated.
bool all_have_stepped(Communicator& world, bool own);

struct StepPolicy {
  StepAgreement (*agree)(Communicator&, std::span<const ModuleStep>) = agree_on_step;
  bool (*success)(Communicator&, bool) = all_have_stepped;
};

// agree_on_step() consists of these two functions:

/// Agrees on found-inf and loss scales of all modules. Resizes `agreed.modules` to the size of
/// `own`.
void agree_on_overflow(Communicator& world, std::span<const ModuleStep> own, StepAgreement& agreed);
/// Agrees on the sum of squares and the number of zeros of each module.
void agree_on_statistics(Communicator& world, std::span<const ModuleStep> own,
                         StepAgreement& agreed);

}  // namespace reprise::sim
