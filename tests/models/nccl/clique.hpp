#pragma once
// The members of a communicator and their kernels.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/bytes.hpp"
#include "tests/models/cuda/driver.hpp"
#include "tests/models/nccl/vendor/nccl.h"

namespace reprise::models {

/// One operation, as one member has called it.
struct Operation {
  enum class Kind : std::uint8_t { kAllGather, kBroadcast, kAllReduce };
  Kind kind = Kind::kAllGather;
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int root = 0;
  ncclRedOp_t reduction = ncclSum;
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;

  std::size_t bytes() const;
  /// True if the operation of another member can be the same one.
  bool matches(const Operation& other) const;
};

/// A kernel that all members launch together, with one operation or those of one group call.
struct Kernel {
  struct Part {
    std::vector<Operation> operations;
    std::vector<Bytes> sent;  ///< of each operation; taken when the last member arrives
    int device = 0;
    bool launched = false;
    bool arrived = false;  ///< true once it occupies the device
    bool aborted = false;
    bool lost = false;  ///< true if it never ends
    bool left = false;
  };
  std::vector<Part> parts;  ///< by member

  /// True if all members are there with the same operations.
  bool complete() const;
  /// True if this member's part may have to wait for another member.
  bool awaits_peer(std::size_t member) const;
  void take_inputs(Driver driver);
  void write_outputs(Driver driver, std::size_t member) const;
};

struct Clique;

}  // namespace reprise::models

/// One member of a communicator.
struct ncclComm {
  enum class State : std::uint8_t { kJoining, kReady, kFinalizing, kFinalized };

  std::size_t rank = 0;
  int process = 0;
  int device = 0;  ///< number on the machine
  std::string host = {};
  std::string node = {};
  bool loopback = false;
  std::shared_ptr<reprise::models::Clique> clique = {};
  State state = State::kJoining;
  bool gone = false;             ///< destroyed or aborted
  bool unsettled = true;         ///< until ncclCommGetAsyncError has said success
  std::uint64_t polls = 0;       ///< since the last call
  std::uint64_t operations = 0;  ///< number of operations and groups that were called for
  /// The operations of the last call, until they enter the stream.
  std::vector<reprise::models::Operation> pending = {};
  std::shared_ptr<reprise::models::Queue> queue = {};
};

namespace reprise::models {

/// All members of one communicator.
struct Clique {
  std::size_t ranks = 0;
  std::vector<ncclComm*> members = {};  ///< in the order in which they came
  std::vector<std::unique_ptr<Kernel>> kernels = {};
  std::size_t finalizing = 0;

  /// Returns what stands against the members that have come: ncclSuccess, or InProgress while some
  /// are missing.
  ncclResult_t verdict() const;
  Kernel& kernel(std::uint64_t number);
};

}  // namespace reprise::models
