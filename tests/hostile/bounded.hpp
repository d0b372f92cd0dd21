#pragma once
// Tests that the memory and the time that a reader uses stay below a constant plus a multiple of
// the real size of its input, even if the input claims to be larger.
//
//   memory   at most  24 MiB + 256 bytes per byte of input
//   time     at most  0.5 s  + 2 us per byte of input, on one core
//
// The memory factor follows from a pickle that consists only of `None` opcodes: each opcode is one
// byte, and becomes a value of 176 bytes and temporarily a node of the graph.

#include <cstddef>
#include <functional>
#include <string>

namespace reprise::test {

/// Runs `act` and expects that the memory and time it uses stay within the bounds for an input of
/// `bytes` bytes. `act` may throw an Error. Under a sanitizer, nothing is measured.
void expect_bounded(const std::string& name, std::size_t bytes, const std::function<void()>& act);

/// Returns `part`, repeated `count` times.
std::string times(std::size_t count, const std::string& part);

/// Returns `part(0) + part(1) + ...`, with `count` terms.
template <class Part>
std::string each(std::size_t count, Part&& part) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += part(i);
  return all;
}

}  // namespace reprise::test
