#include "driver/ranks/rank_hardware.hpp"

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/cuda/cuda_info.hpp"
#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/nccl/own_host.hpp"
#include "core/adapters/nccl/transports.hpp"
#include "core/adapters/posix/host_device.hpp"
#include "reprise/error.hpp"
#include "sim/cuda/cuda_processor.hpp"

namespace reprise::driver {
namespace {

class HostHardware final : public RankHardware {
 public:
  explicit HostHardware(const RankBase& base)
      : device_(base.session.node(), base.session.rank().value) {}

  Fabric* data() override { return nullptr; }
  Device& device() override { return device_; }
  sim::Processor& processor() override { return sim::host_processor(); }
  std::optional<reports::RankGpu> gpu() const override { return std::nullopt; }
  bool abandoned() const override { return false; }
  bool close(bool /*all_well*/) override { return true; }

 private:
  HostDevice device_;
};

/// NCCL's log of a rank, from which its transports are read. A log that the user asked for in a
/// file stays theirs.
class NcclLog {
 public:
  NcclLog(const std::string& directory, GlobalRank rank)
      : file_(directory + "/nccl-" + std::to_string(rank.value) + ".log") {
    if (std::getenv("NCCL_DEBUG_FILE") != nullptr) {
      file_.clear();
      return;
    }
    ::setenv("NCCL_DEBUG", "INFO", 1);
    ::setenv("NCCL_DEBUG_SUBSYS", "INIT", 1);
    ::setenv("NCCL_DEBUG_FILE", file_.c_str(), 1);
  }
  /// Shows the warnings, which NCCL would otherwise have printed.
  ~NcclLog() {
    std::ifstream log(file_);
    for (std::string line; std::getline(log, line);) {
      if (line.find(" NCCL WARN ") != std::string::npos) std::cerr << line << '\n';
    }
  }
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;

  std::vector<std::string> transports() const {
    std::ifstream log(file_);
    std::stringstream text;
    text << log.rdbuf();
    return transports_in(text.str());
  }

 private:
  std::string file_;
};

class GpuHardware final : public RankHardware {
 public:
  GpuHardware(const RankBase& base, int device)
      : log_(base.log_directory, base.session.rank()),
        device_(base.session.node(), device,
                {.deadline_ns = base.deadline_ns / 2,
                 .peers = CudaPatience::Peers{&base.watch, Group::world(base.mpi.world_size()),
                                              base.session.rank()},
                 .clock = &base.clock}),
        processor_(sim::make_cuda_processor(device_)),
        fabric_(base.mpi, base.clock, {.deadline_ns = base.deadline_ns / 2, .watch = &base.watch},
                device) {}

  Fabric* data() override { return &fabric_; }
  Device& device() override { return device_; }
  sim::Processor& processor() override { return *processor_; }
  std::optional<reports::RankGpu> gpu() const override {
    const CudaIdentity& own = device_.identity();
    return reports::RankGpu{own.node, own.name, own.uuid, own.bus_id, log_.transports()};
  }
  bool abandoned() const override { return fabric_.abandoned() || device_.abandoned(); }
  /// Closes the fabric only if all ranks ended well. Otherwise, a rank could wait for a rank that
  /// ended badly and never closes its fabric.
  bool close(bool all_well) override {
    if (all_well) fabric_.close();
    return all_well && !abandoned();
  }

 private:
  NcclLog log_;  // before NCCL starts, which reads the settings once
  CudaDevice device_;
  std::unique_ptr<sim::Processor> processor_;
  NcclFabric fabric_;
};

/// Assigns the devices that a rank sees to the ranks of its node in round-robin order.
std::unique_ptr<RankHardware> gpu_hardware(const RankBase& base) {
  const auto devices = static_cast<std::int32_t>(cuda_devices().size());
  if (devices == 0) {
    throw Error(Code::kUnsupported, "no GPU: " + cuda_why_none(), {.rank = base.session.rank()});
  }
  const NodePlace place = base.session.node_place();
  const std::int32_t device = place.rank % devices;
  present_device_to_nccl(base.mpi, base.session.node(), device);
  return std::make_unique<GpuHardware>(base, device);
}

}  // namespace

std::unique_ptr<RankHardware> make_hardware(LaneKind lane, const RankBase& base) {
  if (lane == LaneKind::kGpu) return gpu_hardware(base);
  return std::make_unique<HostHardware>(base);
}

}  // namespace reprise::driver
