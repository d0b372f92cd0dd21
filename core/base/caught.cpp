#include "core/base/caught.hpp"

#include <new>

namespace reprise {

Error error_from(const std::exception& caught) {
  if (const auto* error = dynamic_cast<const Error*>(&caught)) return *error;
  const bool memory = dynamic_cast<const std::bad_alloc*>(&caught) != nullptr;
  return {Code::kInternal, memory ? "out of memory" : caught.what()};
}

}  // namespace reprise
