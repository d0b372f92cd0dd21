#include "cli/output/inspect_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "cli/output/describe.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/geometry/folded_shape.hpp"
#include "core/state/state_dict.hpp"
#include "core/summary/key_groups.hpp"
#include "core/verify/module_values.hpp"

namespace reprise::cli {
namespace {

/// All shards of one object.
struct ObjectRow {
  std::set<std::string> grids;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
};

/// The contents of one payload file.
struct FileRow {
  std::uint64_t chunks = 0;
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
};

std::string file_name(const Catalog& catalog, FileIndex file) {
  return file == kNoFile ? "(none)" : catalog.files[file];
}

std::map<std::string, ObjectRow> object_rows(const Catalog& catalog, const KeyFilter& filter) {
  std::map<std::string, ObjectRow> rows;
  for (const auto& object : catalog.objects) {
    if (!filter.wants(object.key)) continue;
    const auto parsed = parse_object_key(object.key);
    ObjectRow& row = rows[parsed ? parsed->key : object.key];
    if (parsed) row.grids.insert(to_string(parsed->grid));
    ++row.shards;
    row.bytes += object.range.size;
  }
  return rows;
}

std::vector<FileRow> file_rows(const Catalog& catalog) {
  std::vector<FileRow> rows(catalog.files.size());
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) {
      if (chunk.file == kNoFile) continue;
      ++rows[chunk.file].chunks;
      rows[chunk.file].bytes += chunk.range.size;
    }
  }
  for (const auto& object : catalog.objects) {
    if (object.file == kNoFile) continue;
    ++rows[object.file].objects;
    rows[object.file].bytes += object.range.size;
  }
  return rows;
}

std::string grids_of(const StoredModule& module) {
  const std::string grid = describe_rng_grid(module.rng_grid);
  const std::string experts = describe_expert_grid(module.expert_rng_grid);
  if (experts.empty()) return grid.empty() ? "-" : grid;
  return (grid.empty() ? "" : grid + "; ") + "experts " + experts;
}

/// Prints the first rows, and how many there are beyond.
template <class Rows, class Add>
void print_limited(Table table, const Rows& rows, std::size_t limit, std::string_view noun,
                   const Console& console, const Add& add) {
  const std::size_t shown = limit == 0 ? rows.size() : std::min(limit, rows.size());
  for (std::size_t i = 0; i < shown; ++i) add(table, rows[i]);
  print_section(table, console);
  if (shown < rows.size()) {
    const std::size_t more = rows.size() - shown;
    console.out << fmt::format("... {} more {}{}; --limit 0 lists all\n", with_commas(more), noun,
                               more == 1 ? "" : "s");
  }
}

}  // namespace

void print_section(const Table& table, const Console& console) {
  if (table.empty()) return;
  console.out << '\n';
  table.print(console);
}

std::vector<const StoredTensor*> tensors_in_order(const Catalog& catalog, const KeyFilter& filter) {
  std::vector<const StoredTensor*> tensors;
  for (const auto& tensor : catalog.tensors) {
    if (filter.wants(tensor.key)) tensors.push_back(&tensor);
  }
  std::ranges::stable_sort(tensors, [](const StoredTensor* a, const StoredTensor* b) {
    return in_natural_order(a->key, b->key);
  });
  return tensors;
}

void print_tensors(const Catalog& catalog, const KeyFilter& filter, std::size_t limit,
                   const Console& console) {
  print_limited(Table({{"tensor"},
                       {"dtype"},
                       {"shape"},
                       {"cut"},
                       {"chunks", Align::kRight},
                       {"size", Align::kRight}}),
                tensors_in_order(catalog, filter), limit, "tensor", console,
                [](Table& table, const StoredTensor* tensor) {
                  table.add({tensor->key, std::string(name_of(tensor->dtype)),
                             shape_text(all_extents(*tensor)), describe_cut(*tensor),
                             with_commas(tensor->chunks.size()), human_bytes(bytes_of(*tensor))});
                });
}

