#pragma once
// One error on all ranks when one fails: the only place where ranks tell each other how it went.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// What a rank brings to an agreement: bytes, or the error that kept it from having them.
struct Contribution {
  Bytes bytes;
  std::optional<Error> error;
};

/// Runs `work`: what it gave, or how it failed. Errors and other exceptions alike, so that no rank
/// leaves the others waiting.
Contribution contribution_of(const std::function<Bytes()>& work);

/// Collective. If any rank brings an error, all ranks throw the one of the lowest group rank, with
/// its global rank in the place; else all get everybody's bytes in group order.
std::vector<Bytes> agree(Communicator& group, Contribution mine);

/// Collective. Everybody's bytes or errors in group order, for those who go on after an error.
std::vector<Contribution> hear(Communicator& group, Contribution mine);
/// What bytes take on the wire beside themselves. Bytes with so much capacity to spare go there
/// without being copied.
constexpr std::uint64_t kClosingBytes = 1;

/// Runs `work` and agrees on its outcome: a failure of any rank reaches all.
std::vector<Bytes> agree_on(Communicator& group, const std::function<Bytes()>& work);

}  // namespace reprise
