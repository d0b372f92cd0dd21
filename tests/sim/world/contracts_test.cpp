// Tests that the simulated ports satisfy the same contracts as the real ones.
#include "sim/world/world.hpp"
#include "tests/contracts/device_contract.hpp"
#include "tests/contracts/fabric_contract.hpp"
#include "tests/contracts/store_contract.hpp"
#include "tests/contracts/tasks_contract.hpp"

namespace reprise::contracts {
namespace {

using sim::SimStore;
using sim::World;

// Runs the body on all ranks of several worlds. Each world has a different schedule.
void run_worlds(std::int32_t world_size, const std::function<void(Ports&)>& body) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SimStore store;
    World world({.seed = seed, .world_size = world_size}, store);
    const auto result = world.run([&body](Ports& ports, GlobalRank) { body(ports); });
    EXPECT_FALSE(result.deadlock) << result.deadlock->what();
    for (const auto& rank : result.ranks) {
      EXPECT_EQ(rank.end, sim::RankEnd::kReturned)
          << rank.message << (rank.error ? rank.error->what() : "");
    }
  }
}

struct SimStores {
  std::unique_ptr<Store> make() { return std::make_unique<SimStore>(); }
};
struct SimStoresWithoutExchange {
  std::unique_ptr<Store> make() {
    return std::make_unique<SimStore>("sim:", StoreCapabilities{.exchange = false});
  }
};
/// Makes stores without rename whose lists are always up to date. sim_store_test tests lists that
/// lag behind.
struct SimObjectStores {
  std::unique_ptr<Store> make() {
    return std::make_unique<SimStore>("sim:",
                                      StoreCapabilities{.exchange = true, .renames = false});
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, StoreContract, SimStores);
INSTANTIATE_TYPED_TEST_SUITE_P(SimWithoutExchange, StoreContract, SimStoresWithoutExchange);
INSTANTIATE_TYPED_TEST_SUITE_P(SimWithoutRename, StoreContract, SimObjectStores);

template <std::int32_t kWorldSize>
struct SimRanks {
  void run(const std::function<void(Fabric&)>& body) {
    run_worlds(kWorldSize, [&body](Ports& ports) { body(ports.fabric); });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(OneRank, FabricContract, SimRanks<1>);
INSTANTIATE_TYPED_TEST_SUITE_P(TwoRanks, FabricContract, SimRanks<2>);
INSTANTIATE_TYPED_TEST_SUITE_P(ThreeRanks, FabricContract, SimRanks<3>);
INSTANTIATE_TYPED_TEST_SUITE_P(FourRanks, FabricContract, SimRanks<4>);
INSTANTIATE_TYPED_TEST_SUITE_P(SevenRanks, FabricContract, SimRanks<7>);

struct SimFibers {
  void run(const std::function<void(Tasks&)>& body) {
    run_worlds(2, [&body](Ports& ports) { body(ports.tasks); });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, TasksContract, SimFibers);

struct SimDevices {
  using Numbers = HostNumbers;
  void run(const std::function<void(Device&)>& body) {
    run_worlds(1, [&body](Ports& ports) { body(ports.device); });
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, DeviceContract, SimDevices);

}  // namespace
}  // namespace reprise::contracts
