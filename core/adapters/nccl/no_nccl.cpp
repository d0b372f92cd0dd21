// Replaces the rest of this folder in builds without NCCL.
#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/nccl/nccl_version.hpp"
#include "core/adapters/nccl/own_host.hpp"
#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise {
namespace {

[[noreturn]] void no_nccl() {
  throw Error(Code::kUnsupported, "built without NCCL; install it beside CUDA and build again");
}

}  // namespace

class NcclLinks {};

std::string nccl_version() { return {}; }

void present_to_nccl(GlobalRank /*rank*/, const NcclPose& /*pose*/) {}
void present_device_to_nccl(Fabric& /*fabric*/, const std::string& /*node*/, int /*device*/) {
  no_nccl();
}

NcclFabric::NcclFabric(Fabric& bootstrap, Clock& clock, NcclLimits limits, int device)
    : bootstrap_(bootstrap), clock_(clock), limits_(limits), device_(device) {
  no_nccl();
}
NcclFabric::~NcclFabric() = default;

std::shared_ptr<Communicator> NcclFabric::communicator(const Group& /*group*/) { no_nccl(); }
bool NcclFabric::abandoned() const { return false; }
void NcclFabric::close() {}

std::shared_ptr<Fabric> nccl_fabric(std::shared_ptr<Fabric> /*fabric*/, int /*device*/,
                                    std::chrono::nanoseconds /*deadline*/) {
  no_nccl();
}

}  // namespace reprise
