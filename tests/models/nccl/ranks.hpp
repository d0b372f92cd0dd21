#pragma once
// Ranks as fibers of one thread in virtual time, over the models of CUDA and NCCL. Each of them is
// a process with the devices that the settings give it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/ports/peer_watch.hpp"
#include "reprise/error.hpp"
#include "sim/fibers/event_log.hpp"
#include "sim/fibers/scheduler.hpp"
#include "sim/fibers/sim_clock.hpp"
#include "sim/world/sim_fabric.hpp"
#include "tests/models/cuda/cuda_model.hpp"
#include "tests/models/nccl/nccl_model.hpp"
#include "tests/nccl/launch.hpp"

namespace reprise::models {

/// Returns the schedule and the seed that the environment names (REPRISE_SCHEDULE, REPRISE_SEED).
Settings settings_of_environment();

class ModelRanks;

class ModelRank final : public contracts::NcclRank {
 public:
  ModelRank(ModelRanks& all, GlobalRank rank) : all_(all), rank_(rank) {}
  std::unique_ptr<Fabric> bootstrap(std::uint64_t deadline_ns) override;
  Clock& clock() override;
  int device() const override { return 0; }

  GlobalRank rank() const { return rank_; }
  PeerWatch& watch();
  /// Ends this rank's process, as SIGKILL does. Does not return.
  void die();

 private:
  ModelRanks& all_;
  GlobalRank rank_;
};

/// Says how the ranks ended.
struct RanksEnd {
  std::vector<std::optional<Error>> errors;  ///< by rank; nothing for one that returned or died
  std::uint64_t ns = 0;                      ///< virtual time that it took
  std::optional<Error> hang;                 ///< if the ranks did not end
};

class ModelRanks {
 public:
  /// Resets both models.
  ModelRanks(std::int32_t size, const Settings& cuda, const NcclSettings& nccl = {});
  ~ModelRanks();
  ModelRanks(const ModelRanks&) = delete;
  ModelRanks& operator=(const ModelRanks&) = delete;

  /// Runs `body` on every rank. A rank whose body throws has ended for its peers.
  RanksEnd run(const std::function<void(ModelRank&)>& body);

 private:
  friend class ModelRank;
  friend void run_in_model(std::function<void()> work);
  struct Watch final : PeerWatch {
    explicit Watch(const ModelRanks& of) : all(of) {}
    bool has_ended(GlobalRank rank) override { return all.ended_.contains(rank); }
    const ModelRanks& all;
  };

  void live(GlobalRank rank, const std::function<void(ModelRank&)>& body);
  void end(GlobalRank rank, const Error& why);
  int process() const;
  void pause();
  sim::SimNetwork& network(std::uint64_t deadline_ns);

  std::int32_t size_;
  sim::Scheduler scheduler_;
  sim::SimClock clock_;
  sim::EventLog log_;
  Watch watch_;
  std::vector<std::unique_ptr<sim::RankContext>> lives_;
  std::vector<ModelRank> ranks_;
  std::map<std::uint64_t, std::unique_ptr<sim::SimNetwork>> networks_;  ///< by deadline
  std::map<std::uint64_t, int> owners_;  ///< ranks of the threads that they started
  std::map<GlobalRank, Error> ended_;    ///< ranks that ended badly
  std::int32_t running_ = 0;
  RanksEnd end_;
};

}  // namespace reprise::models
