#include "sim/world/sim_network.hpp"

#include <algorithm>
#include <sstream>

#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/base/print.hpp"

namespace reprise::sim {
namespace {

std::string place(const Channel& channel, std::uint64_t sequence) {
  std::ostringstream text;
  text << "call #" << sequence << " of group " << channel.group;
  return text.str();
}

Error mismatch(const Channel& channel, std::uint64_t sequence, const Rendezvous& met,
               const CollectiveCall& call, GlobalRank rank) {
  return {Code::kCollectiveMismatch,
          place(channel, sequence) + ": rank " + std::to_string(rank.value) + " calls " +
              to_string(call) + ", rank " + std::to_string(met.first.value) + " called " +
              to_string(met.call),
          {.rank = rank}};
}

}  // namespace

SimNetwork::SimNetwork(Scheduler& scheduler, std::optional<std::uint64_t> deadline_after_ns,
                       Rate link)
    : scheduler_(scheduler), deadline_after_ns_(deadline_after_ns), link_(link) {}

std::shared_ptr<Channel> SimNetwork::channel(const Group& group, GlobalRank member) {
  const std::size_t occurrence = asked_[{group.members(), member}]++;
  auto& channels = channels_[group.members()];
  if (occurrence == channels.size()) {
    channels.push_back(std::make_shared<Channel>(group, channels_made_++));
  }
  return channels[occurrence];
}

std::vector<Bytes> SimNetwork::meet(RankContext& life, Channel& channel, const CollectiveCall& call,
                                    ByteSpan mine) {
  const auto member = channel.group.rank_of(life.rank());
  CHECK(member.has_value(), life.rank(), channel.group);
  const std::uint64_t sequence = channel.next[static_cast<std::size_t>(member->value)]++;
  const std::uint64_t begin_ns = scheduler_.now_ns();
  life.step(call.operation, channel.name,
            {sequence, call.root, call.reduction, mine.size(), hash_of(mine)});
  CollectivePart attendance(life.recorder(), life.rank(),
                            {call.operation, channel.name, mine.size(), begin_ns});
  if (channel.broken) throw *channel.broken;
  join(channel, *member, sequence, call, mine);
  attendance.join({channel.number, sequence});
  wait_for_all(life, channel, sequence);

  Rendezvous& met = channel.rounds.at(sequence);
  carry(life, met, mine);
  const bool last = ++met.left == channel.group.size();
  std::vector<Bytes> parts;
  parts.reserve(met.parts.size());
  for (auto& part : met.parts) {
    if (last) {
      parts.push_back(std::move(*part));
    } else {
      parts.push_back(*part);
    }
  }
  if (last) channel.rounds.erase(sequence);
  return parts;
}

Rendezvous& SimNetwork::join(Channel& channel, GroupRank member, std::uint64_t sequence,
                             const CollectiveCall& call, ByteSpan mine) {
  Rendezvous& met = channel.rounds[sequence];
  if (met.parts.empty()) {
    met.call = call;
    met.first = channel.group.member(member);
    met.parts.resize(channel.next.size());
  } else if (met.call != call) {
    const Error error = mismatch(channel, sequence, met, call, channel.group.member(member));
    break_channel(channel, error);
    throw error;
  }
  met.parts[static_cast<std::size_t>(member.value)] = Bytes(mine.begin(), mine.end());
  if (++met.arrived == channel.group.size()) scheduler_.notify_all(channel.waiting);
  return met;
}

void SimNetwork::wait_for_all(RankContext& life, Channel& channel, std::uint64_t sequence) {
  std::optional<std::uint64_t> deadline;
  if (deadline_after_ns_) deadline = scheduler_.now_ns() + *deadline_after_ns_;
  while (!channel.complete(sequence)) {
    break_if_member_gone(channel, sequence);
    if (channel.broken) throw *channel.broken;
    const Waiting what = {.operation = channel.rounds.at(sequence).call.operation,
                          .group = &channel.group,
                          .sequence = sequence};
    if (scheduler_.wait(channel.waiting, what, deadline) == Wake::kDeadline) {
      const Error error(Code::kDeadline,
                        place(channel, sequence) + ", " + std::string(what.operation) +
                            ": no answer in time from rank " +
                            reprise::join(channel.missing(sequence), " "),
                        {.rank = life.rank()});
      break_channel(channel, error);
    }
    scheduler_.require_alive();
  }
}

/// Waits until the rank's link has carried its part of the call. As in a ring, the bytes of the
/// other members come in, and those of the rank go out once, at the same time.
void SimNetwork::carry(RankContext& life, const Rendezvous& met, ByteSpan mine) {
  if (met.parts.size() == 1) return;
  std::uint64_t all = 0;
  for (const auto& part : met.parts) all += part->size();
  const auto own = static_cast<std::uint64_t>(mine.size());
  Resource& link = links_.try_emplace(life.rank(), link_).first->second;
  life.transfer(link, std::max(all - own, own));
}

void SimNetwork::break_if_member_gone(Channel& channel, std::uint64_t sequence) {
  for (const auto rank : channel.missing(sequence)) {
    const auto found = gone_.find(rank);
    if (found == gone_.end()) continue;
    break_channel(channel, Error(Code::kPeerFailed,
                                 place(channel, sequence) + ": rank " + std::to_string(rank.value) +
                                     ": " + found->second.what(),
                                 {.rank = rank}));
    return;
  }
}

void SimNetwork::break_channel(Channel& channel, const Error& why) {
  if (!channel.broken) channel.broken = why;
  scheduler_.notify_all(channel.waiting);
}

void SimNetwork::gone(GlobalRank rank, const Error& why) {
  gone_.emplace(rank, why);
  for (const auto& [members, channels] : channels_) {
    for (const auto& channel : channels) scheduler_.notify_all(channel->waiting);
  }
}

}  // namespace reprise::sim
