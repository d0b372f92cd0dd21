#pragma once
// Puts the slices of one rank on tracks. Slices on one track must nest, but those of a rank may
// overlap: files are written in the background, and several saves may be in flight.
//
//   rank 3               [plan][stage]  [write [vote] [vote]     ] [commit ... ]
//   rank 3, overlapping                             [write             ]
//   rank 3, background 1         [create][write][write][sync][close]

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/world/recording.hpp"

namespace reprise::driver {

/// A track, and its slices in the order of their begins. Each slice lies within all earlier ones
/// that have not ended when it begins.
struct SliceTrack {
  std::string suffix;  ///< "" for the first, ", background 1" and so on for others
  std::vector<const sim::Slice*> slices;
};

/// Returns the tracks of a rank. `slices` are all slices of the rank in a Recording's order; the
/// tracks point to them. The first track always exists, and has only slices of the rank's own
/// fiber.
std::vector<SliceTrack> tracks_of(std::span<const sim::Slice* const> slices);

}  // namespace reprise::driver
