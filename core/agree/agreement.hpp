#pragma once
// Exchanges the outcomes of all ranks, so that an error on one rank becomes an error on all. Only
// this file exchanges outcomes.

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

/// One rank's contribution to an agreement: its bytes, or an error if it could not produce any.
struct Contribution {
  Bytes bytes;
  std::optional<Error> error;
};

/// Runs `work` and returns its result or its error. It catches every exception, so that no rank
/// leaves the others waiting.
Contribution contribution_of(const std::function<Bytes()>& work);

/// True if the error only says that another rank did not answer. The rank that failed knows more.
bool is_about_a_peer(const Error& error);
/// Keeps `error` if none was kept before, or if the one kept is about a peer and `error` is not.
void keep_cause(std::optional<Error>& kept, const Error& error);

/// Collective. If any ranks contribute errors, all ranks throw the error of the lowest of these
/// group ranks. Errors about a peer count only if there is no other. The error states the global
/// number of that rank. Otherwise returns the bytes of every rank, in group order.
std::vector<Bytes> agree(Communicator& group, Contribution mine);

/// Collective. Returns the bytes or the error of every rank, in group order. Meant for callers that
/// can continue after an error.
std::vector<Contribution> gather_contributions(Communicator& group, Contribution mine);

/// Collective. Runs `work` and agrees on its outcome: if it fails on any rank, all ranks throw.
std::vector<Bytes> agree_on(Communicator& group, const std::function<Bytes()>& work);

}  // namespace reprise
