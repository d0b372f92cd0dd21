#include "core/engine/load_keys.hpp"

#include <algorithm>
#include <iterator>
#include <set>

#include "core/base/print.hpp"
#include "core/engine/agreement.hpp"
#include "core/engine/text_wire.hpp"

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
  const std::vector<std::string> shown(
      keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, keys.size())));
  return join(shown, ", ") + (keys.size() > kShown ? ", ..." : "");
}

}  // namespace

KeyMismatch mismatch_over(Communicator& group, const LoadPlan& plan,
                          const std::vector<std::string>& absent) {
  const auto all = agree_on(group, [&] {
    Bytes wire;
    put_texts(wire, plan.unrequested);
    put_texts(wire, absent);
    return wire;
  });
  KeyMismatch keys;
  std::set<std::string> unexpected;
  for (std::size_t r = 0; r < all.size(); ++r) {
    ByteSpan wire(all[r]);
    const auto unrequested = take_texts(wire);  // sorted
    for (auto& key : take_texts(wire)) unexpected.insert(std::move(key));
    if (r == 0) {
      keys.missing = unrequested;
      continue;
    }
    std::vector<std::string> both;
    std::set_intersection(keys.missing.begin(), keys.missing.end(), unrequested.begin(),
                          unrequested.end(), std::back_inserter(both));
    keys.missing = std::move(both);
  }
  keys.unexpected.assign(unexpected.begin(), unexpected.end());
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
  if (!keys.unexpected.empty()) {
    throw Error(Code::kMissingKey,
                std::to_string(keys.unexpected.size()) +
                    " requested keys are not in the checkpoint: " + first_few(keys.unexpected),
                {.key = keys.unexpected.front()});
  }
  throw Error(Code::kUnrequestedKeys,
              std::to_string(keys.missing.size()) +
                  " keys of the checkpoint are requested by no rank: " + first_few(keys.missing),
              {.key = keys.missing.front()});
}

}  // namespace reprise
