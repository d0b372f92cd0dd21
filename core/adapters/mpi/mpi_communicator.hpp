#pragma once
// Implements a communicator with MPI. Only this folder's sources include this header.

#include <mpi.h>

#include <functional>
#include <optional>
#include <string>

#include "core/adapters/mpi/mpi_fabric.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/ports/clock.hpp"
#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise {

class CallDeadline;

/// During a call, MPI reads and writes buffers on the heap. If the call fails, the buffers are
/// never freed: the operation is still pending, and MPI may write to them when a late rank arrives.
class MpiCommunicator final : public Communicator {
 public:
  struct Setting {
    MpiSession& session;
    Clock& clock;
    MpiLimits limits;
  };

  /// Takes ownership of `comm`. Its ranks must be those of the group.
  MpiCommunicator(Setting setting, Group group, MPI_Comm comm);
  ~MpiCommunicator() override;
  MpiCommunicator(const MpiCommunicator&) = delete;
  MpiCommunicator& operator=(const MpiCommunicator&) = delete;

  const Group& group() const override { return group_; }
  GroupRank rank() const override { return rank_; }
  void barrier() override;
  std::vector<Bytes> all_gather(ByteSpan mine) override;
  Bytes broadcast(GroupRank root, ByteSpan bytes) override;
  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override;
  void warn() override;
  bool warned() override;

 private:
  using Start = std::function<int(MPI_Request*)>;
  struct Buffers;

  // Counts the call and runs `body`. If `body` throws, the communicator is broken from then on.
  // Throws if the communicator was already broken.
  template <class Body>
  auto call(const char* operation, Body&& body);
  // Starts one MPI operation and waits for it with finish_mpi.
  void finish(const Start& start);
  std::string describe() const;

  void gather_sizes(Buffers& buffers);
  void broadcast_pieces(int root, MutableByteSpan bytes);
  std::vector<Bytes> gather_in_turn(Buffers& buffers);
  std::vector<Bytes> gather_at_once(Buffers& buffers);

  Setting setting_;
  Group group_;
  GroupRank rank_;
  MPI_Comm comm_;
  const char* operation_ = "";
  std::uint64_t sequence_ = 0;
  CallDeadline* deadline_ = nullptr;  ///< deadline and watch of the current call
  std::optional<Error> broken_;
};

}  // namespace reprise
