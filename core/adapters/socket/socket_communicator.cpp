#include "core/adapters/socket/socket_communicator.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/ports/reduced.hpp"

namespace reprise {
namespace {

constexpr std::array<const char*, 5> kNames = {"communicator", "barrier", "all_gather", "broadcast",
                                               "all_reduce"};
constexpr unsigned kDetailBits = 32;

std::string name_of(std::uint64_t what) {
  const std::uint64_t operation = what >> kDetailBits;
  return operation < kNames.size() ? kNames[operation] : "an unknown operation";
}

Channel channel_of(const Group& group, std::uint64_t name) {
  Hasher hash;
  hash.number(name);
  for (const auto member : group.members()) {
    hash.number(static_cast<std::uint64_t>(member.value));
  }
  return hash.digest();
}

}  // namespace

SocketCommunicator::SocketCommunicator(std::shared_ptr<Links> links, Group group, GlobalRank self,
                                       std::chrono::nanoseconds deadline, std::uint64_t name)
    : links_(std::move(links)),
      group_(std::move(group)),
      self_(self),
      rank_(group_.rank_of(self).value()),
      deadline_(deadline),
      channel_(channel_of(group_, name)) {
  std::vector<GlobalRank> ahead;
  for (std::int32_t far = 1; far < group_.size(); far *= 2) {
    ahead.push_back(member_at(rank_.value + far));
  }
  links_->open(channel_, std::move(ahead));
  exchange(Operation::kBegin, {});
}

GlobalRank SocketCommunicator::member_at(std::int32_t place) const {
  return group_.member({(place + group_.size()) % group_.size()});
}

SharedBytes SocketCommunicator::receive(GlobalRank from, const CallId& call, Instant end) {
  Links::Message message = links_->receive(from, channel_, end);
  if (message.call == call) return std::make_shared<Bytes>(std::move(message.bytes));
  std::ostringstream text;
  text << "rank " << from << " called " << name_of(message.call.what) << " #"
       << message.call.sequence;
  if (name_of(message.call.what) == name_of(call.what)) text << " with different arguments";
  throw Error(Code::kCollectiveMismatch, text.str());
}

/// Returns the bytes of the member at this place, of the one before it, and so on.
std::vector<SharedBytes> SocketCommunicator::gather(const CallId& call, ByteSpan mine,
                                                    Instant end) {
  std::vector<SharedBytes> have = {std::make_shared<Bytes>(mine.begin(), mine.end())};
  for (std::int32_t far = 1; far < group_.size(); far *= 2) {
    const auto count = static_cast<std::size_t>(std::min(far, group_.size() - far));
    links_->send(member_at(rank_.value + far), channel_, call, std::span(have).first(count));
    const GlobalRank behind = member_at(rank_.value - far);
    for (std::size_t i = 0; i < count; ++i) have.push_back(receive(behind, call, end));
  }
  links_->flush(end);
  return have;
}

std::vector<Bytes> SocketCommunicator::exchange(Operation operation, ByteSpan mine,
                                                std::uint32_t detail) {
  if (broken_) throw Error(*broken_);
  const CallId call{.what = static_cast<std::uint64_t>(operation) << kDetailBits | detail,
                    .sequence = sequence_++};
  try {
    if (mine.size() > kDataBytesMax) throw Error(Code::kUsage, "more than 64 GiB in one call");
    const std::vector<SharedBytes> have = gather(call, mine, from_now(deadline_));
    std::vector<Bytes> parts(have.size());
    for (std::size_t back = 0; back < have.size(); ++back) {
      const auto place = (static_cast<std::size_t>(rank_.value) + have.size() - back) % have.size();
      parts[place] = std::move(*have[back]);
    }
    return parts;
  } catch (const std::exception& caught) {
    links_->close(channel_);
    const Error error = error_from(caught);
    std::ostringstream text;
    text << name_of(call.what);
    if (operation != Operation::kBegin) text << " #" << call.sequence;
    text << " of group " << group_ << ": " << error.message();
    broken_ = Error(error.code(), text.str(), {.rank = self_});
    throw Error(*broken_);
  }
}

void SocketCommunicator::barrier() { exchange(Operation::kBarrier, {}); }

std::vector<Bytes> SocketCommunicator::all_gather(ByteSpan mine) {
  return exchange(Operation::kAllGather, mine);
}

Bytes SocketCommunicator::broadcast(GroupRank root, ByteSpan bytes) {
  CHECK(root.value >= 0 && root.value < group_.size(), root, group_);
  const auto place = static_cast<std::uint32_t>(root.value);
  auto all = exchange(Operation::kBroadcast, root == rank_ ? bytes : ByteSpan(), place);
  return std::move(all[place]);
}

std::vector<std::int64_t> SocketCommunicator::all_reduce(Reduce how,
                                                         std::span<const std::int64_t> mine) {
  std::vector<std::int64_t> result(mine.begin(), mine.end());
  const auto all =
      exchange(Operation::kAllReduce, std::as_bytes(mine), static_cast<std::uint32_t>(how));
  for (std::int32_t place = 0; place < group_.size(); ++place) {
    const Bytes& values = all[static_cast<std::size_t>(place)];
    if (values.size() != mine.size_bytes()) {
      broken_ = Error(Code::kCollectiveMismatch, "ranks reduce different numbers of values",
                      {.rank = self_});
      throw Error(*broken_);
    }
    if (place == rank_.value) continue;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const auto other = load_le<std::int64_t>(ByteSpan(values).subspan(i * sizeof(std::int64_t)));
      result[i] = reduced(how, result[i], other);
    }
  }
  return result;
}

}  // namespace reprise
