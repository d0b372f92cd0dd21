#pragma once
// The only place that checks results of system calls.

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>

namespace reprise::posix {

/// The call, its file and the offset, for error messages.
struct CallSite {
  const char* call = "";
  std::string path = {};                     ///< as the user knows it
  std::optional<std::uint64_t> offset = {};  ///< offset in bytes
};

/// Throws the Error for `errno_value`: NO_SPACE, NOT_FOUND (also if a parent is not a directory),
/// PATH_ESCAPE for a symbolic link that may not be followed, UNSUPPORTED if the kernel or file
/// system cannot do it, otherwise IO.
[[noreturn]] void fail(const CallSite& site, int errno_value);

/// Repeats the call while it is interrupted; throws by fail() if the result is -1.
template <class Call>
auto checked(const CallSite& site, Call&& call) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno != EINTR) fail(site, errno);
  }
}

}  // namespace reprise::posix
