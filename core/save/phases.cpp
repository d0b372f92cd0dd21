#include "core/save/phases.hpp"

namespace reprise {

void run_protocol(const std::vector<ProtocolStep>& steps, std::string_view phase, Trace& trace) {
  for (const auto& step : steps) {
    begin_phase(trace, phase, step.name);
    step.run();
    end_phase(trace, phase, {}, step.name);
  }
}

}  // namespace reprise
