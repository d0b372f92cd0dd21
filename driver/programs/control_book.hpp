#pragma once
// Control runs: many scenarios are compared with the same run, and it is made only once.

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "driver/programs/program_life.hpp"

namespace reprise::driver {

class ControlBook {
 public:
  /// Returns the run under that name; the first call makes it, and others wait for it.
  std::shared_ptr<const LifeEvidence> run(const std::string& name,
                                          const std::function<LifeEvidence()>& make);
  /// Returns why the trainer can't run here; asks once.
  std::optional<std::string> why_not(const TrainerFile& trainer, const ProgramPlace& place);

 private:
  using Made = std::shared_future<std::shared_ptr<const LifeEvidence>>;

  std::mutex mutex_;
  std::map<std::string, Made> runs_;
  std::map<std::string, std::optional<std::string>> reasons_;
};

}  // namespace reprise::driver
