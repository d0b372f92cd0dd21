#pragma once
// Recognizes files whose pickles a scan does not read: compressed files, tar archives, and numpy
// arrays of Python objects.

#include <cstdint>
#include <string_view>

#include "core/base/bytes.hpp"

namespace reprise {

/// Number of bytes that wrapping_of examines at most.
inline constexpr std::uint64_t kWrappingBytes = std::uint64_t{64} << 10U;

/// PickleWrapping::kind of a file that numpy.save wrote.
inline constexpr std::string_view kNumpyArray = "numpy array";

struct PickleWrapping {
  /// Such as "gzip". Empty if the bytes are of no kind that is known here.
  std::string_view kind;
  /// Why the pickles in it are not looked at. Empty if it is known to have none.
  std::string_view why;
};

/// Examines the first bytes of a file, or of a record of an archive. Two bytes are all that marks
/// zlib, so it is recognized only if `named`: the name says that there should be a pickle.
PickleWrapping wrapping_of(ByteSpan first, bool named);

}  // namespace reprise
