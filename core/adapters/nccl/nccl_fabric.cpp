#include "core/adapters/nccl/nccl_fabric.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <utility>

#include "core/adapters/cuda/cuda_stream.hpp"
#include "core/adapters/nccl/nccl_call.hpp"
#include "core/adapters/nccl/nccl_communicator.hpp"
#include "core/adapters/nccl/nccl_links.hpp"
#include "core/base/caught.hpp"
#include "core/base/check.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

std::string making(const Group& group) {
  std::ostringstream text;
  text << "communicator of group " << group;
  return text.str();
}

/// How making a member's part of a link ended; the least of the members' decides.
enum class Part : std::int64_t { kFailed, kNoRoom, kMade };

Part part_of(const std::optional<Error>& failure) {
  if (!failure) return Part::kMade;
  return failure->code() == Code::kNoSpace ? Part::kNoRoom : Part::kFailed;
}

// Returns an id for the new NCCL communicator. The group's first member makes the id and sends it
// to all. If the first member cannot make an id, it sends an empty message, so that the other
// members learn of the failure at once.
ncclUniqueId shared_id(Communicator& members, const CallDeadline& deadline) {
  ncclUniqueId id = {};
  ncclResult_t made = ncclSuccess;
  Bytes mine;
  if (members.rank() == GroupRank{0}) {
    made = ncclGetUniqueId(&id);
    const auto bytes = std::as_bytes(std::span(&id, 1));
    if (made == ncclSuccess) mine.assign(bytes.begin(), bytes.end());
  }
  const Bytes sent = members.broadcast({0}, mine);
  check_nccl(made, deadline);
  if (sent.size() != sizeof(id)) {
    throw Error(Code::kPeerFailed, deadline.describe() + ": its first member can't create it",
                {.rank = deadline.self()});
  }
  std::memcpy(&id, sent.data(), sizeof(id));
  return id;
}

}  // namespace

NcclFabric::NcclFabric(Fabric& bootstrap, Clock& clock, NcclLimits limits, int device)
    : bootstrap_(bootstrap),
      clock_(clock),
      limits_(limits),
      device_(device),
      links_(std::make_shared<NcclLinks>()) {
  require_deadline(limits.deadline_ns);
  CHECK(limits.piece_bytes >= sizeof(std::int64_t), limits.piece_bytes);
  const CudaScope usable(device);
}

NcclFabric::~NcclFabric() = default;

bool NcclFabric::abandoned() const { return links_->broken().has_value(); }

std::shared_ptr<Communicator> NcclFabric::introduced(const Group& group) {
  auto& members = introduced_[group.members()];
  if (!members) members = bootstrap_.communicator(group);
  return members;
}

// Returns the first of the group's links that is idle on every member; null if there is none. All
// members have created the same links in the same order, but a link may be idle on one member and
// still in use on another. A member whose fabric is broken takes part, so that nobody waits for it.
std::shared_ptr<NcclLink> NcclFabric::idle_link(const Group& group, Communicator& members) {
  std::vector<std::shared_ptr<NcclLink>> known;
  std::vector<std::int64_t> idle = {links_->broken() ? 0 : 1};
  for (const auto& link : links_->all()) {
    if (link->group() != group) continue;
    known.push_back(link);
    idle.push_back(link->idle() ? 1 : 0);
  }
  const auto agreed = members.all_reduce(Reduce::kMin, idle);
  if (agreed.front() == 0) {
    throw Error(Code::kPeerFailed, making(group) + ": the fabric of a member is broken",
                {.rank = rank()});
  }
  const auto first = std::find(agreed.begin() + 1, agreed.end(), 1);
  if (first == agreed.end()) return nullptr;
  return known[static_cast<std::size_t>(first - agreed.begin() - 1)];
}

// Makes this member's part of a link. A member that can't says so to the others, who would wait for
// it otherwise. Returns null on all members if some of them have no room for it.
std::shared_ptr<NcclLink> NcclFabric::own_part(const Group& group,
                                               const std::shared_ptr<Communicator>& members) {
  std::shared_ptr<NcclLink> link;
  std::optional<Error> failure;
  try {
    link = std::make_shared<NcclLink>(
        NcclLink::Setting{
            .clock = clock_, .limits = limits_, .device = device_, .members = members},
        group, rank());
    links_->add(link);
    link->allocate();
  } catch (const std::exception& caught) {
    failure = error_from(caught);
  }
  const auto mine = static_cast<std::int64_t>(part_of(failure));
  const auto all = static_cast<Part>(members->all_reduce(Reduce::kMin, {&mine, 1}).front());
  if (all == Part::kMade) return link;
  if (all == Part::kNoRoom) {
    if (!link) return nullptr;
    CallDeadline deadline = link->deadline([&] { return making(group); });
    link->await_memory(deadline);
    links_->remove(link);
    return nullptr;
  }
  if (failure) throw Error(*failure);
  throw Error(Code::kPeerFailed, making(group) + ": a member can't create its part of it",
              {.rank = rank()});
}

std::shared_ptr<NcclLink> NcclFabric::new_link(const Group& group,
                                               const std::shared_ptr<Communicator>& members) {
  auto link = own_part(group, members);
  if (!link) return nullptr;
  CallDeadline deadline = link->deadline([&] { return making(group); });
  link->connect(shared_id(*members, deadline), deadline);
  return link;
}

std::shared_ptr<NcclLink> NcclFabric::link_of(const Group& group) {
  try {
    const auto members = introduced(group);
    auto link = idle_link(group, *members);
    return link ? link : new_link(group, members);
  } catch (const std::exception& caught) {
    throw Error(links_->fail(error_from(caught)));
  }
}

std::shared_ptr<Communicator> NcclFabric::communicator(const Group& group) {
  if (!group.rank_of(rank())) {
    throw Error(Code::kUsage, making(group) + ": this rank is not a member", {.rank = rank()});
  }
  auto link = link_of(group);
  if (!link) {
    throw Error(Code::kNoSpace,
                making(group) +
                    ": a member has no room for it on its device or in pinned memory; " +
                    std::to_string(limits_.piece_bytes) + " bytes of each are needed",
                {.rank = rank()});
  }
  return std::make_shared<NcclCommunicator>(links_, std::move(link));
}

// Closing a link waits for its members. All ranks close their links in the order of creation, so no
// ranks wait for each other in a cycle.
void NcclFabric::close() {
  if (abandoned()) return;
  for (const auto& link : links_->all()) {
    CHECK(link->idle(), link->group());
    CallDeadline deadline = link->deadline([&] { return "end of the " + making(link->group()); });
    try {
      introduced(link->group())->barrier();
      link->close(deadline);
    } catch (const std::exception& caught) {
      throw Error(links_->fail(error_from(caught)));
    }
  }
  links_->clear();
}

}  // namespace reprise
