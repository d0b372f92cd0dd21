// Tests what is said where the file with the code for CUDA can't be opened, or finds no device.
#include <gmock/gmock.h>

#include <string>

#include "tests/border/shell.hpp"
#include "tests/contracts/temporary_directory.hpp"
#include "tests/models/c/on_device.hpp"

namespace reprise::models {
namespace {

class OpenedFile : public testing::Test {
 protected:
  /// Opens a job on a CUDA device whose code is in this file.
  std::pair<std::int32_t, std::string> open(const char* file, std::int32_t device) const {
    rp_job_options options = alone(directory_.path(), file);
    options.device = device;
    Job job;
    return failure(rp_job_open(&options, job.out()));
  }
  std::pair<std::int32_t, std::string> open_model(std::int32_t device) const {
    return open(REPRISE_MODEL_FILE, device);
  }
  /// Returns a library that is compiled from this text.
  std::string compiled(const std::string& text) const {
    std::string file = directory_.path() + "/other.so";
    const auto said =
        border::shell("echo '" + text + "' | " REPRISE_CC " -shared -fPIC -x c -o " + file + " -");
    EXPECT_TRUE(said.ok) << said;
    return file;
  }

  contracts::TemporaryDirectory directory_;
};

TEST_F(OpenedFile, that_is_not_there_is_named_with_what_to_do) {
  const auto failed = open("/nowhere/x.so", 1);
  EXPECT_THAT(failed, Fails(RP_UNSUPPORTED, "/nowhere/x.so: cannot open"));
  EXPECT_THAT(failed.second,
              testing::HasSubstr("beside " REPRISE_BUILD_DIR "/lib/libreprise_c.so"));
  EXPECT_THAT(failed.second, testing::HasSubstr(", or put the tensors into memory of the CPU"));
}

TEST_F(OpenedFile, without_code_for_cuda_is_refused) {
  EXPECT_THAT(open(compiled("int x;").c_str(), 1), Fails(RP_UNSUPPORTED, "no file with the code"));
}

TEST_F(OpenedFile, of_another_version_is_refused) {
  const std::string table =
      "struct { unsigned long size, copy; const char* version; void* f[13]; } ";
  const auto of = [&](const std::string& size, const std::string& version) {
    return compiled(table + "t = {" + size + ", 440, \"" + version +
                    "\"}; void* reprise_c_cuda_table(void) { return &t; }");
  };
  for (const auto& [size, version] : {std::pair("sizeof t", "0.0.1"), {"24", REPRISE_VERSION}}) {
    const auto failed = open(of(size, version).c_str(), 1);
    EXPECT_THAT(failed, Fails(RP_UNSUPPORTED, "another version")) << size << version;
    EXPECT_THAT(failed.second, testing::HasSubstr("other.so. Install both together"));
  }
}

TEST_F(OpenedFile, finds_no_driver_or_one_that_is_too_old) {
  reset({.driver = 0});
  EXPECT_THAT(open_model(1), Fails(RP_UNSUPPORTED, "CUDA device 0 can't be used: no driver is"));
  reset({.driver = 12'040});
  EXPECT_THAT(open_model(1), Fails(RP_UNSUPPORTED, "of CUDA 12.4; install one of CUDA 13.0"));
}

TEST_F(OpenedFile, finds_no_such_device_and_the_job_keeps_the_one_before) {
  EXPECT_THAT(open_model(3),
              Fails(RP_UNSUPPORTED, "CUDA device 2 can't be used: this process sees 1"));
  EXPECT_THAT(open_model(-1), Fails(RP_USAGE, "device"));
  const rp_job_options options = alone(directory_.path(), REPRISE_MODEL_FILE);
  Job job;
  EXPECT_OK(rp_job_open(&options, job.out()));
  EXPECT_THAT(failure(rp_job_use_device(job.get(), 3)), Fails(RP_UNSUPPORTED, "device 2"));
  const Bytes host = numbers(10, 1);
  const State state = state_of({{"w", 10, host.data()}});
  const rp_save_options how = saved_as(1);
  Saving saving;
  EXPECT_OK(rp_save_all(job.get(), state.get(), &how, saving.out()));
}

TEST_F(OpenedFile, has_no_code_for_the_device) {
  reset({.has_code = false});
  EXPECT_THAT(open_model(1), Fails(RP_UNSUPPORTED, "code for compute capability 9.5"));
}

}  // namespace
}  // namespace reprise::models
