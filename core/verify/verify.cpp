#include "core/verify/verify.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/print.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/format/common_state.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/ports/whole_file.hpp"
#include "core/verify/module_values.hpp"
#include "core/verify/verify_catalog.hpp"
#include "core/verify/verify_directory.hpp"
#include "core/verify/verify_mixture.hpp"
#include "core/verify/verify_objects.hpp"
#include "core/verify/verify_payload.hpp"
#include "core/verify/verify_planner.hpp"
#include "core/verify/verify_safetensors.hpp"
#include "core/verify/verify_signs.hpp"

namespace reprise {
namespace {

/// Adds findings to the report. A file that cannot be opened is reported only once.
void take(Findings more, VerifyReport& report) {
  for (auto& finding : more) {
    const bool known =
        finding.code == Code::kIo &&
        std::any_of(
            report.findings.begin(), report.findings.end(), [&finding](const Finding& other) {
              return other.code == Code::kIo && !other.file.empty() && other.file == finding.file;
            });
    if (!known) report.findings.push_back(std::move(finding));
  }
}

/// Adds findings about the metadata. A finding that names no file is attributed to the metadata
/// file.
void take_of_metadata(Findings more, const Checkpoint& checkpoint, VerifyReport& report) {
  for (auto& finding : more) {
    if (finding.file.empty()) {
      const std::string& directory = checkpoint.location().directory;
      const bool single = checkpoint.metadata().ranks.empty() && checkpoint.location().torch_dist();
      finding.file = checkpoint.store().display(
          single ? join_path(directory, std::string(kMetadataFile)) : directory);
    }
  }
  take(std::move(more), report);
}

/// True if Megatron-Core wrote metadata.json. Also true if the file is unreadable, because
/// Megatron-Core may have written it.
bool of_megatron(const Checkpoint& checkpoint) {
  try {
    return checkpoint.of_megatron();
  } catch (const Error&) {
    return true;
  }
}

std::vector<StoredFile> stored_files(Checkpoint& checkpoint) {
  std::vector<StoredFile> files;
  for (FileIndex i = 0; i < checkpoint.catalog().files.size(); ++i) {
    if (i == checkpoint.metadata().made_file) {
      files.push_back({checkpoint.display(i), checkpoint.metadata().made->size(), std::nullopt});
      continue;
    }
    const auto entry = checkpoint.store().stat(checkpoint.path_of(i));
    const bool there = entry && !entry->directory;
    files.push_back({checkpoint.display(i), there ? std::optional(entry->size) : std::nullopt,
                     there ? entry->modified_ns : std::nullopt});
  }
  return files;
}

void count(const Catalog& catalog, FileIndex made_file, VerifyReport& report) {
  report.tensors = catalog.tensors.size();
  report.objects = catalog.objects.size();
  report.files = catalog.files.size() - (made_file == kNoFile ? 0 : 1);
  for (const auto& tensor : catalog.tensors) {
    report.elements += static_cast<std::uint64_t>(volume(logical_shape(tensor)));
    for (const auto& chunk : tensor.chunks) {
      report.bytes += chunk.range.size;
      report.no_checksums = report.no_checksums || chunk.form == ItemForm::kElements;
    }
  }
  for (const auto& object : catalog.objects) report.bytes += object.range.size;
}

/// Checks the checksums in common.pt, which is not part of the payload.
Findings check_common_file(Checkpoint& checkpoint) {
  Store& store = checkpoint.store();
  const std::string path = join_path(checkpoint.location().directory, std::string(kCommonFile));
  const Bytes bytes = read_all(store, path, kBytesItemMax);
  SpanSource source(bytes, {.file = store.display(path)});
  ChecksumTally tally;
  tally.add(source, std::string(kCommonFile));
  return tally.findings();
}

/// Reports a common.pt that is not Megatron-Core's and was therefore skipped.
Findings check_own_common_file(Checkpoint& checkpoint) {
  Store& store = checkpoint.store();
  const std::string path = join_path(checkpoint.location().directory, std::string(kCommonFile));
  if (!store.stat(path)) return {};
  return {{Severity::kNote, Code::kUnsupported, "this is not Megatron-Core's common state; skipped",
           "", store.display(path)}};
}

/// Reports shards that are missing from a grid. The keys of a plain DCP checkpoint may look like
/// shards by chance. If the checkpoint has planner_data and nothing shows that Megatron wrote it,
/// these findings are only notes.
Findings check_shards(Checkpoint& checkpoint) {
  Findings findings = check_grids(checkpoint.catalog());
  if (findings.empty() || checkpoint.metadata().planner_data.empty() || of_megatron(checkpoint)) {
    return findings;
  }
  for (auto& finding : findings) {
    finding.severity = Severity::kNote;
    finding.message +=
        "; this only matters if Megatron-Core wrote the checkpoint, and nothing indicates that it "
        "did";
  }
  return findings;
}

/// Returns the common state; nothing if it does not exist or cannot be read.
std::optional<Value> check_common(Checkpoint& checkpoint, VerifyReport& report) {
  try {
    auto common = checkpoint.common();
    if (!common || common->source != kCommonFile) take(check_own_common_file(checkpoint), report);
    if (!common) return std::nullopt;
    if (common->source == kCommonFile) take(check_common_file(checkpoint), report);
    if (!common->item.value) {
      report.opaque.push_back(common->source);
      report.findings.push_back(
          {Severity::kNote, Code::kUnsupported,
           "the common state is opaque, so it can't be checked against the objects: " +
               common->item.opaque_because,
           common->source});
      return std::nullopt;
    }
    const Value& state = *common->item.value;
    take(check_rerun(state, checkpoint.catalog()), report);
    take_of_metadata(check_random_grid(state, checkpoint.catalog()), checkpoint, report);
    take(check_iteration(state, checkpoint.location().step), report);
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
  if (payload == PayloadCheck::kRead) {
    take(read_module_values(checkpoint, modules), report);
    take_of_metadata(check_progress_of_ranks(checkpoint), checkpoint, report);
  }
  take(check_sharding_types(modules), report);
}

/// Looks for signs that the files come from two saves. This is unnecessary if there is a manifest
/// and all its digests are correct: that proves that all files belong to one save.
void check_mixture(Checkpoint& checkpoint, std::span<const StoredFile> files, PayloadCheck payload,
                   VerifyReport& report) {
  try {
    const bool read = payload == PayloadCheck::kRead;
    const bool is_there = read && has_manifest(checkpoint);
    report.manifest = is_there && manifest_lists_all(checkpoint);
    report.partial_manifest = is_there && !report.manifest;
    if (report.manifest) return;
    take(check_times(checkpoint, files), report);
    if (read) take(check_identical_files(checkpoint, files), report);
  } catch (const Error& error) {
    take({finding_from(error)}, report);
  }
}

void take(HealthReport more, VerifyReport& report) {
  if (!report.health) report.health.emplace();
  report.health->tensors += more.tensors;
  report.health->numbers += more.numbers;
  report.health->buckets += more.buckets;
  for (Finding& finding : more.findings) report.health->findings.push_back(std::move(finding));
  report.health->stats.merge(more.stats);
}

void check_payload(Checkpoint& checkpoint, std::span<const StoredFile> files,
                   const VerifyPorts& ports, const HealthRequest* health, VerifyReport& report) {
  if (health == nullptr) return verify_payload(checkpoint, files, ports, report);
  HealthMeter meter;
  verify_payload(checkpoint, files, ports, report, &meter);
  take(meter.report(checkpoint, health->device, ports.tasks, health->limits), report);
}

/// Verifies the checkpoints within this one. Their errors and warnings are this one's: the program
/// that loads it loads them, too.
void check_within(Checkpoint& checkpoint, PayloadCheck payload, const VerifyPorts& ports,
                  const HealthRequest* health, VerifyReport& report) {
  try {
    for (const std::string& directory : checkpoints_within(checkpoint)) {
      VerifyReport within = verify(checkpoint.store(), directory, payload, ports, health);
      std::erase_if(within.findings,
                    [](const Finding& finding) { return finding.severity == Severity::kNote; });
      const auto placed = [&within](Findings findings) {
        for (Finding& finding : findings) {
          if (finding.file.empty()) finding.file = within.where;
        }
        return findings;
      };
      take(placed(std::move(within.findings)), report);
      if (!within.health) continue;
      within.health->findings = placed(std::move(within.health->findings));
      take(std::move(*within.health), report);
    }
  } catch (const Error& error) {
    take({finding_from(error)}, report);
  }
}

/// What says that nobody can know if the checkpoint is whole.
Finding unplaced_tensors(const Checkpoint& checkpoint) {
  const auto& names = checkpoint.metadata().unplaced;
  return {Severity::kError, Code::kUnsupported,
          counted(names.size(), "tensor") + (names.size() == 1 ? " is" : " are") +
              " stored by each rank without a word of where its part belongs, such as the flat "
              "parameters of FSDP: nothing shows if they are whole: " +
              join_first(names),
          names.front(), checkpoint.store().display(checkpoint.location().directory)};
}

/// Warns of DTensors that ranks replicate and that differ. In files of ranks, a whole tensor of the
/// model or the optimizer is one, unless nothing says where it belongs.
Findings check_replicas_of(const Checkpoint& checkpoint) {
  const auto& unplaced = checkpoint.metadata().unplaced;
  const bool of_ranks = checkpoint.location().form == StoredForm::kRankFiles;
  return check_replicas(checkpoint.catalog(), [&](std::string_view name) {
    return of_ranks && (name.starts_with("model") || name.starts_with("optim")) &&
           std::ranges::find(unplaced, name) == unplaced.end();
  });
}

/// True if the metadata exceeds the reader's size limit; it is then unknown whether the metadata is
/// valid. False if the metadata is small but claims to be large: such metadata is damaged.
bool is_too_large(Store& store, const std::string& path) try {
  read_metadata_files(store, locate(store, path).directory);
  return false;
} catch (const Error& error) {
  return error.code() == Code::kLimit;
}

/// Opens the checkpoint. Returns nothing if that fails; the report then says why.
std::optional<Checkpoint> open(Store& store, const std::string& path, VerifyReport& report) {
  try {
    return Checkpoint::open_any(store, path);
  } catch (const Error& error) {
    if (error.code() == Code::kNotFound || error.code() == Code::kIo) throw;
    Finding finding = finding_from(error.within({.file = store.display(path)}));
    if (error.code() == Code::kLimit && is_too_large(store, path))
      finding.code = Code::kUnsupported;
    take({std::move(finding)}, report);
    return std::nullopt;
  }
}

}  // namespace

VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload, Progress& progress,
                    const HealthRequest* health) {
  TasksAtOnce tasks;
  return verify(store, path, payload, {tasks, progress}, health);
}

VerifyReport verify(Store& store, const std::string& path, PayloadCheck payload,
                    const VerifyPorts& ports, const HealthRequest* health) {
  VerifyReport report;
  auto checkpoint = open(store, path, report);
  return checkpoint ? verify(*checkpoint, payload, ports, health) : report;
}

VerifyReport verify(Checkpoint& checkpoint, PayloadCheck payload, const VerifyPorts& ports,
                    const HealthRequest* health) {
  VerifyReport report;
  Store& store = checkpoint.store();
  const Catalog& catalog = checkpoint.catalog();
  report.location = checkpoint.location();
  report.where = store.display(report.location->path());
  report.payload_read = payload == PayloadCheck::kRead;
  count(catalog, checkpoint.metadata().made_file, report);
  for (const auto& note : checkpoint.metadata().notes) {
    report.findings.push_back({Severity::kNote, Code::kUnsupported, note});
  }
  take(checkpoint.metadata().findings, report);
  const auto files = stored_files(checkpoint);
  if (!report.location->torch_dist()) {
    take_of_metadata(check_cover(catalog, files), checkpoint, report);
    if (!checkpoint.metadata().unplaced.empty()) {
      take({unplaced_tensors(checkpoint)}, report);
    }
    take_of_metadata(check_replicas_of(checkpoint), checkpoint, report);
    if (report.location->form == StoredForm::kSafetensors) {
      take(check_safetensors(checkpoint), report);
    }
    if (payload == PayloadCheck::kRead) {
      check_payload(checkpoint, files, ports, health, report);
    }
    checkpoint.require_in_place();
    return report;
  }
  take_of_metadata(check_cover(catalog, files), checkpoint, report);
  take(check_storage(catalog, files), report);
  take_of_metadata(check_shards(checkpoint), checkpoint, report);
  // Planner data is checked only if a single `.metadata` describes the checkpoint for all ranks.
  if (store.stat(join_path(checkpoint.location().directory, ".metadata"))) {
    take_of_metadata(check_planner(checkpoint.metadata()), checkpoint, report);
  }
  take_of_metadata(check_moments(catalog), checkpoint, report);
  take_of_metadata(check_experts(catalog), checkpoint, report);
  const auto common = check_common(checkpoint, report);
  check_modules(checkpoint, common, payload, report);
  take(check_backend_info(checkpoint), report);
  take(check_stale_files(checkpoint), report);
  take(check_leftovers(checkpoint), report);
  take(check_later_iterations(checkpoint), report);
  take(check_unfinished_marker(checkpoint), report);
  check_within(checkpoint, payload, ports, health, report);
  if (payload == PayloadCheck::kRead) {
    check_payload(checkpoint, files, ports, health, report);
    take(check_manifest(checkpoint, ports), report);
  }
  check_mixture(checkpoint, files, payload, report);
  checkpoint.require_in_place();
  return report;
}

std::string_view name_of(VerifyVerdict verdict) {
  switch (verdict) {
    case VerifyVerdict::kWhole:
      return "whole";
    case VerifyVerdict::kEmpty:
      return "empty";
    case VerifyVerdict::kNotSupported:
      return "not supported";
    case VerifyVerdict::kUnreadable:
      return "unreadable";
    case VerifyVerdict::kDamaged:
      return "damaged";
  }
  return "damaged";
}

VerifyVerdict VerifyReport::verdict() const {
  VerifyVerdict worst = vacuous() ? VerifyVerdict::kEmpty : VerifyVerdict::kWhole;
  for (const Finding& finding : findings) {
    if (finding.severity != Severity::kError) continue;
    worst = std::max(worst, finding.code == Code::kUnsupported ? VerifyVerdict::kNotSupported
                            : finding.code == Code::kIo        ? VerifyVerdict::kUnreadable
                                                               : VerifyVerdict::kDamaged);
  }
  return worst;
}

std::size_t VerifyReport::strict_warnings() const { return count_of(findings, Severity::kWarning); }

}  // namespace reprise
