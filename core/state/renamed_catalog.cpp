#include "core/state/renamed_catalog.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "reprise/error.hpp"

namespace reprise {
namespace {

class Renaming {
 public:
  explicit Renaming(const KeyRename& rename) : rename_(rename) {}

  template <class Item>
  void apply(std::vector<Item>& items) {
    for (Item& item : items) {
      const std::string before(name_of(item));
      std::string after = rename_(before);
      const auto [known, is_new] = before_.try_emplace(after, before);
      if (!is_new && known->second != before) {
        throw Error(Code::kUsage, "two keys become '" + after + "': '" + known->second + "' and '" +
                                      before + "'");
      }
      item.key = std::move(after) + item.key.substr(before.size());
    }
    std::ranges::stable_sort(items, {}, &Item::key);
  }

 private:
  const KeyRename& rename_;
  std::map<std::string, std::string> before_;  ///< the key before, by the key after
};

}  // namespace

Catalog renamed(Catalog catalog, const KeyRename& rename) {
  Renaming renaming(rename);
  renaming.apply(catalog.tensors);
  renaming.apply(catalog.objects);
  return catalog;
}

}  // namespace reprise
