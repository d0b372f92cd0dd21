#include "driver/programs/control_book.hpp"

namespace reprise::driver {

std::shared_ptr<const LifeEvidence> ControlBook::run(const std::string& name,
                                                     const std::function<LifeEvidence()>& make) {
  std::promise<std::shared_ptr<const LifeEvidence>> promise;
  Made made;
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    const auto [at, added] = runs_.try_emplace(name);
    if (added) at->second = promise.get_future().share();
    made = at->second;
    first = added;
  }
  if (first) {
    try {
      auto evidence = std::make_shared<const LifeEvidence>(make());
      if (timed_out(*evidence)) {
        const std::lock_guard lock(mutex_);
        runs_.erase(name);
      }
      promise.set_value(std::move(evidence));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
  }
  return made.get();
}

std::optional<std::string> ControlBook::why_not(const TrainerFile& trainer,
                                                const ProgramPlace& place) {
  const std::lock_guard lock(mutex_);
  const auto [at, added] = reasons_.try_emplace({trainer.folder, trainer.needs});
  if (added) at->second = why_no_trainer(trainer, place);
  return at->second;
}

}  // namespace reprise::driver
