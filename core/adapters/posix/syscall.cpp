#include "core/adapters/posix/syscall.hpp"

#include <system_error>

#include "reprise/error.hpp"

namespace reprise::posix {
namespace {

struct Reading {
  Code code;
  const char* advice;
};

Reading reading_of(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
    case EDQUOT:
      return {.code = Code::kNoSpace, .advice = "; free space or choose another directory"};
    case EFBIG:
      return {.code = Code::kNoSpace, .advice = "; raise the limit on file sizes (ulimit -f)"};
    case ENOENT:
    case ENOTDIR:
      return {.code = Code::kNotFound, .advice = ""};
    case ELOOP:
      return {.code = Code::kPathEscape,
              .advice = "; symbolic links within a store are not followed: put the file there"};
    case ENOSYS:
    case EOPNOTSUPP:
      return {.code = Code::kUnsupported, .advice = "; this file system cannot do it"};
    default:
      return {.code = Code::kIo, .advice = ""};
  }
}

}  // namespace

void fail(const CallSite& site, int errno_value) {
  const Reading reading = reading_of(errno_value);
  throw Error(
      reading.code,
      std::string(site.call) + ": " + std::generic_category().message(errno_value) + reading.advice,
      {.file = site.path, .offset = site.offset});
}

}  // namespace reprise::posix
