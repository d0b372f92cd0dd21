#include "core/agree/group_claims.hpp"

#include <map>

#include "core/agree/peer_wire.hpp"
#include "core/base/print.hpp"

namespace reprise {
namespace {

std::string text_of(const Group& group) { return "{" + join(group.members(), " ") + "}"; }

[[noreturn]] void refuse(GlobalRank rank, const GroupClaim& claim, const std::string& why) {
  throw Error(Code::kLayoutMismatch,
              "rank " + std::to_string(rank.value) + " takes its " + claim.name + " for " +
                  text_of(claim.group) + ", " + why,
              {.rank = rank});
}

void judge_against_metadata(GlobalRank rank, const GroupClaim& claim) {
  if (claim.group.size() != claim.laid_out.size()) {
    refuse(rank, claim,
           "of " + std::to_string(claim.group.size()) +
               " ranks, but according to its metadata it has " +
               std::to_string(claim.laid_out.size()) + ": " + text_of(claim.laid_out));
  }
  if (claim.group != claim.laid_out) {
    refuse(rank, claim, "but according to its metadata it is " + text_of(claim.laid_out));
  }
  if (!claim.group.rank_of(rank)) refuse(rank, claim, "of which it is not a member");
}

/// Assigns a number to each distinct list of ranks. Two groups are equal if their lists have the
/// same number. Comparing the lists again for every member would be slow.
class Lists {
 public:
  std::size_t number_of(const Group& group) {
    return numbers_.emplace(group.members(), numbers_.size()).first->second;
  }

 private:
  std::map<std::vector<GlobalRank>, std::size_t> numbers_;
};

/// One rank's claim about one group. `list` is the number that Lists assigned to the group's list
/// of members.
struct Idea {
  const GroupClaim* claim = nullptr;
  std::size_t list = 0;
};

void judge_between(const std::map<GlobalRank, std::map<std::string, Idea>>& all, GlobalRank rank,
                   const std::string& name, const Idea& mine) {
  for (const GlobalRank member : mine.claim->group.members()) {
    const auto peer = all.find(member);
    const std::string who = "rank " + std::to_string(member.value);
    if (peer == all.end()) refuse(rank, *mine.claim, "and " + who + " does not take part in this");
    const auto theirs = peer->second.find(name);
    if (theirs == peer->second.end()) {
      refuse(rank, *mine.claim, "and " + who + " has no such group");
    }
    if (theirs->second.list != mine.list) {
      refuse(rank, *mine.claim,
             "and " + who + " takes it to be " + text_of(theirs->second.claim->group));
    }
  }
}

// --- encoding of messages -----------------------------------------------------------------------

void put(Bytes& wire, const Group& group) {
  append_le(wire, static_cast<std::uint64_t>(group.size()));
  for (const auto rank : group.members()) append_le(wire, rank.value);
}

Bytes encode(const std::vector<GroupClaim>& claims) {
  Bytes wire;
  for (const auto& claim : claims) {
    put_text(wire, claim.name);
    put(wire, claim.group);
    put(wire, claim.laid_out);
  }
  return wire;
}

Group take_group(PeerWire& wire) {
  std::vector<GlobalRank> members;
  for (auto left = wire.count(sizeof(std::int32_t)); left > 0; --left) {
    members.push_back({wire.number<std::int32_t>()});
  }
  return Group(std::move(members));
}

std::vector<GroupClaim> decode(ByteSpan bytes) {
  PeerWire wire(bytes, "a list of groups");
  std::vector<GroupClaim> claims;
  while (!wire.empty()) {
    std::string name = wire.text();
    Group group = take_group(wire);
    claims.push_back({std::move(name), std::move(group), take_group(wire)});
  }
  return claims;
}

}  // namespace

void judge_groups(std::span<const GroupIdeas> ideas) {
  for (const auto& [rank, claims] : ideas) {
    for (const auto& claim : claims) judge_against_metadata(rank, claim);
  }
  Lists lists;
  std::map<GlobalRank, std::map<std::string, Idea>> all;
  for (const auto& [rank, claims] : ideas) {
    auto& own = all[rank];
    for (const auto& claim : claims) own[claim.name] = {&claim, lists.number_of(claim.group)};
  }
  for (const auto& [rank, claims] : ideas) {
    for (const auto& claim : claims) {
      judge_between(all, rank, claim.name, all.at(rank).at(claim.name));
    }
  }
}

std::vector<GroupIdeas> gather_groups(Communicator& group,
                                      const std::function<std::vector<GroupClaim>()>& claims) {
  const auto all = agree_on(group, [&] { return encode(claims()); });
  std::vector<GroupIdeas> ideas;
  for (std::int32_t r = 0; r < group.group().size(); ++r) {
    ideas.push_back({group.group().member({r}), decode(all[static_cast<std::size_t>(r)])});
  }
  return ideas;
}

}  // namespace reprise
