#include "core/base/out_of_memory.hpp"

#include <utility>

#include "core/base/print.hpp"

namespace reprise {

OutOfMemory::OutOfMemory(std::string file, std::uint64_t bytes)
    : file_(std::move(file)),
      message_("there is not enough memory to hold " + human_bytes(bytes) + " of it") {}

Error limit_from(const std::bad_alloc& caught, const std::string& working_on) {
  if (const auto* known = dynamic_cast<const OutOfMemory*>(&caught)) {
    return {Code::kLimit, known->message(), {.file = known->file()}};
  }
  return {Code::kLimit, "there is not enough memory for this request", {.file = working_on}};
}

}  // namespace reprise
