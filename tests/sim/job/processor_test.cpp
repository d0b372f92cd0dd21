// Tests the host as the processor of a job, with ordinary memory and with guarded memory.
#include "tests/contracts/guarded_processor.hpp"
#include "tests/contracts/processor_contract.hpp"

namespace reprise::contracts {
namespace {

struct Host {
  sim::Processor* processor() { return &sim::host_processor(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Host, ProcessorContract, Host);

struct Guarded {
  sim::Processor* processor() { return &own; }
  GuardedProcessor own;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Guarded, ProcessorContract, Guarded);

}  // namespace
}  // namespace reprise::contracts
