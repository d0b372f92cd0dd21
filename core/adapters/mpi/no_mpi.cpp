// Replaces the rest of this folder in builds without MPI.
#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/base/check.hpp"
#include "reprise/error.hpp"
#include "reprise/job.hpp"

namespace reprise {

struct MpiWorld {};

MpiSession::MpiSession(std::uint64_t /*deadline_ns*/) {
  throw Error(Code::kUnsupported,
              "built without MPI; install one with its headers and build again");
}
MpiSession::~MpiSession() = default;

std::string MpiSession::node() const { return {}; }

NodePlace MpiSession::node_place() const { return {}; }

std::string mpi_version() { return {}; }

// Never called: the session's constructor throws, so there is no fabric.
MpiFabric::MpiFabric(MpiSession& session, Clock& clock, MpiLimits limits)
    : session_(session), clock_(clock), limits_(limits) {
  CHECK(false);
}

void MpiFabric::meet(const Group& group, const std::string& what) {
  throw Error(Code::kUnsupported, what + ": built without MPI", {.rank = group.members().front()});
}

std::shared_ptr<Communicator> MpiFabric::communicator(const Group& group) {
  throw Error(Code::kUnsupported, "built without MPI", {.rank = group.members().front()});
}

Job mpi_job(const std::string& /*root*/, const JobOptions& /*options*/) {
  throw Error(Code::kUnsupported,
              "built without MPI; install one with its headers and build again");
}

}  // namespace reprise
