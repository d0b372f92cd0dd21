#pragma once
// Makes the leaves of an optimizer that is saved bucket by bucket, as dp_reshardable does.

#include <string>
#include <vector>

#include "sim/job/data/job_data.hpp"

namespace reprise::sim {

/// Adds the buckets of one family, and the objects that describe these buckets.
void add_buckets(StateDict& state, const Family& family, OptimizerShard& optimizer);
/// Returns the replica index of the objects with which this rank describes its part of the buckets.
std::int32_t bucket_replica(const Family& family);
/// True if a load requested the module's optimizer bucket by bucket.
bool has_buckets(const RequestNames& asked);
/// Throws LAYOUT_MISMATCH if the object says that the checkpoint's buckets differ from this job's.
void check_buckets(const ObjectLeaf& object, const Module& module, const Family& family);
/// Returns the boxes of this rank's leaf that consist of padding between bucket entries. Their
/// bytes are undefined.
std::vector<Box> padding_of(const JobData& job, const std::string& key);

}  // namespace reprise::sim
