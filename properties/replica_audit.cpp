#include "properties/replica_audit.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "core/base/hash.hpp"
#include "properties/finding_code.hpp"
#include "properties/global_state.hpp"

namespace reprise {
namespace {

/// Returns the piece's elements, row-major. Undefined elements are replaced by zeros.
Bytes defined_elements(const TensorLeaf& leaf, const Piece& piece,
                       std::span<const Undefined> undefined) {
  const std::size_t width = size_of(leaf.dtype);
  const Dims strides = contiguous_strides(piece.box.extent);
  Bytes elements = elements_of(leaf, piece);
  for (const auto& hole : undefined) {
    if (hole.key != leaf.key) continue;
    const auto common = intersect(hole.box, piece.box);
    if (!common) continue;
    const Box local = relative_to(*common, piece.box.offset);
    const Bytes zeros(static_cast<std::size_t>(local.elements()) * width);
    const auto at = static_cast<std::size_t>(linear_index(local.offset, piece.box.extent));
    copy_strided({zeros.data(), contiguous_strides(local.extent)},
                 {elements.data() + at * width, strides}, local.extent, width);
  }
  return elements;
}

std::int64_t block_of(std::int64_t elements) {
  return std::max<std::int64_t>(1, (elements + kAuditBlocks - 1) / kAuditBlocks);
}

std::vector<std::uint64_t> block_hashes(const Bytes& elements, std::size_t width) {
  const auto count = static_cast<std::int64_t>(elements.size() / width);
  const std::size_t block = static_cast<std::size_t>(block_of(count)) * width;
  std::vector<std::uint64_t> hashes;
  for (std::size_t at = 0; at < elements.size(); at += block) {
    hashes.push_back(
        hash_of(ByteSpan(elements).subspan(at, std::min(block, elements.size() - at))));
  }
  return hashes;
}

bool before(const HeldItem& a, const HeldItem& b) {
  return a.key == b.key ? a.box < b.box : a.key < b.key;
}

// --- judging ------------------------------------------------------------------------------------

struct Copy {
  GlobalRank rank;
  const HeldItem* item;
};

std::string name(GlobalRank rank) { return "rank " + std::to_string(rank.value); }

/// Returns the box as text for messages. Empty for objects and scalars, which have no dimensions
/// and are compared as a whole.
std::string where(const HeldItem& item) {
  return item.box.ndim() == 0 ? "" : " " + to_string(item.box);
}

class Audit {
 public:
  explicit Audit(Pages which) : which_(which) {}

  void item(const std::vector<Copy>& copies) {
    equal(copies);
    written_once(copies);
  }

  void common(std::span<const AuditPage> pages) {
    const AuditPage& first = pages.front();
    for (const auto& page : pages) {
      for (const auto& path : differing(first.common, page.common)) {
        find(Code::kCommonStateDiverges, "common" + path, page.rank,
             "differs between " + name(first.rank) + " and " + name(page.rank) +
                 "; it is stored once for all ranks");
      }
    }
  }

  judged::Findings findings;

 private:
  void find(FindingCode code, const std::string& key, GlobalRank rank, std::string message,
            SourceLine line = SourceLine::here()) {
    if (!found_.insert({code, key}).second) return;
    findings.push_back({code, key, std::move(message), rank, line});
  }

  void equal(const std::vector<Copy>& copies) {
    const Copy& first = copies.front();
    for (const auto& copy : copies) {
      if (copy.item->hashes == first.item->hashes) continue;
      return find(judged::kFalseReplica, first.item->key, copy.rank,
                  name(first.rank) + " and " + name(copy.rank) + " hand" + where(*first.item) +
                      " to the save as copies " + std::to_string(first.item->replica) + " and " +
                      std::to_string(copy.item->replica) +
                      " of the same data, but their bytes differ" +
                      differing_elements(*first.item, *copy.item));
    }
  }

