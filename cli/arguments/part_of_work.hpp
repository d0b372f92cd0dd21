#pragma once
// Parses `--part I/N`.

#include <cstddef>
#include <string>

namespace reprise::cli {

/// Says which part of the work to do: part `number` of `of` parts. Parts are numbered from 1.
struct PartOfWork {
  std::size_t number = 1;
  std::size_t of = 1;
};

/// Parses text such as "2/4". Empty text means the whole work. Throws USAGE if the text does not
/// have this form or if the part does not exist.
PartOfWork part_of_work(const std::string& text);

}  // namespace reprise::cli
