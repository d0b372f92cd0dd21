#include "core/adapters/mpi/mpi_session.hpp"

#include "core/adapters/mpi/mpi_call.hpp"
#include "core/adapters/mpi/mpi_wait.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "reprise/error.hpp"
#include "reprise/mesh.hpp"

namespace reprise {

MpiSession::MpiSession(std::uint64_t deadline_ns) : world_(std::make_unique<MpiWorld>()) {
  int provided = 0;
  int begun = 0;
  int ended = 0;
  check_mpi(MPI_Finalized(&ended), "MPI_Finalized", rank_);
  if (ended != 0) {
    throw Error(Code::kUsage,
                "MPI was finalized in this process and can't be initialized again: keep one job, "
                "or initialize MPI yourself before the first one");
  }
  check_mpi(MPI_Initialized(&begun), "MPI_Initialized", rank_);
  own_ = begun == 0;
  check_mpi(own_ ? MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided)
                 : MPI_Query_thread(&provided),
            "MPI_Init_thread", rank_);
  if (provided < MPI_THREAD_FUNNELED) {
    throw Error(Code::kUnsupported,
                "MPI was initialized without thread support: call MPI_Init_thread with "
                "MPI_THREAD_FUNNELED or higher instead of MPI_Init");
  }
  if (own_) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_.value), "MPI_Comm_rank", rank_);
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &world_size_), "MPI_Comm_size", rank_);
  enter_world(deadline_ns);
}

void MpiSession::enter_world(std::uint64_t deadline_ns) {
  require_deadline(deadline_ns);
  PosixClock clock;
  const Group all = Group::world(world_size_);
  CallDeadline deadline(clock, {.deadline_ns = deadline_ns}, all, rank_,
                        [] { return std::string("communicator of all ranks"); });
  try {
    finish_mpi(deadline, [this](MPI_Request* request) {
      return MPI_Comm_idup(MPI_COMM_WORLD, &world_->comm, request);
    });
  } catch (const Error&) {
    static_cast<void>(world_.release());  // MPI owns the communicator from here on
    throw;
  }
  check_mpi(MPI_Comm_set_errhandler(world_->comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler",
            rank_);
}

MpiSession::~MpiSession() {
  if (abandoned_) return;
  MPI_Comm_free(&world_->comm);
  if (own_) MPI_Finalize();
}

std::string MpiSession::node() const {
  std::string name(MPI_MAX_PROCESSOR_NAME, '\0');
  int length = 0;
  check_mpi(MPI_Get_processor_name(name.data(), &length), "MPI_Get_processor_name", rank_);
  name.resize(static_cast<std::size_t>(length));
  return name;
}

NodePlace MpiSession::node_place() const {
  MPI_Comm node = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(world_->comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
            "MPI_Comm_split_type", rank_);
  NodePlace place;
  check_mpi(MPI_Comm_rank(node, &place.rank), "MPI_Comm_rank", rank_);
  check_mpi(MPI_Comm_size(node, &place.of), "MPI_Comm_size", rank_);
  check_mpi(MPI_Comm_free(&node), "MPI_Comm_free", rank_);
  return place;
}

std::string mpi_version() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  return text.substr(0, text.find(','));
}

}  // namespace reprise