  void written_once(const std::vector<Copy>& copies) {
    const Copy* writer = nullptr;
    for (const auto& copy : copies) {
      if (copy.item->replica != 0) continue;
      if (writer != nullptr) {
        return find(Code::kMultiWriter, copy.item->key, copy.rank,
                    name(writer->rank) + " and " + name(copy.rank) + " both hold the main copy" +
                        (copy.item->box.ndim() == 0 ? "" : " of" + where(*copy.item)));
      }
      writer = &copy;
    }
    if (writer != nullptr || which_ == Pages::kSome) return;
    const Copy& first = copies.front();
    find(Code::kNoWriter, first.item->key, first.rank,
         "no rank holds the main copy" +
             (first.item->box.ndim() == 0 ? "" : " of" + where(*first.item)) + "; " +
             name(first.rank) + " has copy " + std::to_string(first.item->replica));
  }

  static std::vector<std::string> differing(const std::vector<HeldCommon>& a,
                                            const std::vector<HeldCommon>& b) {
    std::map<std::string, std::vector<std::uint64_t>> hashes;
    for (const auto* side : {&a, &b}) {
      for (const auto& entry : *side) hashes[entry.path].push_back(entry.hash);
    }
    std::vector<std::string> paths;
    for (const auto& [path, both] : hashes) {
      if (both.size() != 2 || both[0] != both[1]) paths.push_back(path);
    }
    return paths;
  }

  Pages which_;
  std::set<std::pair<FindingCode, std::string>> found_;
};

}  // namespace

AuditPage audit_page(GlobalRank rank, Step step, const StateDict& saved,
                     std::span<const Undefined> undefined) {
  AuditPage page{rank, step.value, {}, {}};
  for (const auto& leaf : saved.tensors) {
    for (const auto& piece : leaf.pieces) {
      if (piece.box.empty()) continue;
      page.items.push_back(
          {leaf.key, piece.box, leaf.replica,
           block_hashes(defined_elements(leaf, piece, undefined), size_of(leaf.dtype))});
    }
  }
  for (const auto& leaf : saved.objects) {
    page.items.push_back({stored_key(leaf), {}, leaf.replica, {hash_of(leaf.value)}});
  }
  std::sort(page.items.begin(), page.items.end(), before);
  const auto* entries = saved.common.as<Dict>();
  for (const auto& [key, value] : entries == nullptr ? Dict{} : *entries) {
    std::ostringstream path;
    path << '[' << key << ']';
    page.common.push_back({path.str(), hash_of(value)});
  }
  return page;
}

std::string differing_elements(const HeldItem& a, const HeldItem& b) {
  if (a.box.ndim() == 0 || a.hashes.size() != b.hashes.size()) return "";
  const auto differ = std::mismatch(a.hashes.begin(), a.hashes.end(), b.hashes.begin());
  const std::int64_t block = block_of(a.box.elements());
  const std::int64_t begin = (differ.first - a.hashes.begin()) * block;
  const std::int64_t end = std::min(begin + block, a.box.elements());
  const auto global = [&a](std::int64_t at) {
    Dims index = index_at(at, a.box.extent);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += a.box.offset[d];
    return to_string(index);
  };
  if (end - begin == 1) return "; the first that differs is element " + global(begin);
  return "; the first that differs is among the " + std::to_string(end - begin) +
         " elements from " + global(begin) + " to " + global(end - 1);
}

judged::Findings judge_replicas(std::span<const AuditPage> pages, Pages which) {
  Audit audit(which);
  if (pages.empty()) return {};
  std::map<std::pair<std::string, Box>, std::vector<Copy>> copies;
  for (const auto& page : pages) {
    for (const auto& item : page.items) copies[{item.key, item.box}].push_back({page.rank, &item});
  }
  for (const auto& [place, all] : copies) audit.item(all);
  audit.common(pages);
  return std::move(audit.findings);
}

}  // namespace reprise
