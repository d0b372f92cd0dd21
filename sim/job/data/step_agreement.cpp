#include "sim/job/data/step_agreement.hpp"

#include <bit>
#include <cmath>

namespace reprise::sim {
namespace {

constexpr double kUnit = 1048576;  // 2^20

/// Returns the squares and the zeros of each module, summed over the module's ranks. If this rank
/// has no part of a module, returns the module's values unchanged.
std::vector<std::int64_t> sums_of(std::span<const ModuleStep> own) {
  std::vector<std::int64_t> sums;
  for (const auto& module : own) {
    std::vector<std::int64_t> both = {module.squares, module.zeros};
    if (module.group != nullptr) both = module.group->all_reduce(Reduce::kSum, both);
    sums.insert(sums.end(), both.begin(), both.end());
  }
  return sums;
}

}  // namespace

double StepAgreement::gradient_norm() const {
  std::int64_t squares = 0;  // an integer sum: the order of modules does not matter
  for (const auto& module : modules) squares += module.squares;
  return std::sqrt(static_cast<double>(squares) / kUnit);
}

std::int64_t StepAgreement::zeros() const {
  std::int64_t sum = 0;
  for (const auto& module : modules) sum += module.zeros;
  return sum;
}

void agree_on_overflow(Communicator& world, std::span<const ModuleStep> own,
                       StepAgreement& agreed) {
  std::vector<std::int64_t> mine;
  for (const auto& module : own) {
    mine.push_back(module.overflow ? 1 : 0);
    // No scale is negative, so comparing bit patterns gives the same result as comparing scales.
    mine.push_back(std::bit_cast<std::int64_t>(module.loss_scale));
  }
  const auto all = world.all_reduce(Reduce::kMax, mine);
  agreed.modules.resize(own.size());
  for (std::size_t m = 0; m < own.size(); ++m) {
    agreed.modules[m].overflow = all[2 * m] != 0;
    agreed.modules[m].loss_scale = std::bit_cast<double>(all[2 * m + 1]);
    agreed.overflow = agreed.overflow || agreed.modules[m].overflow;
  }
}

void agree_on_statistics(Communicator& world, std::span<const ModuleStep> own,
                         StepAgreement& agreed) {
  auto all = sums_of(own);
  if (own.size() > 1) all = world.all_reduce(Reduce::kMax, all);
  for (std::size_t m = 0; m < own.size(); ++m) {
    agreed.modules[m].squares = all[2 * m];
    agreed.modules[m].zeros = all[2 * m + 1];
  }
}

StepAgreement agree_on_step(Communicator& world, std::span<const ModuleStep> own) {
  StepAgreement agreed;
  agree_on_overflow(world, own, agreed);
  if (!agreed.overflow) agree_on_statistics(world, own, agreed);
  return agreed;
}

bool all_have_stepped(Communicator& world, bool own) {
  const std::int64_t mine = own ? 1 : 0;
  return world.all_reduce(Reduce::kMin, std::span(&mine, 1)).front() != 0;
}

}  // namespace reprise::sim
