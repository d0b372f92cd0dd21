#pragma once
// Parses `--shard I/N`.

#include <cstddef>
#include <string>
#include <vector>

namespace reprise::cli {

/// Says which part of the work to do: part `number` of `of` parts. Parts are numbered from 1.
struct PartOfWork {
  std::size_t number = 1;
  std::size_t of = 1;

  /// Keeps the items of this part: every `of`-th one, so that parts take about equally long.
  template <class Item>
  void keep_own(std::vector<Item>& items) const {
    std::size_t index = 0;
    std::erase_if(items, [&](const Item& /*item*/) { return index++ % of != number - 1; });
  }
};

/// Parses text such as "2/4". Empty text means the whole work. Throws USAGE if the text does not
/// have this form or if the part does not exist.
PartOfWork part_of_work(const std::string& text);

}  // namespace reprise::cli
