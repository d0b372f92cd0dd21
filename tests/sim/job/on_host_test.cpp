#include "sim/job/model/on_host.hpp"

#include "properties/content_digest.hpp"
#include "sim/job/model/array.hpp"
#include "tests/contracts/guarded_processor.hpp"

namespace reprise::sim {
namespace {

/// Returns a leaf with two rows of a tensor. The array contains the transposed tensor, and other
/// elements before and after it.
TensorLeaf leaf_in(const Array<float>& array) {
  return {.key = "w",
          .shape = {4, 3},
          .pieces = {{{{1, 0}, {1, 3}}, 5, {1, 4}}, {{{3, 1}, {1, 2}}, 11, {1, 4}}},
          .data = array.address_of(0)};
}

TEST(OnHost, copies_what_the_pieces_name_from_anywhere_on_a_device) {
  contracts::GuardedProcessor guarded;
  Array<float> device(guarded, 20);
  Array<float> host(host_processor(), 20);
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<float>(i));
  device.assign(values);
  host.assign(values);
  const StateDict given{.tensors = {leaf_in(device), {.key = "of nothing", .shape = {4}}},
                        .objects = {{.key = "o", .value = 3}},
                        .common = Dict{{"a", 1}}};
  const StateDict right{.tensors = {leaf_in(host)}};
  const OnHost copy(guarded, given);
  device.fill(0);  // must not change the copy
  ASSERT_EQ(copy.state().tensors.size(), 2U);
  EXPECT_EQ(content_digest(copy.state()), content_digest(right));
  EXPECT_EQ(copy.state().objects.at(0).value, Value(3));
  EXPECT_EQ(copy.state().common, given.common);
}

TEST(OnHost, of_the_host_it_is_what_was_given) {
  Array<float> host(host_processor(), 20);
  const StateDict given{.tensors = {leaf_in(host)}};
  EXPECT_EQ(&OnHost(host_processor(), given).state(), &given);
}

}  // namespace
}  // namespace reprise::sim
