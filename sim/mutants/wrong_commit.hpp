#pragma once
// Protocols of a save in a wrong order, or counting what does not count: commit, tracker,
// retention.

#include "sim/mutants/mutants.hpp"

namespace reprise::sim {

/// The tracker names the checkpoint before its payload stands in its place.
void tracker_before_payload(Policies& policies);
/// The tracker names it when the save is scheduled.
void tracker_at_schedule(Policies& policies);
/// Everybody leaves the tracker to somebody else.
void tracker_by_nobody(Policies& policies);
/// Each rank takes it for its own to write.
void tracker_by_all(Policies& policies);

/// The older ones go before the new one is durable: when the commit begins; when it is scheduled.
void remove_before_durable(Policies& policies);
/// What stands at the step that is saved goes before the new one stands there.
void remove_same_step_first(Policies& policies);
void remove_at_schedule(Policies& policies);
/// The newest are those with the highest numbers in their names, finished or not.
void count_unfinished(Policies& policies);
/// One that a load has just passed over as damaged counts like any other.
void count_damaged(Policies& policies);

/// A rank falls back by what it sees itself.
void choose_alone(Policies& policies);

}  // namespace reprise::sim
