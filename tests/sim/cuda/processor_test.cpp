// Tests that a GPU computes exactly the same bits as the host. The test cases are the same for
// both.
#include "core/adapters/cuda/cuda_info.hpp"
#include "reprise/error.hpp"
#include "sim/cuda/cuda_processor.hpp"
#include "tests/contracts/processor_contract.hpp"

namespace reprise::contracts {
namespace {

class Cuda {
 public:
  Cuda() {
    if (cuda_devices().empty()) return;
    device_ = std::make_unique<CudaDevice>("node0", 0);
    processor_ = sim::make_cuda_processor(*device_);
  }
  sim::Processor* processor() { return processor_.get(); }

 private:
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<sim::Processor> processor_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, ProcessorContract, Cuda);

}  // namespace
}  // namespace reprise::contracts
