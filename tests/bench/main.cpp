#include "tests/bench/run.hpp"

int main(int argc, char** argv) { return reprise::bench::run_benchmarks(argc, argv); }
