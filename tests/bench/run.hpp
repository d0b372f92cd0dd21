#pragma once
// Google Benchmark's own main ends well although a benchmark refused its result; this does not.

namespace reprise::bench {

/// Runs what was registered, with Google Benchmark's arguments. Returns the program's exit code.
int run_benchmarks(int argc, char** argv);

}  // namespace reprise::bench
