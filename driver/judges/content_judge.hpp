#pragma once
// Checks that a committed checkpoint holds, bit for bit, what the ranks passed to its save. After a
// life has ended, this check must read the store before any other judge does.

#include "driver/record/judged_store.hpp"
#include "driver/record/record.hpp"
#include "properties/finding.hpp"

namespace reprise::driver {

/// Compares what a successful save stored with what the ranks passed to it. When the save began,
/// the rank with the main copy of each tensor or object recorded its hash. If the stored bytes have
/// another hash, names that rank and reports TORN_SNAPSHOT if the job trained during the save,
/// otherwise BIT_MISMATCH.
///
/// Skips saves that a later save replaced, saves of a life in which the store lied, padded tensors
/// (their padding is undefined), and items that can't be read (judge_store reports them).
Findings judge_contents(const JudgedStore& where, const LifeRecord& life);

}  // namespace reprise::driver
