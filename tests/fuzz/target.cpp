#include "tests/fuzz/target.hpp"

namespace reprise::fuzz {

namespace {
const Target* first_target = nullptr;
}  // namespace

Target::Target(const char* called, Run does, Seeds begins_with) noexcept
    : name_(called), run_(does), seeds_(begins_with), next_(first_target) {
  first_target = this;
}

const Target* Target::first() { return first_target; }

void promise(bool kept, const std::string& what) {
  if (!kept) throw Broken(what);
}

void check_refusal(const Error& error, std::size_t size) {
  const std::string what = error.what();
  promise(error.place().file.starts_with(kFile), "a refusal that does not name the file: " + what);
  promise(error.code() != Code::kInternal, "a refusal for a mistake of ours: " + what);
  if (!error.place().offset || size == 0) return;
  const std::uint64_t offset = *error.place().offset;
  promise(offset >= kBegin && offset <= kBegin + size, "a refusal outside of the file: " + what);
}

}  // namespace reprise::fuzz
