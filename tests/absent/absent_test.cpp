// Tests the files that replace the folders of CUDA, NCCL and MPI in a build without them. Each
// build links them here, so a function that only the real folder has is found before somebody
// without CUDA builds.
#include <gtest/gtest.h>

#include "core/adapters/cuda/cuda_device.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/adapters/nccl/nccl_version.hpp"
#include "reprise/device.hpp"
#include "reprise/error.hpp"
#include "reprise/fabric.hpp"
#include "reprise/job.hpp"

namespace reprise {
namespace {

Code code_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return Code::kInternal;
}

TEST(Absent, CudaIsToldAsUnsupported) {
  EXPECT_EQ(code_of([] { cuda_device(0); }), Code::kUnsupported);
  EXPECT_EQ(code_of([] { CudaDevice("node-0", 0); }), Code::kUnsupported);
}

TEST(Absent, NcclIsToldAsUnsupported) {
  EXPECT_EQ(code_of([] { nccl_fabric(nullptr, 0); }), Code::kUnsupported);
}

TEST(Absent, MpiIsToldAsUnsupported) {
  EXPECT_EQ(code_of([] { mpi_job("/nowhere"); }), Code::kUnsupported);
  EXPECT_EQ(code_of([] { MpiSession(1); }), Code::kUnsupported);
}

TEST(Absent, NoVersionIsNamed) {
  EXPECT_EQ(nccl_version(), "");
  EXPECT_EQ(mpi_version(), "");
  EXPECT_TRUE(cuda_devices().empty());
}

}  // namespace
}  // namespace reprise
