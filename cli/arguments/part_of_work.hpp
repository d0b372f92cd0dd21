#pragma once
// Reads `--part I/N`.

#include <cstddef>
#include <string>

namespace reprise::cli {

/// A share of work that is cut into `of` parts, counted from 1.
struct PartOfWork {
  std::size_t number = 1;
  std::size_t of = 1;
};

/// Returns the part that "2/4" names; the whole work if `text` is empty. Throws USAGE for any other
/// text, and for a part that does not exist.
PartOfWork part_of_work(const std::string& text);

}  // namespace reprise::cli
