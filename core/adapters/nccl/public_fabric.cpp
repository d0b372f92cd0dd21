// Creates fabrics for programs outside this project.
#include <exception>
#include <memory>
#include <utility>

#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/posix/posix_clock.hpp"
#include "core/ports/call_deadline.hpp"
#include "reprise/error.hpp"
#include "reprise/fabric.hpp"

namespace reprise {
namespace {

/// Owns a fabric and what it needs. Frees what NCCL holds, unless the fabric is broken.
struct OwnedFabric {
  OwnedFabric(std::shared_ptr<Fabric> given, std::uint64_t deadline_ns, int device)
      : bootstrap(std::move(given)),
        fabric(*bootstrap, clock, {.deadline_ns = deadline_ns}, device) {}
  OwnedFabric(const OwnedFabric&) = delete;
  OwnedFabric& operator=(const OwnedFabric&) = delete;
  ~OwnedFabric() {
    try {
      fabric.close();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the process ends without it
    }
  }

  std::shared_ptr<Fabric> bootstrap;
  PosixClock clock;
  NcclFabric fabric;
};

}  // namespace

std::shared_ptr<Fabric> nccl_fabric(std::shared_ptr<Fabric> fabric, int device,
                                    std::chrono::nanoseconds deadline) {
  const auto owned =
      std::make_shared<OwnedFabric>(std::move(fabric), required_deadline(deadline), device);
  return {owned, &owned->fabric};
}

}  // namespace reprise
