#include "core/load/load_keys.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/agree/agreement.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/print.hpp"
#include "core/megatron/module_key.hpp"

namespace reprise {
namespace {

bool is_excused(const std::string& key, const std::vector<std::string>& excused) {
  const auto object = parse_object_key(key);
  return std::any_of(excused.begin(), excused.end(), [&](const std::string& name) {
    return key == name || (object && object->key == name);
  });
}

std::string first_few(const std::vector<std::string>& keys) {
  constexpr std::size_t kShown = 8;
  const auto shown = readable_keys(std::span(keys).first(std::min(kShown, keys.size())));
  return join(shown, ", ") + (keys.size() > kShown ? ", ..." : "");
}

}  // namespace

KeyMismatch mismatch_over(Communicator& group, const LoadPlan& plan,
                          const std::vector<std::string>& not_stored) {
  const auto all = agree_on(group, [&] {
    Bytes wire;
    put_texts(wire, plan.not_requested);
    put_texts(wire, not_stored);
    return wire;
  });
  KeyMismatch keys;
  std::set<std::string> not_stored_for_some;
  for (std::size_t r = 0; r < all.size(); ++r) {
    PeerWire wire(all[r], "a list of keys");
    auto not_requested = wire.texts();  // in sorted order
    for (auto& key : wire.texts()) not_stored_for_some.insert(std::move(key));
    wire.end();
    if (r == 0) {
      keys.not_requested = std::move(not_requested);
      continue;
    }
    std::vector<std::string> both;
    std::set_intersection(keys.not_requested.begin(), keys.not_requested.end(),
                          not_requested.begin(), not_requested.end(), std::back_inserter(both));
    keys.not_requested = std::move(both);
  }
  keys.not_stored.assign(not_stored_for_some.begin(), not_stored_for_some.end());
  return keys;
}

std::vector<std::string> take_excused(std::vector<std::string>& keys,
                                      const std::vector<std::string>& excused) {
  const auto first = std::stable_partition(
      keys.begin(), keys.end(), [&](const std::string& key) { return !is_excused(key, excused); });
  std::vector<std::string> taken(first, keys.end());
  keys.erase(first, keys.end());
  return taken;
}

void refuse(const KeyMismatch& keys) {
  if (!keys.not_stored.empty()) {
    throw Error(Code::kNotStored,
                std::to_string(keys.not_stored.size()) +
                    " requested keys are not in the checkpoint: " + first_few(keys.not_stored),
                {.key = keys.not_stored.front()});
  }
  throw Error(Code::kNotRequested,
              std::to_string(keys.not_requested.size()) +
                  " keys of the checkpoint were not requested by any rank: " +
                  first_few(keys.not_requested),
              {.key = keys.not_requested.front()});
}

}  // namespace reprise
