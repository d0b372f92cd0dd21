#include "sim/job/data/job_config.hpp"

namespace reprise::sim {

std::vector<ModuleConfig> modules_of(const JobConfig& config) {
  const JobMakeup& makeup = config.makeup;
  if (!makeup.modules.empty()) return makeup.modules;
  return {{.model = makeup.model,
           .layout = makeup.layout,
           .ranks = makeup.ranks,
           .optimizer_sharding = config.checkpoint.optimizer_sharding}};
}

}  // namespace reprise::sim
