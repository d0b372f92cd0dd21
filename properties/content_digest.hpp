#pragma once
// One number for a job's content, the same under every sharding. The parts of the ranks add up,
// modulo 2^64, so that nothing needs to be gathered.

#include <array>
#include <cstdint>

#include "core/state/state_dict.hpp"

namespace reprise {

/// This rank's part: over the tensors of which it holds the main copy, each element by key, global
/// index and bits. Host memory.
std::uint64_t content_digest(const StateDict& state);

/// What values add, on one rank alone: for a common state without what depends on the layout.
std::uint64_t value_digest(const Value& value);

/// As two numbers whose sums over up to 2^31 ranks fit an int64, and back from the sums.
std::array<std::int64_t, 2> halves_of(std::uint64_t digest);
std::uint64_t digest_of(const std::array<std::int64_t, 2>& sums);

}  // namespace reprise
