#include "sim/world/collective.hpp"

#include <sstream>
#include <utility>

namespace reprise::sim {

namespace {

std::string name_of(const Group& group) {
  std::ostringstream text;
  text << group;
  return text.str();
}

}  // namespace

std::string to_string(const CollectiveCall& call) {
  std::string text(call.operation);
  if (call.operation == "broadcast") text += "(root " + std::to_string(call.root) + ")";
  if (call.operation == "all_gather_on_device") {
    text += "(share " + std::to_string(call.length) + ")";
  }
  if (call.operation == "all_reduce") {
    text +=
        "(kind " + std::to_string(call.reduction) + ", length " + std::to_string(call.length) + ")";
  }
  return text;
}

Channel::Channel(Group members, std::uint64_t channel_number)
    : group(std::move(members)),
      number(channel_number),
      name(name_of(group)),
      next(static_cast<std::size_t>(group.size()), 0) {}

bool Channel::complete(std::uint64_t sequence) const {
  return rounds.at(sequence).arrived == group.size();
}

std::vector<GlobalRank> Channel::missing(std::uint64_t sequence) const {
  std::vector<GlobalRank> ranks;
  const auto& parts = rounds.at(sequence).parts;
  for (std::size_t member = 0; member < parts.size(); ++member) {
    if (!parts[member]) ranks.push_back(group.members()[member]);
  }
  return ranks;
}

}  // namespace reprise::sim
