#pragma once
// Keeps control runs. Many scenarios are compared with the same control run, so it is made only
// once.

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "driver/programs/program_life.hpp"

namespace reprise::driver {

class ControlBook {
 public:
  /// Returns the run called `name`. The first call with a name makes the run; other calls wait
  /// until that run has ended. A run that a deadline ended is not kept: the next call makes it
  /// anew.
  std::shared_ptr<const LifeEvidence> run(const std::string& name,
                                          const std::function<LifeEvidence()>& make);
  /// Returns why the trainer can't run here; nothing if it can. Checks this only on the first call
  /// with what it needs.
  std::optional<std::string> why_not(const TrainerFile& trainer, const ProgramPlace& place);

 private:
  using Made = std::shared_future<std::shared_ptr<const LifeEvidence>>;
  using TrainerNeeds = std::pair<std::string, std::map<std::string, std::string>>;

  std::mutex mutex_;
  std::map<std::string, Made> runs_;
  std::map<TrainerNeeds, std::optional<std::string>> reasons_;  ///< by folder and needs
};

}  // namespace reprise::driver
