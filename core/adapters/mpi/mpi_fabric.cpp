#include "core/adapters/mpi/mpi_fabric.hpp"

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "core/adapters/mpi/mpi_call.hpp"
#include "core/adapters/mpi/mpi_communicator.hpp"
#include "core/adapters/mpi/mpi_wait.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr int kTag = 7100;  // tag of MPI_Comm_create_group's own messages
// Tag of meet()'s messages, which precede those of MPI_Comm_create_group.
constexpr int kMeetTag = 7101;

// Owns an MPI_Group of global ranks.
class RankGroup {
 public:
  RankGroup(MPI_Comm all, const Group& group, GlobalRank self) {
    MPI_Group world = MPI_GROUP_NULL;
    check_mpi(MPI_Comm_group(all, &world), "MPI_Comm_group", self);
    std::vector<int> ranks;
    for (const auto member : group.members()) ranks.push_back(member.value);
    const int result = MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group_);
    MPI_Group_free(&world);
    check_mpi(result, "MPI_Group_incl", self);
  }
  ~RankGroup() { MPI_Group_free(&group_); }
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  MPI_Group get() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

}  // namespace

MpiFabric::MpiFabric(MpiSession& session, Clock& clock, MpiLimits limits)
    : session_(session), clock_(clock), limits_(limits) {
  require_deadline(limits.deadline_ns);
  constexpr auto kPieceMost = static_cast<std::uint64_t>(std::numeric_limits<int>::max());
  if (limits.piece_bytes < sizeof(std::int64_t) || limits.piece_bytes > kPieceMost) {
    throw Error(Code::kUsage, "pieces of " + std::to_string(limits.piece_bytes) +
                                  " bytes: MPI takes 8 to " + std::to_string(kPieceMost));
  }
}

// In round i, each member sends a message to the member 2^i places ahead. A message says that its
// sender has arrived. It says the same of every member that the sender has heard from, directly or
// indirectly. After log2(n) rounds, every member has heard from all others. The messages are empty,
// so a failure leaves no buffer in use.
void MpiFabric::meet(const Group& group, const std::string& what) {
  CallDeadline deadline(clock_, {.deadline_ns = limits_.deadline_ns, .watch = limits_.watch}, group,
                        rank(), [&what] { return what; });
  const std::int32_t own = group.rank_of(rank())->value;
  const std::int32_t size = group.size();
  MPI_Comm comm = session_.world().comm;
  const auto peer = [&](std::int32_t place) { return group.member({place % size}).value; };
  for (std::int32_t ahead = 1; ahead < size; ahead *= 2) {
    MPI_Request sent = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(nullptr, 0, MPI_BYTE, peer(own + ahead), kMeetTag, comm, &sent), what,
              rank());
    finish_mpi(deadline, [&](MPI_Request* request) {
      return MPI_Irecv(nullptr, 0, MPI_BYTE, peer(own + size - ahead), kMeetTag, comm, request);
    });
    finish_mpi(deadline, [&](MPI_Request* request) {
      *request = sent;
      return MPI_SUCCESS;
    });
  }
}

std::shared_ptr<Communicator> MpiFabric::communicator(const Group& group) {
  std::ostringstream what;
  what << "communicator of group " << group;
  if (!group.rank_of(rank())) {
    throw Error(Code::kUsage, what.str() + ": this rank is not a member", {.rank = rank()});
  }
  try {
    meet(group, what.str());
    MPI_Comm all = session_.world().comm;
    const RankGroup ranks(all, group, rank());
    MPI_Comm comm = MPI_COMM_NULL;
    check_mpi(MPI_Comm_create_group(all, ranks.get(), kTag, &comm), what.str(), rank());
    return std::make_shared<MpiCommunicator>(
        MpiCommunicator::Setting{.session = session_, .clock = clock_, .limits = limits_}, group,
        comm);
  } catch (const std::exception&) {
    // Other ranks may already have created the communicator. They may be blocked in a collective
    // call on it and wait for this rank.
    session_.abandon();
    throw;
  }
}

}  // namespace reprise
