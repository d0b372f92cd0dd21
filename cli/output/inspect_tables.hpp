#pragma once
// Prints the tables of `inspect`: tensors, objects, files, modules, groups of keys.

#include <cstddef>
#include <string_view>
#include <vector>

#include "cli/keys/key_filter.hpp"
#include "cli/output/console.hpp"
#include "cli/output/table.hpp"
#include "core/checkpoint/checkpoint.hpp"

namespace reprise::cli {

/// Prints a table after an empty line, unless it is empty.
void print_section(const Table& table, const Console& console);

/// Returns the tensors that pass the filter, in natural order of their keys.
std::vector<const StoredTensor*> tensors_in_order(const Catalog& catalog, const KeyFilter& filter);

/// Each of these prints at most `limit` rows and says how many more there are; 0 stands for all.
void print_tensors(const Catalog& catalog, const KeyFilter& filter, std::size_t limit,
                   const Console& console);
void print_chunks(const Catalog& catalog, const KeyFilter& filter, std::size_t limit,
                  const Console& console);
void print_objects(const Catalog& catalog, const KeyFilter& filter, std::size_t limit,
                   const Console& console);
void print_files(const Catalog& catalog, std::size_t limit, const Console& console);
/// Prints what there is by the first `depth` words of keys.
void print_key_groups(const Catalog& catalog, const KeyFilter& filter, std::size_t depth,
                      std::size_t limit, const Console& console);

/// Prints the modules of a job of several; nothing if there are none.
void print_modules(Checkpoint& checkpoint, const Console& console);

}  // namespace reprise::cli
