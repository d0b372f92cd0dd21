#pragma once
// Defines jobs of several processes without MPI: the ranks talk over TCP.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "reprise/job.hpp"

namespace reprise REPRISE_API {

/// A place that all ranks reach, where one leaves a text under a key and the others find it, such
/// as torch's TCPStore. An exception of either call ends the meeting of this rank.
struct KeyStore {
  std::function<void(const std::string& key, const std::string& value)> put = {};
  /// Returns nothing while nobody has put that key, and is then called again. It may also block
  /// until the key is there.
  std::function<std::optional<std::string>(const std::string& key)> get = {};
};

/// Says which rank this process is, and where it meets the others.
struct SocketOptions {
  std::int32_t rank = 0;  ///< number of this process, 0 .. size - 1
  std::int32_t size = 1;  ///< number of processes of the job
  /// Where the ranks meet: "host:port", or "[address]:port" for IPv6. Rank 0 listens there, and the
  /// others try to connect until it does. Empty if they meet by `store`.
  std::string address = {};
  KeyStore store = {};  ///< where the ranks meet if there is no `address`
  /// Name of this start of the job. Ranks of a job with another name are refused. In a `store` that
  /// outlives the job, each start needs a name of its own.
  std::string job = "reprise";
  /// Address of this host, without a port, at which the other ranks reach this one. By default only
  /// ranks on the same host do. Rank 0 is reached at `address` if there is one.
  std::string bind = "127.0.0.1";
  /// Longest time until all ranks have come and are connected.
  std::chrono::nanoseconds deadline = std::chrono::minutes(5);
  /// Asked while this rank waits for the others to come; if it returns true, INTERRUPTED is thrown.
  /// socket_job() asks JobOptions::interrupted if this is null.
  std::function<bool()> interrupted = {};
};

/// Returns a fabric over `size` processes. The call is collective over them. It throws USAGE for
/// options that make no sense; LAYOUT_MISMATCH if the ranks disagree on their number, or if two of
/// them have the same number; USAGE for a rank of another job, or one that comes when the job is
/// complete; UNSUPPORTED for a rank with another version of the protocol; DEADLINE if a rank does
/// not come in time; PEER_FAILED if one ends before all have come. The messages name who came.
///
/// Longest time that a rank waits for the others in one collective call is `deadline`; then
/// DEADLINE is thrown. When a process ends, all ranks that wait for it, or for a rank that does,
/// throw PEER_FAILED within a second.
///
/// A thread of the fabric moves the bytes; it runs none of the caller's code. The connections are
/// neither encrypted nor authenticated: use them in a network that you trust.
std::shared_ptr<Fabric> socket_fabric(const SocketOptions& ranks,
                                      std::chrono::nanoseconds deadline = std::chrono::minutes(30));

/// Returns a job over the ranks of socket_fabric(ranks, options.deadline), and throws what that
/// throws. Every rank passes the same `root`.
Job socket_job(const std::string& root, const SocketOptions& ranks, const JobOptions& options = {});

}  // namespace REPRISE_API
