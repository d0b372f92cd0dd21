// Tests that ranks find out which of them share a device, whatever their launcher shows them, and
// that NCCL then takes them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/adapters/cuda/cuda_info.hpp"
#include "core/adapters/nccl/nccl_fabric.hpp"
#include "core/adapters/nccl/own_host.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/models/nccl/ranks.hpp"

namespace reprise::models {
namespace {

constexpr std::uint64_t kDeadlineNs = 5'000'000'000;

struct Machine {
  const char* what;
  std::vector<std::string> nodes;         ///< by rank
  std::vector<std::vector<int>> visible;  ///< devices that each rank sees
  std::vector<int> indices;               ///< the device that each rank takes, as it numbers them
};

const Machine kMachines[] = {
    {"one device each, two nodes", {"n0", "n0", "n1", "n1"}, {{0}, {1}, {2}, {3}}, {0, 0, 0, 0}},
    {"all devices of two nodes",
     {"n0", "n0", "n1", "n1"},
     {{0, 1}, {0, 1}, {2, 3}, {2, 3}},
     {0, 1, 0, 1}},
    {"one device for all", {"n0", "n0", "n0"}, {{0}, {0}, {0}}, {0, 0, 0}},
    {"one device under two numbers", {"n0", "n0"}, {{0, 1}, {1, 0}}, {0, 1}},
    {"shared on one node of two", {"n0", "n0", "n1"}, {{0}, {0}, {2}}, {0, 0, 0}},
};

TEST(NcclDevices, of_two_machines_of_one_name_differ_by_their_boot) {
  const contracts::TemporaryDirectory directory;
  const auto booted = [&](const std::string& id) {
    const std::string file = directory.path() + "/boot_id";
    std::ofstream(file) << id << "\n";
    return machine_of("node", file);
  };
  EXPECT_EQ(booted("4f0c"), booted("4f0c"));
  EXPECT_NE(booted("4f0c"), booted("b7d1"));
  EXPECT_NE(machine_of("node"), machine_of("other"));
  EXPECT_EQ(machine_of("node", directory.path() + "/none"), "node ");
}

TEST(NcclDevices, are_told_apart_by_what_they_are) {
  for (const auto& machine : kMachines) {
    SCOPED_TRACE(machine.what);
    Settings cuda = settings_of_environment();
    cuda.devices = 4;
    cuda.visible = machine.visible;
    const auto size = static_cast<std::int32_t>(machine.nodes.size());
    std::vector<CudaIdentity> identities(machine.nodes.size());
    ModelRanks ranks(size, cuda, {.nodes = machine.nodes});
    const auto end = ranks.run([&](ModelRank& rank) {
      const auto number = static_cast<std::size_t>(rank.rank().value);
      const auto bootstrap = rank.bootstrap(kDeadlineNs);
      const int device = machine.indices[number];
      identities[number] = cuda_identity(machine.nodes[number], device);
      present_device_to_nccl(*bootstrap, machine.nodes[number], device);
      take_environment();
      NcclFabric fabric(*bootstrap, rank.clock(),
                        {.deadline_ns = kDeadlineNs, .piece_bytes = contracts::kFewBytes}, device);
      fabric.communicator(Group::world(size))->barrier();
      fabric.close();
    });
    for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
    EXPECT_THAT(faults(), testing::IsEmpty());
    for (std::size_t a = 0; a < identities.size(); ++a) {
      for (std::size_t b = 0; b < identities.size(); ++b) {
        const auto number = [&](std::size_t rank) {
          return machine.visible[rank][static_cast<std::size_t>(machine.indices[rank])];
        };
        EXPECT_EQ(identities[a] == identities[b], number(a) == number(b)) << a << ' ' << b;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::models
