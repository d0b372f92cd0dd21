// Asks a real interpreter for a package, and holds its version against what a trainer needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "driver/programs/program_life.hpp"
#include "tests/contracts/temporary_directory.hpp"

namespace reprise::driver {
namespace {

using ::testing::HasSubstr;

/// Installs a package called engine-x of this version, for all interpreters that this test starts.
class Installed {
 public:
  explicit Installed(const std::string& version) {
    const std::string folder = directory_.path() + "/engine_x-" + version + ".dist-info";
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/METADATA")
        << "Metadata-Version: 2.1\nName: engine-x\nVersion: " << version << "\n";
    ::setenv("PYTHONPATH", directory_.path().c_str(), 1);
  }
  ~Installed() { ::unsetenv("PYTHONPATH"); }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;

 private:
  contracts::TemporaryDirectory directory_;
};

/// Returns why a trainer that needs this of engine-x can't run; empty if it can.
std::string why_not(const std::string& needed) {
  TrainerFile trainer;
  trainer.name = "mine";
  trainer.command = {"python3", "train.py"};
  trainer.needs = {{"engine-x", needed}};
  return why_no_trainer(trainer, {}).value_or("");
}

bool has_specifiers() {
  return std::system(
             "python3 -c 'import pip._vendor.packaging.specifiers' 2>/dev/null || "
             "python3 -c 'import packaging.specifiers' 2>/dev/null") == 0;
}

TEST(Needs, AreVersionSpecifiers) {
  if (!has_specifiers()) GTEST_SKIP() << "python3 has neither packaging nor pip";
  for (const char* here : {"2.15.0", "2.15.0+cu132"}) {
    const Installed package(here);
    for (const char* fits : {"2.15.0", "2.15", "2.15.0+cu132", "==2.15.0+cpu", ">=2.4", "~=2.15",
                             ">=2.4,<3", "2.15.0,<3", "<3,2.15.0", "!=2.14", "==2.*"}) {
      EXPECT_EQ(why_not(fits), "") << fits;
    }
    for (const char* other : {"2.14.0", ">=2.16", "<2", "~=2.14.0", "2.15.1+cu132", "2.15.0,>=3"}) {
      EXPECT_THAT(why_not(other), HasSubstr("is needed but " + std::string(here) + " is installed"))
          << other;
    }
  }
}

TEST(Needs, NameWhatIsMissingOrNoSpecifier) {
  if (!has_specifiers()) GTEST_SKIP() << "python3 has neither packaging nor pip";
  EXPECT_THAT(why_not(">=2.4"), HasSubstr("engine-x >=2.4 is needed but not installed"));
  EXPECT_THAT(why_not("newest"), HasSubstr("'newest', which is not a version specifier"));
}

TEST(Needs, NameThePackageThatComparesVersions) {
  const Installed package("2.15.0");
  const std::string folder = std::getenv("PYTHONPATH");
  for (const char* hidden : {"packaging.py", "pip.py"}) {
    std::ofstream(folder + "/" + hidden) << "raise ImportError('hidden')\n";
  }
  EXPECT_THAT(why_not(">=2.4"),
              HasSubstr("it needs the package packaging (pip install packaging)"));
}

}  // namespace
}  // namespace reprise::driver
