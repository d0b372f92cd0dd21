#pragma once
// Marks functions written once for host and device: nvcc compiles them for both, other compilers
// for the host only.

#ifdef __CUDACC__
#define REPRISE_HD __host__ __device__
#else
#define REPRISE_HD
#endif
