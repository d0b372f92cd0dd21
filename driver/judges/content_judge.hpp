#pragma once
// Checks that a committed checkpoint holds, bit for bit, what the ranks passed to its save. Reads
// the store after the life has ended, before anything else reads it.

#include "driver/record/record.hpp"
#include "properties/ruling.hpp"
#include "reprise/store.hpp"

namespace reprise::driver {

/// Compares each tensor and object of each successful save that was not overwritten with the hashes
/// taken when the save began, by the rank with the main copy. If they differ, names that rank and
/// reports TORN_SNAPSHOT if the job trained during the save, otherwise BIT_MISMATCH.
///
/// Skips padded tensors, whose padding is undefined; saves of a life in which the store lied; and
/// items that can't be read, which judge_store reports.
Rulings judge_contents(Store& store, const IncarnationRecord& life);

}  // namespace reprise::driver
