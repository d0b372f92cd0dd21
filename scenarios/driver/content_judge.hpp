#pragma once
// Does a committed checkpoint hold, bit for bit, what the ranks handed to its save? Asked of the
// store when the life has ended, before anything else looks at it.

#include "properties/ruling.hpp"
#include "reprise/store.hpp"
#include "scenarios/driver/record.hpp"

namespace reprise::driver {

/// For each tensor and object of each save of the life that ended well and still stands: what the
/// checkpoint holds against the hashes that the rank with the main copy took when the save was
/// begun. TORN_SNAPSHOT if steps were trained beside the save, else BIT_MISMATCH, naming that rank.
///
/// Left out are padded tensors, whose padding nobody defines; saves of a life in which the store
/// lied; and what can't be read, of which the store's judge says so.
Rulings judge_contents(Store& store, const IncarnationRecord& life);

}  // namespace reprise::driver
