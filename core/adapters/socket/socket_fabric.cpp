// Implements the fabric (reprise/fabric.hpp) over TCP.
#include "reprise/socket.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "core/adapters/socket/links.hpp"
#include "core/adapters/socket/rendezvous.hpp"
#include "core/adapters/socket/socket_communicator.hpp"
#include "core/base/caught.hpp"
#include "core/ports/call_deadline.hpp"
#include "reprise/fabric.hpp"

namespace reprise {
namespace {

void require_sense(const SocketOptions& ranks) {
  std::ostringstream text;
  constexpr std::size_t kNameMax = 256;
  if (ranks.size < 1 || ranks.rank < 0 || ranks.rank >= ranks.size) {
    text << "rank " << ranks.rank << " of " << ranks.size << " ranks: ranks count from 0";
  } else if (ranks.address.empty() == !(ranks.store.put && ranks.store.get)) {
    text << "ranks meet at an address or through a store with put and get: pass exactly one of the "
            "two";
  } else if (ranks.job.size() > kNameMax || ranks.job.find('\n') != std::string::npos) {
    text << "job: the name must be one line of at most " << kNameMax << " bytes";
  } else {
    required_deadline(ranks.deadline);
    return;
  }
  throw Error(Code::kUsage, text.str());
}

void require_reachable(const std::string& address) {
  if (!address.starts_with("0.0.0.0:") && !address.starts_with("[::]:")) return;
  throw Error(Code::kUsage,
              address + " means every address of this host, but other ranks need a specific one");
}

/// Returns where this rank is reached. It is not where rank 0 listens or will listen, even if all
/// are on one host and that port was still free.
Socket listener_of(const SocketOptions& ranks) {
  const bool at_address = !ranks.address.empty();
  if (at_address && ranks.rank == 0) return listen_at(host_port_of(ranks.address));
  Socket held = hold_port(ranks.bind);
  if (at_address && has_port_of(held, host_port_of(ranks.address))) {
    const Socket left_to_rank_0 = std::exchange(held, hold_port(ranks.bind));
  }
  listen_on(held);
  return held;
}

std::shared_ptr<Links> connected(const SocketOptions& ranks) {
  const GlobalRank rank{ranks.rank};
  const Instant end = from_now(ranks.deadline);
  try {
    Reception reception(listener_of(ranks));
    Hello own{.job = ranks.job, .size = ranks.size, .rank = rank, .address = reception.address()};
    require_reachable(own.address);
    Session session = meet(ranks, reception, end);
    own.key = std::move(session.key);
    auto links = Links::make(std::move(own), std::move(session.addresses), std::move(reception));
    links->ask(ranks.interrupted);
    // Connects the ranks, so that they notice each other's end.
    const SocketCommunicator all(links, Group::world(ranks.size), rank,
                                 end - std::chrono::steady_clock::now(), 0);
    return links;
  } catch (const std::exception& caught) {
    throw Error(error_from(caught).within({.rank = rank}));
  }
}

/// Creates communicators. After PEER_FAILED, every call on every communicator throws; after any
/// other error only those on the one that it came from.
class SocketFabric final : public Fabric {
 public:
  SocketFabric(GlobalRank rank, std::int32_t size, std::chrono::nanoseconds deadline,
               std::shared_ptr<Links> links);

  GlobalRank rank() const override { return rank_; }
  std::int32_t world_size() const override { return size_; }
  /// See Links::ask().
  void ask(std::function<bool()> interrupted) { links_->ask(std::move(interrupted)); }
  /// Throws USAGE if this rank is not a member, or if a member is no rank of the job.
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  GlobalRank rank_;
  std::int32_t size_;
  std::chrono::nanoseconds deadline_;
  std::shared_ptr<Links> links_;
  /// Counts the communicators that each group has had; the same on all its members.
  std::map<std::vector<GlobalRank>, std::uint64_t> made_;
};

SocketFabric::SocketFabric(GlobalRank rank, std::int32_t size, std::chrono::nanoseconds deadline,
                           std::shared_ptr<Links> links)
    : rank_(rank), size_(size), deadline_(deadline), links_(std::move(links)) {}

std::shared_ptr<Communicator> SocketFabric::communicator(const Group& group) {
  std::ostringstream what;
  what << "communicator of group " << group;
  if (!group.rank_of(rank_)) {
    throw Error(Code::kUsage, what.str() + ": this rank is not a member", {.rank = rank_});
  }
  const auto is_rank = [this](GlobalRank one) { return one.value >= 0 && one.value < size_; };
  if (!std::ranges::all_of(group.members(), is_rank)) {
    throw Error(Code::kUsage, what.str() + ": a member is not a rank of the job", {.rank = rank_});
  }
  return std::make_shared<SocketCommunicator>(links_, group, rank_, deadline_,
                                              ++made_[group.members()]);
}

std::shared_ptr<SocketFabric> made_fabric(const SocketOptions& ranks,
                                          std::chrono::nanoseconds deadline) {
  require_sense(ranks);
  required_deadline(deadline);
  return std::make_shared<SocketFabric>(GlobalRank{ranks.rank}, ranks.size, deadline,
                                        connected(ranks));
}

}  // namespace

std::shared_ptr<Fabric> socket_fabric(const SocketOptions& ranks,
                                      std::chrono::nanoseconds deadline) {
  return made_fabric(ranks, deadline);
}

Job socket_job(const std::string& root, const SocketOptions& ranks, const JobOptions& options) {
  JobPorts ports = local_ports(root, options);
  SocketOptions joining = ranks;
  if (!joining.interrupted) joining.interrupted = options.interrupted;
  const auto fabric = made_fabric(joining, options.deadline);
  fabric->ask(options.interrupted);
  ports.fabric = fabric;
  if (options.data) ports.data = options.data(ports.fabric);
  return Job(std::move(ports));
}

}  // namespace reprise
