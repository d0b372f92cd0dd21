#pragma once
// Google Benchmark's own main succeeds even if a benchmark rejected its result; this one does not.

namespace reprise::bench {

/// Runs the registered benchmarks with Google Benchmark's arguments. Returns the exit code of the
/// program.
int run_benchmarks(int argc, char** argv);

}  // namespace reprise::bench
