#include "core/adapters/nccl/nccl_communicator.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/caught.hpp"
#include "core/base/check.hpp"

namespace reprise {
namespace {

ncclRedOp_t op_of(Reduce how) {
  switch (how) {
    case Reduce::kMin:
      return ncclMin;
    case Reduce::kMax:
      return ncclMax;
    case Reduce::kSum:
      break;
  }
  return ncclSum;
}

void copy(ByteSpan from, MutableByteSpan to) { std::copy(from.begin(), from.end(), to.begin()); }

}  // namespace

NcclCommunicator::NcclCommunicator(std::shared_ptr<NcclLinks> links, std::shared_ptr<NcclLink> link)
    : links_(std::move(links)), link_(std::move(link)) {
  link_->set_idle(false);
}

// If a call did not finish, this rank and the others may disagree on which call comes next on the
// link. Such a link is not reused.
NcclCommunicator::~NcclCommunicator() { link_->set_idle(!within_call_); }

std::string NcclCommunicator::describe() const {
  std::ostringstream text;
  text << operation_ << " #" << sequence_ << " of group " << group();
  return text.str();
}

template <class Body>
auto NcclCommunicator::call(const char* operation, Body&& body) {
  links_->require_whole();
  operation_ = operation;
  ++sequence_;
  within_call_ = true;
  CallDeadline deadline = link_->deadline([this] { return describe(); });
  try {
    auto result = body(deadline);
    within_call_ = false;
    return result;
  } catch (const std::exception& caught) {
    throw Error(links_->fail(error_from(caught).within({.rank = link_->self()})));
  }
}

void NcclCommunicator::barrier() {
  call("barrier", [this](CallDeadline& deadline) {
    std::int64_t nothing = 0;
    reduce(Reduce::kSum, {&nothing, 1}, deadline);
    return nothing;
  });
}

std::vector<std::uint64_t> NcclCommunicator::gather_sizes(std::uint64_t mine,
                                                          CallDeadline& deadline) {
  constexpr std::size_t kEach = sizeof(std::uint64_t);
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(group().size()));
  const std::size_t bytes = sizes.size() * kEach;
  const std::size_t own = static_cast<std::size_t>(rank().value) * kEach;
  const auto staging = link_->staging(bytes);
  std::memcpy(staging.data() + own, &mine, kEach);
  link_->run(
      staging.subspan(own, kEach), own, bytes,
      [&](std::byte* device, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllGather(device + own, device, 1, ncclUint64, comm, stream);
      },
      deadline);
  std::memcpy(sizes.data(), staging.data(), bytes);
  return sizes;
}

// Broadcasts each part of a round from its member to all other members. Each part is received
// directly at its offset in the staging memory.
void NcclCommunicator::run_round(const Round& round, ByteSpan mine, CallDeadline& deadline) {
  const auto staging = link_->staging(round.bytes);
  ByteRange up;
  for (const auto& part : round.parts) {
    if (part.from != rank()) continue;
    up = {part.place, part.bytes.size};
    copy(mine.subspan(part.bytes.offset, part.bytes.size), staging.subspan(part.place));
  }
  link_->run(
      staging.subspan(up.offset, up.size), up.offset, round.bytes,
      [&](std::byte* device, ncclComm_t comm, cudaStream_t stream) {
        ncclResult_t result = ncclGroupStart();
        for (const auto& part : round.parts) {
          std::byte* const place = device + part.place;
          const ncclResult_t queued = ncclBroadcast(place, place, part.bytes.size, ncclUint8,
                                                    part.from.value, comm, stream);
          if (result == ncclSuccess && queued != ncclInProgress) result = queued;
        }
        const ncclResult_t ended = ncclGroupEnd();
        return result == ncclSuccess ? ended : result;
      },
      deadline);
}

std::vector<Bytes> NcclCommunicator::exchange(std::span<const std::uint64_t> sizes, ByteSpan mine,
                                              CallDeadline& deadline) {
  std::vector<Bytes> members(sizes.size());
  for (std::size_t member = 0; member < sizes.size(); ++member) {
    members[member].reserve(sizes[member]);
  }
  for (const auto& round : rounds_of(sizes, link_->limits().piece_bytes)) {
    run_round(round, mine, deadline);
    const auto staging = link_->staging(round.bytes);
    for (const auto& part : round.parts) {
      append(members[static_cast<std::size_t>(part.from.value)],
             staging.subspan(part.place, part.bytes.size));
    }
  }
  return members;
}

std::vector<Bytes> NcclCommunicator::all_gather(ByteSpan mine) {
  return call("all_gather", [&](CallDeadline& deadline) {
    return exchange(gather_sizes(mine.size(), deadline), mine, deadline);
  });
}

const std::byte* NcclCommunicator::all_gather_on_device(std::uint64_t share, ByteSpan mine) {
  CHECK(mine.size() <= share, mine.size(), share);
  const auto members = static_cast<std::uint64_t>(group().size());
  if (share == 0 || share > link_->device_memory().size() / members ||
      share > link_->limits().piece_bytes) {
    return nullptr;
  }
  return call("all_gather_on_device", [&](CallDeadline& deadline) {
    const std::uint64_t own = share * static_cast<std::uint64_t>(rank().value);
    link_->run(
        link_->within_reach(mine), own, 0,
        [&](std::byte* device, ncclComm_t comm, cudaStream_t stream) {
          return ncclAllGather(device + own, device, share, ncclUint8, comm, stream);
        },
        deadline);
    return link_->device_memory().data();
  });
}

Bytes NcclCommunicator::broadcast(GroupRank root, ByteSpan bytes) {
  CHECK(root.value >= 0 && root.value < group().size(), root, group());
  return call("broadcast", [&](CallDeadline& deadline) {
    const auto place = static_cast<std::size_t>(root.value);
    std::vector<std::uint64_t> sizes = gather_sizes(rank() == root ? bytes.size() : 0, deadline);
    return std::move(exchange(sizes, bytes, deadline)[place]);
  });
}

void NcclCommunicator::reduce(Reduce how, std::span<std::int64_t> numbers, CallDeadline& deadline) {
  const std::size_t piece = link_->limits().piece_bytes / sizeof(std::int64_t);
  for (std::size_t at = 0; at < numbers.size(); at += piece) {
    const auto some = numbers.subspan(at, std::min(piece, numbers.size() - at));
    const auto staging = link_->staging(some.size_bytes());
    copy(std::as_bytes(some), staging);
    link_->run(
        staging.first(some.size_bytes()), 0, some.size_bytes(),
        [&](std::byte* device, ncclComm_t comm, cudaStream_t stream) {
          return ncclAllReduce(device, device, some.size(), ncclInt64, op_of(how), comm, stream);
        },
        deadline);
    copy(staging.first(some.size_bytes()), std::as_writable_bytes(some));
  }
}

std::vector<std::int64_t> NcclCommunicator::all_reduce(Reduce how,
                                                       std::span<const std::int64_t> mine) {
  return call("all_reduce", [&](CallDeadline& deadline) {
    std::vector<std::int64_t> numbers(mine.begin(), mine.end());
    reduce(how, numbers, deadline);
    return numbers;
  });
}

}  // namespace reprise
