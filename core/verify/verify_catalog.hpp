#pragma once
// Checks a checkpoint from its metadata and its file sizes only. Pure.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/finding.hpp"
#include "core/state/catalog.hpp"

namespace reprise {

/// A payload file as the store describes it.
struct StoredFile {
  std::string display;
  std::optional<std::uint64_t> size;             ///< empty if the file does not exist
  std::optional<std::int64_t> modified_ns = {};  ///< time of the last change, as in Entry
};

/// Checks that each tensor's chunks tile it exactly and that every item has storage. `files[i]`
/// describes Catalog::files[i]; it is used to report the file of a faulty chunk. `files` may be
/// empty.
Findings check_cover(const Catalog& catalog, std::span<const StoredFile> files = {});

/// Checks that the files exist and that the items lie within them without overlap. `files[i]`
/// describes Catalog::files[i]. Returns one finding for each kind of problem in each file. A
/// finding describes the first faulty item and gives the number of other faulty items.
Findings check_storage(const Catalog& catalog, std::span<const StoredFile> files);

/// Warns of replicas that differ: tensors of which several ranks have the same part, with other
/// checksums. Knows such parts in files of torch.save alone. A whole tensor of each rank may be
/// each rank's own, unless `replicated` says of its name that it is not.
Findings check_replicas(const Catalog& catalog,
                        const std::function<bool(std::string_view)>& replicated);

/// True if the item's range lies within its file, so that it can be read.
bool is_readable(FileIndex file, ByteRange range, std::span<const StoredFile> files);

}  // namespace reprise
