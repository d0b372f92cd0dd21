#pragma once
// Marks arithmetic that is written once and runs on both sides: nvcc compiles it for the host and
// the device, every other compiler for the host alone.

#ifdef __CUDACC__
#define REPRISE_HD __host__ __device__
#else
#define REPRISE_HD
#endif
