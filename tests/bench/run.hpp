#pragma once
// Runs benchmarks. The program fails if a benchmark rejected its result; Google Benchmark's own
// main would succeed.

namespace reprise::bench {

/// Runs the registered benchmarks with Google Benchmark's arguments. Returns the exit code of the
/// program.
int run_benchmarks(int argc, char** argv);

}  // namespace reprise::bench
