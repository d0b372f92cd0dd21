#include "core/adapters/mpi/mpi_communicator.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/adapters/mpi/mpi_call.hpp"
#include "core/adapters/mpi/mpi_wait.hpp"
#include "core/base/caught.hpp"
#include "core/base/check.hpp"

namespace reprise {
namespace {

// Tag of warn()'s messages, which are empty. All other messages on a group's MPI communicator are
// those of collective calls.
constexpr int kWarnTag = 7102;

MPI_Op op_of(Reduce how) {
  switch (how) {
    case Reduce::kMin:
      return MPI_MIN;
    case Reduce::kMax:
      return MPI_MAX;
    case Reduce::kSum:
      break;
  }
  return MPI_SUM;
}

}  // namespace

struct MpiCommunicator::Buffers {
  Bytes mine;
  Bytes all;
  std::vector<std::uint64_t> sizes;  // one per member; a broadcast uses only the root's
  std::vector<int> counts;
  std::vector<int> offsets;
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> result;
  std::uint64_t my_size = 0;
};

MpiCommunicator::MpiCommunicator(Setting setting, Group group, MPI_Comm comm)
    : setting_(setting),
      group_(std::move(group)),
      rank_(*group_.rank_of(setting.session.rank())),
      comm_(comm) {
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

MpiCommunicator::~MpiCommunicator() {
  // MPI_Comm_free is collective. Once any communicator has failed, another rank may never call
  // MPI_Comm_free, and this rank would wait for it forever.
  if (!setting_.session.abandoned()) MPI_Comm_free(&comm_);
}

std::string MpiCommunicator::describe() const {
  std::ostringstream text;
  text << operation_ << " #" << sequence_ << " of group " << group_;
  return text.str();
}

template <class Body>
auto MpiCommunicator::call(const char* operation, Body&& body) {
  if (broken_) throw Error(*broken_);
  operation_ = operation;
  ++sequence_;
  const MpiLimits& limits = setting_.limits;
  std::unique_ptr<Buffers> buffers;
  try {
    CallDeadline deadline(setting_.clock,
                          {.deadline_ns = limits.deadline_ns, .watch = limits.watch}, group_,
                          setting_.session.rank(), [this] { return describe(); });
    deadline_ = &deadline;
    buffers = std::make_unique<Buffers>();
    return body(*buffers);
  } catch (const std::exception& caught) {
    // The other ranks do not know of the error and may still use the communicator.
    broken_ = error_from(caught).within({.rank = setting_.session.rank()});
    setting_.session.abandon();
    static_cast<void>(buffers.release());  // MPI owns the buffers from here on
    throw Error(*broken_);
  }
}

void MpiCommunicator::finish(const Start& start) { finish_mpi(*deadline_, start); }

void MpiCommunicator::barrier() {
  call("barrier", [this](Buffers&) {
    finish([this](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  });
}

void MpiCommunicator::gather_sizes(Buffers& buffers) {
  buffers.my_size = buffers.mine.size();
  buffers.sizes.resize(static_cast<std::size_t>(group_.size()));
  finish([&](MPI_Request* request) {
    return MPI_Iallgather(&buffers.my_size, 1, MPI_UINT64_T, buffers.sizes.data(), 1, MPI_UINT64_T,
                          comm_, request);
  });
}

void MpiCommunicator::broadcast_pieces(int root, MutableByteSpan bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(static_cast<std::size_t>(
        std::min<std::uint64_t>(bytes.size(), setting_.limits.piece_bytes)));
    finish([&](MPI_Request* request) {
      return MPI_Ibcast(piece.data(), static_cast<int>(piece.size()), MPI_BYTE, root, comm_,
                        request);
    });
    bytes = bytes.subspan(piece.size());
  }
}

std::vector<Bytes> MpiCommunicator::all_gather(ByteSpan mine) {
  return call("all_gather", [&](Buffers& buffers) {
    buffers.mine.assign(mine.begin(), mine.end());
    gather_sizes(buffers);
    const auto total =
        std::accumulate(buffers.sizes.begin(), buffers.sizes.end(), std::uint64_t{0});
    return total > setting_.limits.piece_bytes ? gather_in_turn(buffers) : gather_at_once(buffers);
  });
}

// Receives from one member after another. Receiving all parts in one call would need displacements
// that exceed the range of MPI's int.
std::vector<Bytes> MpiCommunicator::gather_in_turn(Buffers& buffers) {
  std::vector<Bytes> parts;
  for (std::int32_t member = 0; member < group_.size(); ++member) {
    buffers.all.assign(buffers.sizes[static_cast<std::size_t>(member)], std::byte{0});
    if (member == rank_.value) buffers.all = buffers.mine;
    broadcast_pieces(member, buffers.all);
    parts.push_back(std::exchange(buffers.all, {}));
  }
  return parts;
}

std::vector<Bytes> MpiCommunicator::gather_at_once(Buffers& buffers) {
  buffers.counts.assign(buffers.sizes.begin(), buffers.sizes.end());
  buffers.offsets.assign(buffers.counts.size(), 0);
  std::partial_sum(buffers.counts.begin(), buffers.counts.end() - 1, buffers.offsets.begin() + 1);
  buffers.all.resize(static_cast<std::size_t>(buffers.offsets.back() + buffers.counts.back()));
  finish([&](MPI_Request* request) {
    return MPI_Iallgatherv(buffers.mine.data(), static_cast<int>(buffers.mine.size()), MPI_BYTE,
                           buffers.all.data(), buffers.counts.data(), buffers.offsets.data(),
                           MPI_BYTE, comm_, request);
  });
  std::vector<Bytes> parts;
  for (std::size_t member = 0; member < buffers.counts.size(); ++member) {
    const auto first = buffers.all.begin() + buffers.offsets[member];
    parts.emplace_back(first, first + buffers.counts[member]);
  }
  return parts;
}

Bytes MpiCommunicator::broadcast(GroupRank root, ByteSpan bytes) {
  CHECK(root.value >= 0 && root.value < group_.size(), root, group_);
  return call("broadcast", [&](Buffers& buffers) {
    buffers.my_size = bytes.size();
    finish([&](MPI_Request* request) {
      return MPI_Ibcast(&buffers.my_size, 1, MPI_UINT64_T, root.value, comm_, request);
    });
    if (rank_ == root) buffers.all.assign(bytes.begin(), bytes.end());
    buffers.all.resize(buffers.my_size);
    broadcast_pieces(root.value, buffers.all);
    return std::move(buffers.all);
  });
}

std::vector<std::int64_t> MpiCommunicator::all_reduce(Reduce how,
                                                      std::span<const std::int64_t> mine) {
  return call("all_reduce", [&](Buffers& buffers) {
    buffers.numbers.assign(mine.begin(), mine.end());
    buffers.result.resize(mine.size());
    const std::size_t piece = setting_.limits.piece_bytes / sizeof(std::int64_t);
    for (std::size_t at = 0; at < mine.size(); at += piece) {
      const auto count = static_cast<int>(std::min(piece, mine.size() - at));
      finish([&](MPI_Request* request) {
        return MPI_Iallreduce(buffers.numbers.data() + at, buffers.result.data() + at, count,
                              MPI_INT64_T, op_of(how), comm_, request);
      });
    }
    return std::move(buffers.result);
  });
}

// The messages are empty, so they need no buffer that would have to live until they are received.
// A member that can't be told waits until its deadline.
void MpiCommunicator::warn() {
  for (std::int32_t member = 0; member < group_.size(); ++member) {
    if (member == rank_.value) continue;
    MPI_Request sent = MPI_REQUEST_NULL;
    if (MPI_Isend(nullptr, 0, MPI_BYTE, member, kWarnTag, comm_, &sent) == MPI_SUCCESS) {
      MPI_Request_free(&sent);
    }
  }
}

bool MpiCommunicator::warned() {
  int there = 0;
  return MPI_Iprobe(MPI_ANY_SOURCE, kWarnTag, comm_, &there, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
         there != 0;
}

}  // namespace reprise
