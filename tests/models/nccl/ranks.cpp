#include "tests/models/nccl/ranks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "core/adapters/nccl/aside.hpp"
#include "core/base/caught.hpp"
#include "tests/models/cuda/driver.hpp"

namespace reprise::models {
namespace {

constexpr std::uint64_t kPauseNs = 5'000'000;
constexpr std::uint64_t kSwitchesMax = 20'000'000;

ModelRanks* running = nullptr;  // NOLINT: fibers of one thread

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

}  // namespace

Settings settings_of_environment() {
  return {.schedule = schedule_named(variable("REPRISE_SCHEDULE", "latest")),
          .seed = std::stoull(variable("REPRISE_SEED", "1"))};
}

std::unique_ptr<Fabric> ModelRank::bootstrap(std::uint64_t deadline_ns) {
  return std::make_unique<sim::SimFabric>(*all_.lives_.at(static_cast<std::size_t>(rank_.value)),
                                          all_.network(deadline_ns), all_.size_);
}
Clock& ModelRank::clock() { return all_.clock_; }
PeerWatch& ModelRank::watch() { return all_.watch_; }
void ModelRank::die() {
  all_.end(rank_, Error(Code::kPeerFailed, "it was killed", {.rank = rank_}));
  all_.scheduler_.kill(rank_);
}

ModelRanks::ModelRanks(std::int32_t size, const Settings& cuda, const NcclSettings& nccl)
    : size_(size),
      scheduler_(Stream(cuda.seed), kSwitchesMax),
      clock_(scheduler_),
      log_(size),
      watch_(*this) {
  reset(cuda);
  reset_nccl(nccl);
  set_callers({.process = [this] { return process(); },
               .thread = [this] { return scheduler_.running(); },
               .is_dead = [this] { return scheduler_.is_dead({process()}); },
               .pause = [this] { pause(); }});
  for (std::int32_t rank = 0; rank < size; ++rank) {
    lives_.push_back(std::make_unique<sim::RankContext>(scheduler_, log_, GlobalRank{rank}));
    ranks_.emplace_back(*this, GlobalRank{rank});
  }
  end_.errors.resize(static_cast<std::size_t>(size));
  running = this;
}

ModelRanks::~ModelRanks() {
  running = nullptr;
  set_callers({});
  set_device_waits({});
}

RanksEnd ModelRanks::run(const std::function<void(ModelRank&)>& body) {
  running_ = size_;
  for (std::int32_t rank = 0; rank < size_; ++rank) {
    scheduler_.spawn(
        {rank}, [this, rank, &body] { live({rank}, body); },
        [this](const sim::FiberEnd& /*end*/) { --running_; });
  }
  // Time goes on while all ranks wait for each other, so that their deadlines pass.
  scheduler_.spawn(
      {size_},
      [this] {
        while (running_ > 0) pause();
      },
      [](const sim::FiberEnd& /*end*/) {});
  scheduler_.run();
  end_.ns = scheduler_.now_ns();
  end_.hang = scheduler_.verdict();
  return end_;
}

void ModelRanks::live(GlobalRank rank, const std::function<void(ModelRank&)>& body) {
  try {
    body(ranks_[static_cast<std::size_t>(rank.value)]);
  } catch (const std::exception& caught) {
    const Error error = error_from(caught);
    end_.errors[static_cast<std::size_t>(rank.value)] = error;
    end(rank, error);
  }
}

void ModelRanks::end(GlobalRank rank, const Error& why) {
  ended_.emplace(rank, why);
  for (const auto& [deadline_ns, network] : networks_) network->gone(rank, why);
}

int ModelRanks::process() const {
  const std::uint64_t fiber = scheduler_.running();
  const auto owner = owners_.find(fiber);
  return owner == owners_.end() ? static_cast<int>(fiber) : owner->second;
}

void ModelRanks::pause() { scheduler_.sleep_until(scheduler_.now_ns() + kPauseNs); }

sim::SimNetwork& ModelRanks::network(std::uint64_t deadline_ns) {
  auto& network = networks_[deadline_ns];
  if (!network) {
    network = std::make_unique<sim::SimNetwork>(scheduler_, deadline_ns);
    for (const auto& [rank, why] : ended_) network->gone(rank, why);
  }
  return *network;
}

/// Starts a thread of the running process. It runs up to its first wait before the caller goes on.
void run_in_model(std::function<void()> work) {
  ModelRanks& all = *running;
  const int process = all.process();
  if (all.scheduler_.is_dead({process})) return;
  all.owners_[all.scheduler_.fibers()] = process;
  const auto begun = std::make_shared<bool>(false);
  all.scheduler_.spawn(
      {process},
      [begun, work = std::move(work)] {
        *begun = true;
        work();
      },
      [](const sim::FiberEnd& /*end*/) {});
  while (!*begun) all.pause();
}

}  // namespace reprise::models

namespace reprise {

// The adapter's own starts a thread.
void run_aside(std::function<void()> work) { models::run_in_model(std::move(work)); }

}  // namespace reprise

namespace reprise::contracts {

void on_ranks(const std::function<void(NcclRank&)>& body) {
  for (std::int32_t size = 1; size <= 6; ++size) {
    if (std::getenv("REPRISE_FEW") != nullptr && (size == 4 || size == 5)) continue;
    SCOPED_TRACE(std::to_string(size) + " ranks");
    models::ModelRanks ranks(size, models::settings_of_environment());
    const auto end = ranks.run([&](models::ModelRank& rank) {
      // All ranks share the one device.
      ::setenv("NCCL_HOSTID", std::to_string(rank.rank().value).c_str(), 1);
      models::take_environment();
      body(rank);
    });
    for (const auto& error : end.errors) EXPECT_FALSE(error) << error->what();
    EXPECT_FALSE(end.hang) << end.hang->what();
    for (const auto& fault : models::faults()) ADD_FAILURE() << fault;
  }
}

}  // namespace reprise::contracts
