// Fuzzes the readers of archives. The input is an item of a payload file, or common.pt.

#include "tests/fuzz/item_promises.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

Acceptance run(ByteSpan input) {
  return check_item(input) ? Acceptance::kAccepted : Acceptance::kRefused;
}

const Target kTarget("archive", run, real_items);

}  // namespace
}  // namespace reprise::fuzz
