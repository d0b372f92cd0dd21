// The program of this test is also the program that `--double` starts as its second process: with
// the word "run" it runs scenarios with the violation that `--mutant` names, and leaves a report.

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "driver/runs/heap_order.hpp"
#include "tests/driver/canaries/canary_run.hpp"

namespace {

/// Returns the word after `name`; empty if there is none.
std::string after(int argc, char** argv, std::string_view name) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return argv[i + 1];
  }
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && argv[1] == std::string_view("run")) {
    const std::string seed = after(argc, argv, "--heap-seed");
    if (!seed.empty()) reprise::driver::shake_heap(std::stoull(seed));
    const auto report = reprise::driver::test::run_with(argv[2], after(argc, argv, "--mutant"));
    reprise::driver::write_report(report, after(argc, argv, "--report"));
    return EXIT_SUCCESS;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
