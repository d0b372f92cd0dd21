#pragma once
// Tests that memory and time of all readers stay below a constant plus a multiple of the input's
// real size, whatever the input claims.
//
//   memory   at most  24 MiB + 256 bytes per byte of input
//   time     at most  0.5 s  + 2 us per byte of input, of one core
//
// The factor for memory comes from a pickle of only `None`: an opcode of one byte becomes a value
// of 176 bytes and, for a while, a node of the graph.

#include <cstddef>
#include <functional>
#include <string>

namespace reprise::test {

/// Runs `act` and expects that its memory and time stay within the bounds for `bytes` bytes of
/// input. `act` may throw an Error. Under a sanitizer nothing is measured.
void expect_bounded(const std::string& name, std::size_t bytes, const std::function<void()>& act);

/// Returns `count` copies of the part, joined.
std::string times(std::size_t count, const std::string& part);

/// Calls `part` with 0, 1, ... up to `count` - 1, and joins the results.
template <class Part>
std::string each(std::size_t count, Part&& part) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += part(i);
  return all;
}

}  // namespace reprise::test
