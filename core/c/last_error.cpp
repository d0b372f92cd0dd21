#include "core/c/last_error.hpp"

#include <stdexcept>
#include <string>

#include "core/base/caught.hpp"
#include "core/c/codes.hpp"
#include "reprise/c.h"

namespace reprise::c {
namespace {

constexpr const char* kNoMemory = "INTERNAL: out of memory";

/// The error of a thread. `view` points into `error`.
struct Last {
  Error error = {Code::kInternal, ""};
  rp_error view = {};
  std::string name;  ///< of a number without a name
};

constexpr rp_error kNone = {sizeof(rp_error), RP_OK, -1, -1, "", "", "", ""};

Last& last() {
  thread_local Last own = {.view = kNone, .name = {}};
  return own;
}

void keep_error(const Error& error) {
  Last& own = last();
  own.error = error;
  const ErrorPlace& place = own.error.place();
  own.view.code = number_of(error.code());
  own.view.rank = place.rank ? place.rank->value : -1;
  own.view.offset = place.offset ? static_cast<std::int64_t>(*place.offset) : -1;
  own.view.key = place.key.c_str();
  own.view.file = place.file.c_str();
  own.view.message = own.error.message().c_str();
  own.view.what = own.error.what();
}

std::int32_t keep_no_memory() noexcept {
  rp_error& view = last().view;
  view = kNone;
  view.code = RP_INTERNAL;
  view.message = "out of memory";
  view.what = kNoMemory;
  return view.code;
}

}  // namespace

std::int32_t keep(const std::exception& caught) noexcept {
  try {
    keep_error(error_from(caught));
    return last().view.code;
  } catch (...) {
    return keep_no_memory();
  }
}

std::int32_t keep_unknown() noexcept {
  return keep(std::runtime_error("something was thrown that is no exception of the standard"));
}

}  // namespace reprise::c

const rp_error* rp_last_error(void) { return &reprise::c::last().view; }

const char* rp_code_name(std::int32_t code) {
  using namespace reprise;
  if (code == RP_OK) return "OK";
  if (const auto known = c::code_numbered(code)) return name_of(*known).data();
  std::string& text = c::last().name;
  const std::int32_t status = c::guarded([&] { text = "UNKNOWN_" + std::to_string(code); });
  return status == 0 ? text.c_str() : "UNKNOWN";
}
