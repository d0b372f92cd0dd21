#include "sim/job/data/step_record.hpp"

#include "core/base/print.hpp"

namespace reprise::sim {

std::ostream& operator<<(std::ostream& out, const StepRecord& record) {
  return out << "step " << record.step << " loss " << record.loss << " lr " << record.lr
             << " loss_scale " << record.loss_scale << (record.overflow ? " overflow" : "")
             << (record.skipped ? " skipped" : "") << " gradient_norm " << record.gradient_norm
             << " zeros " << record.zeros
             << (record.scales.size() > 1 ? " scales " + join(record.scales, " ") : "");
}

}  // namespace reprise::sim
