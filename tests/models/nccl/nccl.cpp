// Defines the calls of NCCL.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "tests/models/nccl/clique.hpp"
#include "tests/models/nccl/nccl_model.hpp"

namespace reprise::models {
namespace {

constexpr std::uint64_t kPolls = 3;  // under the schedule `latest`: before an operation begins
constexpr std::uint64_t kPausesBeforeFree = 50;

struct Environment {
  std::string host;
  bool loopback = false;
};

/// A thread's group call.
struct Group {
  int depth = 0;
  std::map<ncclComm_t, std::vector<Operation>> operations = {};
  std::map<ncclComm_t, std::shared_ptr<Queue>> queues = {};
  bool aborts = false;
  ncclResult_t failed = ncclSuccess;
};

struct Nccl {
  NcclSettings settings = {};
  std::map<int, Environment> environments = {};  ///< by process
  std::map<std::uint64_t, std::shared_ptr<Clique>> cliques = {};
  std::vector<std::unique_ptr<ncclComm>> comms = {};
  std::map<std::uint64_t, Group> groups = {};      ///< by thread
  std::map<int, const Kernel*> resident = {};      ///< by process: the kernel on the device
  std::map<int, std::uint64_t> lock_holders = {};  ///< by process: the thread that aborts
  std::uint64_t ids = 0;
};

Nccl state;  // NOLINT: the library is one per test

bool is_busy_with_peers(int process) {
  return std::any_of(state.comms.begin(), state.comms.end(), [&](const auto& comm) {
    if (comm->process != process) return false;
    const auto& kernels = comm->clique->kernels;
    return std::any_of(kernels.begin(), kernels.end(),
                       [&](const auto& kernel) { return kernel->awaits_peer(comm->rank); });
  });
}

bool may_await_peer() {
  const int process = caller_process();
  return is_busy_with_peers(process) ||
         std::any_of(state.comms.begin(), state.comms.end(), [&](const auto& comm) {
           return comm->process == process && !comm->gone && !comm->pending.empty() &&
                  comm->clique->ranks > 1;
         });
}

bool is_locked_by_another() {
  const auto found = state.lock_holders.find(caller_process());
  return found != state.lock_holders.end() && found->second != caller_thread();
}

std::string node_of(int process) {
  const auto number = static_cast<std::size_t>(process);
  return number < state.settings.nodes.size() ? state.settings.nodes[number] : "n0";
}

/// Begins a call. Returns what it returns if it may not go on.
ncclResult_t enter() {
  if (caller_is_dead()) return ncclInternalError;
  return call_fails() ? ncclUnhandledCudaError : ncclSuccess;
}

/// The same for a call that is legal only between operations.
ncclResult_t enter_between(ncclComm_t comm, const char* call) {
  const ncclResult_t entered = enter();
  if (entered != ncclSuccess) return entered;
  if (comm->gone) {
    add_fault(std::string(call) + " of a communicator that is gone");
    return ncclInvalidArgument;
  }
  if (!comm->unsettled) return ncclSuccess;
  add_fault(std::string(call) + " before ncclCommGetAsyncError has said success");
  return ncclInvalidUsage;
}

std::vector<Touched> touched_by(const std::vector<Operation>& operations) {
  std::vector<Touched> touched;
  for (const auto& operation : operations) {
    touched.push_back({operation.send, operation.bytes()});
    touched.push_back({operation.receive, operation.bytes()});
  }
  return touched;
}

/// True if this member has come to the operation that the settings let fail.
bool has_failed(const ncclComm& comm) {
  const AsyncFailure& async = state.settings.async;
  return async.process == comm.process && comm.operations >= async.operation;
}

/// Lets what was called for enter the stream: as a kernel that arrives, occupies the device until
/// all members have arrived, and leaves.
void launch(ncclComm& comm) {
  const auto clique = comm.clique;
  Kernel* const kernel = &clique->kernel(comm.operations - 1);
  Kernel::Part* const part = &kernel->parts[comm.rank];
  part->operations = std::exchange(comm.pending, {});
  part->device = comm.device;
  part->launched = true;
  part->lost = has_failed(comm);
  const auto touched = touched_by(part->operations);
  driver().queues.add(comm.queue, {.run =
                                       [clique, kernel, part, process = comm.process] {
                                         if (part->aborted) return;
                                         part->arrived = true;
                                         state.resident[process] = kernel;
                                         if (kernel->complete()) kernel->take_inputs(driver());
                                       },
                                   .waits_for = {},
                                   .touched = touched,
                                   .held =
                                       [part, process = comm.process] {
                                         return !part->aborted && state.resident.contains(process);
                                       }});
  driver().queues.add(
      comm.queue,
      {.run =
           [clique, kernel, part, member = comm.rank, process = comm.process] {
             if (!part->aborted) kernel->write_outputs(driver(), member);
             part->left = true;
             const auto on_device = state.resident.find(process);
             if (on_device != state.resident.end() && on_device->second == kernel) {
               state.resident.erase(on_device);
             }
           },
       .waits_for = {},
       .touched = touched,
       .held = [clique, kernel, part] { return !part->aborted && !kernel->complete(); }});
}

/// True if something that may happen at any poll happens at this one.
bool is_time(ncclComm& comm) {
  switch (driver().queues.schedule()) {
    case Schedule::kEager:
      return true;
    case Schedule::kLatest:
      return comm.polls >= kPolls;
    case Schedule::kRandom:
      break;
  }
  return driver().queues.below(2) == 0;
}

void start(ncclComm& comm, std::vector<Operation> operations, std::shared_ptr<Queue> queue) {
  comm.pending = std::move(operations);
  comm.queue = std::move(queue);
  comm.unsettled = true;
  comm.polls = 0;
  ++comm.operations;
  if (has_failed(comm) && !state.settings.async.late) return;
  if (driver().queues.schedule() == Schedule::kEager) launch(comm);
}

ncclResult_t progress(ncclComm& comm) {
  ++comm.polls;
  if (has_failed(comm)) {
    if (!state.settings.async.late || !comm.unsettled) return state.settings.async.result;
    if (!comm.pending.empty()) launch(comm);
    comm.unsettled = false;
    return ncclSuccess;
  }
  if (comm.state == ncclComm::State::kJoining) {
    const ncclResult_t verdict = comm.clique->verdict();
    if (verdict != ncclSuccess) return verdict;
    if (!is_time(comm)) return ncclInProgress;
    comm.state = ncclComm::State::kReady;
  }
  if (!comm.pending.empty()) {
    if (!is_time(comm)) return ncclInProgress;
    launch(comm);
    if (driver().queues.schedule() == Schedule::kRandom) return ncclInProgress;
  }
  if (comm.state == ncclComm::State::kFinalizing) {
    if (comm.clique->finalizing < comm.clique->ranks) return ncclInProgress;
    comm.state = ncclComm::State::kFinalized;
  }
  if (comm.unsettled && !is_time(comm)) return ncclInProgress;
  comm.unsettled = false;
  return ncclSuccess;
}

bool is_on_device(const ncclComm& comm, const std::byte* first, std::size_t bytes) {
  const auto* const allocation = driver().memory.at(first);
  return allocation != nullptr && allocation->kind == Allocations::Kind::kDevice &&
         allocation->device == comm.device &&
         first + bytes <= allocation->first + allocation->bytes;
}

ncclResult_t operate(ncclComm_t comm, Operation operation, const void* send, void* receive,
                     cudaStream_t stream) {
  Group& group = state.groups[caller_thread()];
  ncclResult_t result = enter_between(comm, "an operation");
  operation.send = static_cast<const std::byte*>(send);
  operation.receive = static_cast<std::byte*>(receive);
  const auto queue = queue_of(stream);
  const std::size_t parts =
      operation.kind == Operation::Kind::kAllGather ? comm->clique->ranks : std::size_t{1};
  if (result == ncclSuccess &&
      (!queue || !is_on_device(*comm, operation.send, operation.bytes()) ||
       !is_on_device(*comm, operation.receive, operation.bytes() * parts))) {
    add_fault("an operation of NCCL goes beyond memory of its device");
    result = ncclInvalidArgument;
  }
  if (result != ncclSuccess) {
    if (group.depth > 0) group.failed = result;
    return result;
  }
  if (group.depth > 0) {
    group.operations[comm].push_back(operation);
    group.queues[comm] = queue;
    return ncclInProgress;
  }
  start(*comm, {operation}, queue);
  return ncclInProgress;
}

/// Returns how many pauses pass between the signal of an abort and its first free.
std::uint64_t pauses_before_free() {
  switch (driver().queues.schedule()) {
    case Schedule::kEager:
      return 0;
    case Schedule::kLatest:
      return kPausesBeforeFree;
    case Schedule::kRandom:
      break;
  }
  return driver().queues.below(2 * kPausesBeforeFree);
}

/// Waits for all kernels of the process, with the driver's lock, as a free does.
void reclaim() {
  const int process = caller_process();
  for (std::uint64_t pauses = pauses_before_free(); pauses > 0; --pauses) pause_caller();
  state.lock_holders[process] = caller_thread();
  wait_while([process] { return is_busy_with_peers(process); },
             "ncclCommAbort waits for a kernel that waits for a peer");
  state.lock_holders.erase(process);
}

}  // namespace

void reset_nccl(const NcclSettings& settings) {
  state = {};
  state.settings = settings;
  set_device_waits({is_locked_by_another, may_await_peer});
}

void take_environment() {
  const auto taken = [](const char* name) {
    const char* const value = std::getenv(name);
    std::string text = value == nullptr ? "" : value;
    ::unsetenv(name);
    return text;
  };
  Environment& own = state.environments[caller_process()];
  own.host = taken("NCCL_HOSTID");
  own.loopback = taken("NCCL_SOCKET_IFNAME") == "lo";
  ::unsetenv("NCCL_NET");
}

std::size_t live_communicators() {
  return static_cast<std::size_t>(std::count_if(state.comms.begin(), state.comms.end(),
                                                [](const auto& comm) { return !comm->gone; }));
}

}  // namespace reprise::models

