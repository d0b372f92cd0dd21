#include "tests/bench/run.hpp"

#include <cstdlib>
#include <memory>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

namespace {

/// True if the benchmark called SkipWithError. Version 1.8 of Google Benchmark renamed the field
/// with this information.
template <class Run>
bool failed(const Run& run) {
  if constexpr (requires { run.error_occurred; }) {
    return run.error_occurred;
  } else {
    return run.skipped == std::remove_cvref_t<decltype(run.skipped)>{2};  // 2 is SkippedWithError
  }
}

/// Prints results as Google Benchmark does, and records failed runs.
class Watching : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& context) override { return inner_->ReportContext(context); }
  void Finalize() override { inner_->Finalize(); }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      any_failed_ = any_failed_ || failed(run);
    }
    inner_->ReportRuns(runs);
  }
  bool any_failed() const { return any_failed_; }

 private:
  std::unique_ptr<benchmark::BenchmarkReporter> inner_{benchmark::CreateDefaultDisplayReporter()};
  bool any_failed_ = false;
};

}  // namespace

namespace reprise::bench {

int run_benchmarks(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return EXIT_FAILURE;
  }
  Watching watching;
  benchmark::RunSpecifiedBenchmarks(&watching);
  benchmark::Shutdown();
  return watching.any_failed() ? EXIT_FAILURE : EXIT_SUCCESS;
}

}  // namespace reprise::bench
