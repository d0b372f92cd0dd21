#pragma once
// A fabric that records every collective call of a rank.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reprise/fabric.hpp"
#include "sim/world/recorder.hpp"

namespace reprise::driver {

/// Numbers communicators and their calls alike on all members of a group, which make them in the
/// same order: so the driver can tell which calls of different ranks are one.
class RecordedFabric final : public Fabric {
 public:
  /// Borrows the fabric and the recorder. `name` tells the fabrics of a rank apart.
  RecordedFabric(std::string name, Fabric& inner, sim::Recorder& recorder)
      : name_(std::move(name)), inner_(inner), recorder_(recorder) {}

  GlobalRank rank() const override { return inner_.rank(); }
  std::int32_t world_size() const override { return inner_.world_size(); }
  std::shared_ptr<Communicator> communicator(const Group& group) override;

 private:
  std::string name_;
  Fabric& inner_;
  sim::Recorder& recorder_;
  std::map<std::vector<GlobalRank>, std::uint64_t> made_;  ///< communicators of each group so far
};

}  // namespace reprise::driver
