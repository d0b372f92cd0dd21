#pragma once
// What all ranks find out together before an update, so that no module goes on where another stops
// and none waits for one that has.
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

/// What a rank knows of a module of its job.
struct ModuleStep {
  Communicator* group = nullptr;  ///< the module's ranks; nullptr: this rank is none of them
  bool overflow = false;          ///< its gradients are not finite
  double loss_scale = 0;
  std::int64_t squares = 0;  ///< of gradients, each counted once, in units of 2^-20
  std::int64_t zeros = 0;    ///< gradients that are zero
};

struct StepAgreement {
  bool overflow = false;            ///< of some module: nobody updates
  std::vector<ModuleStep> modules;  ///< as in the job; without groups

  /// Over all modules; 0 after an overflow.
  double gradient_norm() const;
  std::int64_t zeros() const;
};

/// Collective over the world; `own` has an entry for each module of the job, owned or not.
StepAgreement agree_on_step(Communicator& world, std::span<const ModuleStep> own);

/// Collective over the world: whether all have updated.
bool all_have_stepped(Communicator& world, bool own);

struct StepPolicy {
  StepAgreement (*agree)(Communicator&, std::span<const ModuleStep>) = agree_on_step;
  bool (*success)(Communicator&, bool) = all_have_stepped;
};

// The two halves of agree_on_step.

/// found-inf and loss scales of all modules; `agreed.modules` is as many as `own`.
void agree_on_overflow(Communicator& world, std::span<const ModuleStep> own, StepAgreement& agreed);
/// Squares and zeros.
void agree_on_statistics(Communicator& world, std::span<const ModuleStep> own,
                         StepAgreement& agreed);

}  // namespace reprise::sim
