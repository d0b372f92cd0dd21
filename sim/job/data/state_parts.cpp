#include "sim/job/data/state_parts.hpp"

#include <iterator>
#include <vector>

namespace reprise::sim {
namespace {

template <class T>
void move_to(std::vector<T>& all, std::vector<T>& some) {
  all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
}

}  // namespace

void put_before(const std::string& prefix, StateDict& state) {
  for (auto& leaf : state.tensors) leaf.key.insert(0, prefix);
  for (auto& leaf : state.objects) leaf.key.insert(0, prefix);
}

void append(StateDict& state, StateDict part) {
  move_to(state.tensors, part.tensors);
  move_to(state.objects, part.objects);
}

}  // namespace reprise::sim
