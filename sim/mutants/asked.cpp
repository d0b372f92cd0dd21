#include "sim/mutants/asked.hpp"

namespace reprise::sim {

thread_local std::uint64_t AskedCount::own_ = 0;
std::atomic<std::uint64_t> AskedCount::all_ = 0;

}  // namespace reprise::sim