using namespace reprise::models;  // NOLINT: the calls below are NCCL's, in no namespace

ncclResult_t ncclGetVersion(int* version) {
  *version = 22'809;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const ncclResult_t entered = enter();
  if (entered != ncclSuccess) return entered;
  *id = {};
  const std::uint64_t number = ++state.ids;
  std::memcpy(id->internal, &number, sizeof number);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const ncclResult_t entered = enter();
  if (entered != ncclSuccess) return entered;
  if (config->blocking != 0) add_fault("a communicator that blocks has no deadline");
  std::uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  auto& clique = state.cliques[number];
  if (!clique) clique = std::make_shared<Clique>(Clique{.ranks = static_cast<std::size_t>(ranks)});
  const int process = caller_process();
  const Environment& own = state.environments[process];
  const std::string node = node_of(process);
  state.comms.push_back(
      std::make_unique<ncclComm>(ncclComm{.rank = static_cast<std::size_t>(rank),
                                          .process = process,
                                          .device = caller_device(),
                                          .host = own.host.empty() ? node : own.host,
                                          .node = node,
                                          .loopback = own.loopback,
                                          .clique = clique}));
  *made = state.comms.back().get();
  clique->members.push_back(*made);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const ncclResult_t entered = enter();
  if (entered != ncclSuccess) return entered;
  if (comm->gone) {
    add_fault("ncclCommGetAsyncError of a communicator that is gone");
    return ncclInvalidArgument;
  }
  *error = progress(*comm);
  if (*error == ncclInProgress) pause_caller();
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const ncclResult_t entered = enter_between(comm, "ncclCommFinalize");
  if (entered != ncclSuccess) return entered;
  comm->state = ncclComm::State::kFinalizing;
  comm->unsettled = true;
  comm->polls = 0;
  ++comm->clique->finalizing;
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ncclResult_t entered = enter_between(comm, "ncclCommDestroy");
  if (entered != ncclSuccess) return entered;
  if (comm->state != ncclComm::State::kFinalized) {
    add_fault("ncclCommDestroy before all members have finalized: it blocks");
  }
  comm->gone = true;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (caller_is_dead()) return ncclInternalError;
  if (comm->gone) {
    add_fault("ncclCommAbort of a communicator that is gone");
    return ncclInvalidArgument;
  }
  comm->gone = true;
  comm->pending.clear();
  for (const auto& kernel : comm->clique->kernels) {
    Kernel::Part& part = kernel->parts[comm->rank];
    if (!kernel->complete()) part.aborted = true;
  }
  Group& group = state.groups[caller_thread()];
  if (group.depth > 0) {
    group.aborts = true;
  } else {
    reclaim();
  }
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++state.groups[caller_thread()].depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  Group& open = state.groups[caller_thread()];
  if (--open.depth > 0) return ncclSuccess;
  Group group = std::exchange(open, {});
  if (caller_is_dead()) return ncclInternalError;
  if (group.aborts) reclaim();
  const ncclResult_t entered = enter();
  if (entered != ncclSuccess) return entered;
  if (group.failed != ncclSuccess) return group.failed;
  for (auto& [comm, operations] : group.operations) {
    start(*comm, std::move(operations), group.queues[comm]);
  }
  return group.operations.empty() ? ncclSuccess : ncclInProgress;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclInvalidUsage:
      return "invalid usage";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "an error of the model of NCCL";
  }
}

const char* ncclGetLastError(ncclComm_t /*comm*/) { return ""; }

ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return operate(comm, {.kind = Operation::Kind::kAllGather, .count = count, .type = type}, send,
                 receive, stream);
}

ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  return operate(comm,
                 {.kind = Operation::Kind::kBroadcast, .count = count, .type = type, .root = root},
                 send, receive, stream);
}

ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return operate(
      comm, {.kind = Operation::Kind::kAllReduce, .count = count, .type = type, .reduction = op},
      send, receive, stream);
}
