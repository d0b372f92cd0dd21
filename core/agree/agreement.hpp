#pragma once
// Makes one rank's error an error on all ranks: the only place where ranks exchange outcomes.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// A rank's input to an agreement: bytes, or the error that prevented them.
struct Contribution {
  Bytes bytes;
  std::optional<Error> error;
};

/// Runs `work` and returns its result or its failure. Catches Errors and all other exceptions, so
/// that no rank leaves the others waiting.
Contribution contribution_of(const std::function<Bytes()>& work);

/// Collective. If any rank contributes an error, all ranks throw the one of the lowest group rank,
/// with its global rank in the place. Otherwise all get the bytes of every rank in group order.
std::vector<Bytes> agree(Communicator& group, Contribution mine);

/// Collective. Returns bytes or error of every rank in group order, for callers that can continue.
std::vector<Contribution> hear(Communicator& group, Contribution mine);
/// Overhead on the wire added to the contributed bytes. Bytes with this much spare capacity are
/// sent without a copy.
constexpr std::uint64_t kClosingBytes = 1;

/// Runs `work` and agrees on its outcome: a failure on any rank is thrown on all.
std::vector<Bytes> agree_on(Communicator& group, const std::function<Bytes()>& work);

}  // namespace reprise
