#include "driver/judges/schedule_judge.hpp"

#include <sstream>

#include "properties/finding_code.hpp"
#include "sim/job/modules/megatron_common.hpp"

namespace reprise::driver {

judged::Findings judge_schedule(GlobalRank rank, const Value& own, const Value& uninterrupted) {
  const auto is = sim::decode_common(own).progress.schedule;
  const auto right = sim::decode_common(uninterrupted).progress.schedule;
  if (is.num_steps == right.num_steps) return {};
  std::ostringstream text;
  text << "the schedule has counted " << is.num_steps << " samples, but without interruption "
       << right.num_steps << ": the learning rate is " << is.lr() << " instead of " << right.lr();
  return {{judged::kScheduleDrift, "common['opt_param_scheduler']['num_steps']", text.str(), rank}};
}

}  // namespace reprise::driver
