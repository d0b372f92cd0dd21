#include "core/plan/offer_book.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/base/key_order.hpp"

namespace reprise {
namespace {

bool same(const Placed& a, const Placed& b) {
  return a.placement == b.placement && (a.mesh == b.mesh || *a.mesh == *b.mesh);
}

/// Assigns numbers to keys, in the order of their first use. Most ranks offer the same keys in the
/// same order. A key is therefore first compared with the key whose number comes next; the table is
/// searched only if the two differ.
class KeyNumbers {
 public:
  explicit KeyNumbers(std::vector<std::string_view>& keys) : keys_(keys) {}

  std::uint32_t of(std::string_view key) {
    if (next_ < keys_.size() && keys_[next_] == key) return next_++;
    const auto fresh = static_cast<std::uint32_t>(keys_.size());
    const auto [at, added] = seen_.try_emplace(key, fresh);
    if (added) keys_.push_back(key);
    next_ = at->second + 1;
    return at->second;
  }

 private:
  std::vector<std::string_view>& keys_;
  std::unordered_map<std::string_view, std::uint32_t> seen_;  // used for lookups only
  std::uint32_t next_ = 0;
};

}  // namespace

template <class T>
void OfferBook::Lists<T>::sort(std::size_t keys, std::span<const std::uint32_t> ids) {
  first.assign(keys + 1, 0);
  for (const std::uint32_t id : ids) ++first[id + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<T> sorted(all.size());
  auto next = first;
  for (std::size_t i = 0; i < all.size(); ++i) sorted[next[ids[i]]++] = all[i];
  all = std::move(sorted);
}

std::uint32_t OfferBook::index_of(const Placed& placed) {
  const std::uint64_t hash = signature(placed);
  const auto [first, last] = by_signature_.equal_range(hash);
  const auto found = std::find_if(
      first, last, [&](const auto& known) { return same(*placements_[known.second], placed); });
  if (found != last) return found->second;
  const auto index = static_cast<std::uint32_t>(placements_.size());
  placements_.push_back(&placed);
  by_signature_.emplace(hash, index);
  return index;
}

void OfferBook::find_sections(std::span<const LocalPlan> plans) {
  std::map<const void*, std::size_t> known;  // used for lookups only
  for (std::size_t r = 0; r < plans.size(); ++r) {
    const GroupRank rank{static_cast<std::int32_t>(r)};
    const PlacedOffers* offers = plans[r].placed.get();
    if (!offers->tensors.empty()) {
      const auto [at, fresh] = known.try_emplace(offers, sections_.size());
      if (fresh) {
        Section& section = sections_.emplace_back(Section{offers, {}, {}});
        for (const Placed& placed : offers->placements) {
          section.placement.push_back(index_of(placed));
        }
      }
      sections_[at->second].ranks.push_back(rank);
    }
    const std::vector<TensorForm>* forms = plans[r].given.forms().get();
    if (forms->empty()) continue;
    const auto [at, fresh] = known.try_emplace(forms, form_sections_.size());
    if (fresh) form_sections_.push_back({forms, {}});
    form_sections_[at->second].ranks.push_back(rank);
  }
}

void OfferBook::collect(std::vector<std::uint32_t>& placed_keys,
                        std::vector<std::uint32_t>& given_keys) {
  KeyNumbers numbers(keys_);
  for (std::uint32_t s = 0; s < sections_.size(); ++s) {
    for (const PlacedOffer& offer : sections_[s].offers->tensors) {
      placed_keys.push_back(numbers.of(offer.form.key));
      placed_.all.push_back({s, sections_[s].placement[offer.placed], &offer});
    }
  }
  for (std::uint32_t s = 0; s < form_sections_.size(); ++s) {
    const auto& forms = *form_sections_[s].forms;
    for (std::uint32_t i = 0; i < forms.size(); ++i) {
      given_keys.push_back(numbers.of(forms[i].key));
      given_.all.push_back({s, i});
    }
  }
}

std::vector<std::uint32_t> OfferBook::sort_keys() {
  const auto order = order_of_keys(keys_);
  std::vector<std::uint32_t> position(keys_.size());
  std::vector<std::string_view> sorted(keys_.size());
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    position[order[p]] = p;
    sorted[p] = keys_[order[p]];
  }
  keys_ = std::move(sorted);
  return position;
}

OfferBook::OfferBook(std::span<const LocalPlan> plans) {
  find_sections(plans);
  std::vector<std::uint32_t> placed_keys;
  std::vector<std::uint32_t> given_keys;
  collect(placed_keys, given_keys);
  const auto position = sort_keys();
  for (auto& key : placed_keys) key = position[key];
  for (auto& key : given_keys) key = position[key];
  placed_.sort(keys_.size(), placed_keys);
  given_.sort(keys_.size(), given_keys);
}

}  // namespace reprise
