#pragma once
// Memory and time of everything that reads stay under a constant and a multiple of the input's real
// size, whatever it claims.
//
//   memory   at most  24 MiB + 256 bytes per byte of input
//   time     at most  0.5 s  + 2 us per byte of input, of one core
//
// The multiple of memory is what a pickle of nothing but `None` costs: one opcode of one byte is a
// value of 176 bytes, and for a while a node of the graph.

#include <cstddef>
#include <functional>
#include <string>

namespace reprise::test {

/// Runs `act`, which may end in an Error, and expects it to stay within the bounds for so many
/// bytes of input. Under a sanitizer it only runs.
void expect_bounded(const std::string& name, std::size_t bytes, const std::function<void()>& act);

/// The part so many times.
std::string times(std::size_t count, const std::string& part);

/// What `part` makes of 0, 1, 2 and so on, one behind the other.
template <class Part>
std::string each(std::size_t count, Part&& part) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += part(i);
  return all;
}

}  // namespace reprise::test
