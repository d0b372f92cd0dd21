#include "core/engine/verify.hpp"

#include <utility>

#include "core/engine/checksum_tally.hpp"
#include "core/engine/module_values.hpp"
#include "core/engine/verify_catalog.hpp"
#include "core/engine/verify_directory.hpp"
#include "core/engine/verify_objects.hpp"
#include "core/engine/verify_payload.hpp"
#include "core/format/common_state.hpp"
#include "core/ports/store_path.hpp"

namespace reprise {
namespace {

void take(Findings more, VerifyReport& report) {
  for (auto& finding : more) report.findings.push_back(std::move(finding));
}

/// What is wrong with the metadata itself stands in its file, unless a finding knows better.
void take_of_metadata(Findings more, const Checkpoint& checkpoint, VerifyReport& report) {
  for (auto& finding : more) {
    if (finding.file.empty()) {
      finding.file =
          checkpoint.store().display(join_path(checkpoint.location().directory, ".metadata"));
    }
  }
  take(std::move(more), report);
}

std::vector<StoredFile> stored_files(Checkpoint& checkpoint) {
  std::vector<StoredFile> files;
  for (FileIndex i = 0; i < checkpoint.catalog().files.size(); ++i) {
    const auto entry = checkpoint.store().stat(checkpoint.path_of(i));
    const bool there = entry && !entry->directory;
    files.push_back({checkpoint.display(i), there ? std::optional(entry->size) : std::nullopt});
  }
  return files;
}

void count(const Catalog& catalog, VerifyReport& report) {
  report.tensors = catalog.tensors.size();
  report.objects = catalog.objects.size();
  report.files = catalog.files.size();
  for (const auto& tensor : catalog.tensors) {
    report.elements += static_cast<std::uint64_t>(volume(logical_shape(tensor)));
    for (const auto& chunk : tensor.chunks) report.bytes += chunk.range.size;
  }
  for (const auto& object : catalog.objects) report.bytes += object.range.size;
}

/// The file stands beside the payload, so its checksums are judged by themselves.
Findings check_common_file(Checkpoint& checkpoint) {
  Store& store = checkpoint.store();
  const std::string path = join_path(checkpoint.location().directory, std::string(kCommonFile));
  const Bytes bytes = read_all(store, path, kBytesItemMax);
  SpanSource source(bytes, {.file = store.display(path)});
  ChecksumTally tally;
  tally.add(source, std::string(kCommonFile));
  return tally.findings();
}

/// The common state, if there is one and it can be read.
std::optional<Value> check_common(Checkpoint& checkpoint, VerifyReport& report) {
  try {
    auto common = checkpoint.common();
    if (!common) return std::nullopt;
    if (common->source == kCommonFile) take(check_common_file(checkpoint), report);
    if (!common->item.value) {
      report.opaque.push_back(common->source);
      report.findings.push_back({Severity::kNote, Code::kUnsupported,
                                 "the common state is opaque, so whether it fits the objects "
                                 "can't be checked: " +
                                     common->item.opaque_because,
                                 common->source});
      return std::nullopt;
    }
    take(check_rerun(*common->item.value, checkpoint.catalog()), report);
    return std::move(common->item.value);
  } catch (const Error& error) {
    take({finding_from(error)}, report);
    return std::nullopt;
  }
}

void check_modules(Checkpoint& checkpoint, const std::optional<Value>& common, PayloadCheck payload,
                   VerifyReport& report) {
  StoredModules modules = modules_of(checkpoint.catalog(), common ? &*common : nullptr);
  take_of_metadata(check_modules(modules), checkpoint, report);
  if (payload == PayloadCheck::kRead) take(read_module_values(checkpoint, modules), report);
  take(check_sharding_types(modules), report);
}

/// The checkpoint, or nothing if it can't be opened; the report then says why.
std::optional<Checkpoint> open(Store& store, const std::string& path, VerifyReport& report) {
  try {
    return Checkpoint::open(store, path);
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound || error.code() == Code::kIo) throw;
    take({finding_from(error.within({.file = store.display(path)}))}, report);
    return std::nullopt;
  }
}

}  // namespace

VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload,
                    Progress& progress) {
  VerifyReport report;
  auto checkpoint = open(store, path, report);
  if (!checkpoint) return report;
  const Catalog& catalog = checkpoint->catalog();
  report.location = checkpoint->location();
  count(catalog, report);
  for (const auto& note : checkpoint->metadata().notes) {
    report.findings.push_back({Severity::kNote, Code::kUnsupported, note});
  }
  const auto files = stored_files(*checkpoint);
  take_of_metadata(check_cover(catalog, files), *checkpoint, report);
  take(check_storage(catalog, files), report);
  take_of_metadata(check_grids(catalog), *checkpoint, report);
  const auto common = check_common(*checkpoint, report);
  check_modules(*checkpoint, common, payload, report);
  take(check_backend_info(*checkpoint), report);
  take(check_stale_files(*checkpoint), report);
  take(check_leftovers(*checkpoint), report);
  if (payload == PayloadCheck::kRead) {
    verify_payload(*checkpoint, files, progress, report);
    take(check_manifest(*checkpoint, progress), report);
  }
  return report;
}

}  // namespace reprise
