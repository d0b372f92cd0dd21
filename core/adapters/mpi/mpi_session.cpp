#include "core/adapters/mpi/mpi_session.hpp"

#include "core/adapters/mpi/mpi_call.hpp"

namespace reprise {

MpiSession::MpiSession() {
  int provided = 0;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread",
            rank_);
  if (provided < MPI_THREAD_FUNNELED) {
    throw Error(Code::kUnsupported, "this MPI cannot be used by a program with threads");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank_.value), "MPI_Comm_rank", rank_);
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &world_size_), "MPI_Comm_size", rank_);
}

MpiSession::~MpiSession() {
  if (!abandoned_) MPI_Finalize();
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
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
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