void print_chunks(const Catalog& catalog, const KeyFilter& filter, std::size_t limit,
                  const Console& console) {
  std::vector<std::pair<const StoredTensor*, const StoredChunk*>> chunks;
  for (const StoredTensor* tensor : tensors_in_order(catalog, filter)) {
    for (const auto& chunk : tensor->chunks) chunks.emplace_back(tensor, &chunk);
  }
  print_limited(
      Table(
          {{"tensor"}, {"chunk"}, {"file"}, {"offset", Align::kRight}, {"length", Align::kRight}}),
      chunks, limit, "chunk", console, [&catalog](Table& table, const auto& row) {
        const StoredChunk& chunk = *row.second;
        table.add({row.first->key, to_string(chunk.box), file_name(catalog, chunk.file),
                   std::to_string(chunk.range.offset), std::to_string(chunk.range.size)});
      });
}

void print_objects(const Catalog& catalog, const KeyFilter& filter, std::size_t limit,
                   const Console& console) {
  const auto rows = object_rows(catalog, filter);
  std::vector<std::pair<std::string, ObjectRow>> sorted(rows.begin(), rows.end());
  std::ranges::stable_sort(
      sorted, [](const auto& a, const auto& b) { return in_natural_order(a.first, b.first); });
  print_limited(Table({{"object"}, {"grid"}, {"shards", Align::kRight}, {"size", Align::kRight}}),
                sorted, limit, "object", console, [](Table& table, const auto& entry) {
                  const ObjectRow& row = entry.second;
                  table.add({entry.first, row.grids.empty() ? "-" : join(row.grids, " "),
                             with_commas(row.shards), human_bytes(row.bytes)});
                });
}

void print_files(const Catalog& catalog, std::size_t limit, const Console& console) {
  const auto rows = file_rows(catalog);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return in_natural_order(catalog.files[a], catalog.files[b]);
  });
  print_limited(Table({{"file"},
                       {"chunks", Align::kRight},
                       {"objects", Align::kRight},
                       {"size", Align::kRight}}),
                order, limit, "file", console, [&](Table& table, std::size_t f) {
                  table.add({catalog.files[f], with_commas(rows[f].chunks),
                             with_commas(rows[f].objects), human_bytes(rows[f].bytes)});
                });
}

void print_key_groups(const Catalog& catalog, const KeyFilter& filter, std::size_t depth,
                      std::size_t limit, const Console& console) {
  const auto groups =
      key_groups(catalog, depth, [&filter](std::string_view key) { return filter.wants(key); });
  print_limited(Table({{"keys"},
                       {"tensors", Align::kRight},
                       {"parameters", Align::kRight},
                       {"size", Align::kRight},
                       {"dtypes"},
                       {"objects", Align::kRight},
                       {"size", Align::kRight}}),
                groups, limit, "group", console, [](Table& table, const KeyGroupAmount& group) {
                  table.add({group.group, with_commas(group.tensors), with_commas(group.elements),
                             human_bytes(group.bytes), join(group.dtypes, ", "),
                             with_commas(group.objects), human_bytes(group.object_bytes)});
                });
}

void print_modules(Checkpoint& checkpoint, const Console& console) {
  const auto common = checkpoint.common();
  const bool readable = common && common->item.value;
  const auto modules = inspected_modules(checkpoint, readable ? &*common->item.value : nullptr);
  Table table({{"module"},
               {"keys"},
               {"tensors", Align::kRight},
               {"elements", Align::kRight},
               {"size", Align::kRight},
               {"optimizer"},
               {"its metadata"},
               {"random states"},
               {"layout"}});
  for (const StoredModule& module : modules.modules) {
    table.add({module.name, std::string(module.stored() ? name_of(module.form()) : "none"),
               with_commas(module.tensors), with_commas(module.elements), human_bytes(module.bytes),
               describe_optimizers(modules, module), describe_parts(modules, module),
               grids_of(module), module.claim ? module.claim->layout : "-"});
  }
  print_section(table, console);
}

}  // namespace reprise::cli
