#include "driver/language/fault_specs.hpp"

namespace reprise::driver {
namespace {

constexpr std::uint64_t kNanosecondsOfMs = 1'000'000;

}  // namespace

sim::FaultSpec spec_of(const FaultAction& fault) {
  sim::FaultSpec spec;
  spec.kind = fault.kind;
  spec.place = {.rank = GlobalRank{fault.rank},
                .phase = fault.phase,
                .step = fault.step,
                .moment = fault.moment,
                .nth = fault.nth,
                .file = fault.file};
  spec.delay_ns = static_cast<std::uint64_t>(fault.delay_ms) * kNanosecondsOfMs;
  spec.bit = static_cast<std::uint64_t>(fault.bit);
  return spec;
}

std::vector<sim::FaultSpec> specs_of(const BadResultAction& bad) {
  std::vector<sim::FaultSpec> specs;
  for (const auto rank : bad.ranks) {
    sim::FaultSpec spec;
    spec.kind = sim::FaultKind::kBadResult;
    spec.place.rank = GlobalRank{rank};
    spec.result.kind = bad.kind;
    spec.result.fatal = bad.fatal;
    spec.result.value = bad.value;
    spec.result.call = static_cast<int>(bad.call);
    spec.result.run = static_cast<int>(bad.run);
    specs.push_back(spec);
  }
  return specs;
}

}  // namespace reprise::driver
