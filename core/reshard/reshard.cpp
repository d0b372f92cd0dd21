#include "core/reshard/reshard.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/checkpoint/tensor_reader.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/ports/store_path.hpp"
#include "core/reshard/reshard_seamed.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20U;
/// Estimated number of bytes written for each part besides its elements. Includes the part's share
/// of the small files.
constexpr std::uint64_t kAroundPart = 4096;

/// Keeps a reader for each tensor. A tensor's checksum can be verified only after its reader has
/// delivered all elements.
class Readers {
 public:
  explicit Readers(const ReaderResources& resources)
      : resources_(resources), readers_(resources.checkpoint.catalog().tensors.size()) {}

  TensorReader& of(std::uint32_t tensor) {
    auto& reader = readers_[tensor];
    if (!reader) {
      reader = std::make_unique<TensorReader>(resources_,
                                              resources_.checkpoint.catalog().tensors[tensor]);
    }
    return *reader;
  }

  /// Opens what was not needed, so that damage in items without elements is not passed over.
  void open_rest() {
    for (std::uint32_t tensor = 0; tensor < readers_.size(); ++tensor) of(tensor).open_rest();
  }

  void require_all_judged() const {
    for (const auto& reader : readers_) CHECK(!reader || reader->judged());
  }

 private:
  ReaderResources resources_;
  std::vector<std::unique_ptr<TensorReader>> readers_;
};

/// Supplies the parts of one writer by reading the old chunks.
class PartSource final : public ContentSource {
 public:
  PartSource(Readers& readers, const Catalog& catalog, const std::vector<WriterShare::Part>& parts,
             ByteProgress& progress, const ReshardSeams& seams)
      : readers_(readers), catalog_(catalog), parts_(parts), progress_(progress), seams_(seams) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    const WriterShare::Part& part = parts_[item];
    readers_.of(part.tensor).read(seams_.read_from(part.box, begin, end), out.data());
    progress_.go(catalog_.tensors[part.tensor].key, out.size());
  }

  void drain() override {}

 private:
  Readers& readers_;
  const Catalog& catalog_;
  const std::vector<WriterShare::Part>& parts_;
  ByteProgress& progress_;
  const ReshardSeams& seams_;
};

/// Returns patches that add the missing checksums to the item's records. Returns no patches if the
/// item is not an archive.
std::vector<Archive::Patch> missing_checksums(ItemSource& item) {
  Bytes first(std::min<std::uint64_t>(item.size(), kItemKindBytes));
  item.read_at(0, first);
  if (item_kind_of(first) != ItemKind::kArchive) return {};
  return Archive(item).missing_checksums();
}

class Resharder {
 public:
  /// `opened` is the checkpoint as it is on disk. `source` is the same checkpoint with the metadata
  /// that choose_values() returned.
  Resharder(const Checkpoint& opened, Checkpoint& source, CommitTarget target,
            const ReshardOptions& options, const ReshardPorts& ports, const ReshardSeams& seams)
      : opened_(opened),
        source_(source),
        target_(std::move(target)),
        options_(options),
        ports_(ports),
        seams_(seams),
        checks_(seams.compares_checksums(options)),
        staging_(kStagingBytes),
        readers_({source, ports.device, staging_, checks_ ? &tally_ : nullptr}),
        progress_(ports.progress),
        metadata_(source.metadata()) {}

  ReshardReport run() {
    const Catalog& old = source_.catalog();
    opened_.require_common_if_megatron();
    require_readable_manifest(source_);
    require_readable_backend();
    const auto shares = options_.boxes_for
                            ? plan_boxes(old, options_.boxes_for(old), options_.writers)
                            : plan_reshard(old, options_.rule, options_.writers, seams_);
    for (const auto& share : shares) progress_.expect(share.bytes);
    beside_ = beside_payload(opened_);
    own_common_ = has_own_common_file(source_);
    if (own_common_) beside_.files.push_back({std::string(kCommonFile), bytes_of(kCommonFile)});
    progress_.expect(beside_.bytes());
    for (const WrittenInstead& file : options_.files) progress_.expect(file.bytes.size());
    refuse_hostile_objects();
    require_space(shares);
    try {
      prepare(ports_.store, target_);
      note_beside(ports_.store, target_.saving(), target_.claim.token, beside_.all_names());
      start_catalog();
      from_one_checkpoint(
          [&] {
            for (std::size_t w = 0; w < shares.size(); ++w) write_share(w, shares[w]);
            copy_common();
            write_instead();
            copy_beside();
          },
          [this] {
            opened_.require_in_place();
            source_.require_files_in_place();
          });
      judge_checksums();
      if (options_.last_look) options_.last_look();
      commit();
    } catch (const std::exception&) {
      abandon(ports_.store, target_);
      throw;
    }
    report_.log = std::move(target_.claim.notes);
    count(old);
    return report_;
  }

 private:
  /// Refuses a metadata.json that can't be read or names another format: the copy would be as
  /// unusable.
  void require_readable_backend() const {
    const auto bytes = source_.small_file(kBackendFile);
    if (!bytes || !source_.has_backend_file()) return;
    const auto path = join_path(source_.location().directory, std::string(kBackendFile));
    read_backend_info(*bytes, {.file = source_.store().display(path)});
  }

  /// Refuses objects that contain forbidden names, such as os.system. Objects are copied as bytes,
  /// so the copy would contain the same names.
  void refuse_hostile_objects() {
    for (const auto& object : source_.catalog().objects) {
      read_bytes_item(*source_.slice(object.key, object.file, object.range));
      progress_.go(object.key, 0);
    }
    static_cast<void>(source_.common());
  }

  void require_space(const std::vector<WriterShare>& shares) const {
    std::uint64_t needed = progress_.expected();
    for (const auto& share : shares) needed += kAroundPart * (share.parts.size() + 1);
    reprise::require_space(ports_.store, target_, needed);
  }

  /// Creates the new catalog: it has the old keys, dtypes and logical shapes, but no chunks yet.
  void start_catalog() {
    Catalog& catalog = metadata_.catalog;
    catalog.files.clear();
    for (auto& tensor : catalog.tensors) {
      tensor.shape = logical_shape(tensor);
      tensor.original_shape = {};
      tensor.chunks.clear();
    }
    metadata_.has_local_plans = false;
  }

  FileIndex new_file(std::size_t writer, int number) {
    metadata_.catalog.files.push_back("__" + std::to_string(writer) + "_" + std::to_string(number) +
                                      ".distcp");
    return static_cast<FileIndex>(metadata_.catalog.files.size() - 1);
  }

  std::string path_of(const std::string& name) const { return join_path(target_.saving(), name); }

  void write_share(std::size_t writer, const WriterShare& share) {
    int number = 0;
    if (!share.parts.empty()) write_tensors(share.parts, new_file(writer, number++));
    if (!share.objects.empty()) write_objects(share.objects, new_file(writer, number));
  }

  void write_tensors(const std::vector<WriterShare::Part>& parts, FileIndex file) {
    const Catalog& old = source_.catalog();
    std::vector<ImageItem> items;
    for (const auto& part : parts) {
      items.push_back({.key = old.tensors[part.tensor].key,
                       .dtype = old.tensors[part.tensor].dtype,
                       .extent = part.box.extent,
                       .content = {},
                       .folded = old.tensors[part.tensor].folded});
    }
    ImageOptions image = options_.image;
    image.checksums = Checksums::kCrc32AndSha256;
    const std::string& name = metadata_.catalog.files[file];
    ImageWriter writer(ports_.store, ports_.tasks, path_of(name), std::move(items), image);
    PartSource source(readers_, old, parts, progress_, seams_);
    writer.stage(source);
    const WrittenFile written = writer.finish();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      metadata_.catalog.tensors[parts[i].tensor].chunks.push_back(
          {parts[i].box, file, written.ranges[i]});
    }
    const WrittenContent content{written.bytes, *written.sha256};
    confirm_written(ports_.store, path_of(name), content, progress_);
    add_payload(name, content);
    tally_.require_no_damage();
  }

  void add_payload(const std::string& name, const WrittenContent& written) {
    report_.bytes += written.bytes;
    note(name, written);
  }

  /// Records a written file, so that the manifest lists it and the commit checks that it exists.
  void note(const std::string& name, const WrittenContent& written) {
    content_.payload.push_back({name, written.bytes});
    if (name.find('/') == std::string::npos) content_.digests.push_back({name, written.sha256});
  }

  void write_objects(const std::vector<std::uint32_t>& objects, FileIndex file) {
    const std::string& name = metadata_.catalog.files[file];
    CopiedFile out(ports_.store, path_of(name), progress_);
    std::vector<CopiedItem> copied;
    for (const auto index : objects) {
      const StoredObject& object = source_.catalog().objects[index];
      std::unique_ptr<ItemSource> item = source_.slice(object.key, object.file, object.range);
      if (options_.common && object.key == kCommonObjectKey) {
        new_common_ = write_bytes_item(List{*options_.common});
        item = std::make_unique<SpanSource>(new_common_, item->place_at(0));
      }
      StoredObject& copy = metadata_.catalog.objects[index];
      copied.push_back(copy_item(*item, out, object.key));
      copy.file = file;
      copy.range = copied.back().range;
    }
    add_payload(name, out.finish());
    check_copies(name, copied);
  }

  /// An item that was copied byte for byte.
  struct CopiedItem {
    ByteRange range;         ///< where the copy lies in the new file
    ErrorPlace from;         ///< where the item lies in the source, for messages
    bool completed = false;  ///< true if missing checksums were added
  };

  CopiedItem copy_item(ItemSource& item, CopiedFile& out, const std::string& key) {
    std::vector<Archive::Patch> patches;
    if (checks_) patches = missing_checksums(item);
    if (!patches.empty()) tally_.add(item, key);
    ErrorPlace from = item.place_at(0);
    from.key = key;
    return {out.append(item, patches), from, !patches.empty()};
  }

  /// Reads the copied records back from the new file and compares them with their checksums.
  void check_copies(const std::string& name, const std::vector<CopiedItem>& copied) {
    if (!checks_) return;
    WholeFile file(ports_.store, path_of(name));
    for (const CopiedItem& item : copied) {
      PartOf part(file, item.range, item.from);
      if (!item.completed) {
        tally_.add(part, item.from.key);
        continue;
      }
      ChecksumTally of_copy;
      of_copy.add(part, item.from.key);
      of_copy.require_matches([](const std::string&) { return true; });
    }
    tally_.require_no_damage();
  }

  std::uint64_t bytes_of(std::string_view name) const {
    const auto path = join_path(source_.location().directory, std::string(name));
    const auto found = source_.store().stat(path);
    return found ? found->size : 0;
  }

  /// Copies metadata.json and common.pt. Skips common.pt if it is not the common state but a file
  /// of the user.
  void copy_common() {
    if (!source_.location().torch_dist()) return;
    for (const auto name : {kCommonFile, kBackendFile}) {
      const std::string from = join_path(source_.location().directory, std::string(name));
      const bool own = name == kCommonFile && own_common_;
      const bool replaced =
          std::ranges::find(options_.files, name, &WrittenInstead::name) != options_.files.end();
      if (own || replaced || !source_.store().stat(from)) continue;
      CopiedFile out(ports_.store, path_of(std::string(name)), progress_);
      if (options_.common && name == kCommonFile) {
        new_common_ = common_file(*options_.common);
        SpanSource made(new_common_);
        out.append(made);
        note(std::string(name), out.finish());
        continue;
      }
      WholeFile item(source_.store(), from);
      if (name == kBackendFile) {
        out.append(item);
        note(std::string(name), out.finish());
        continue;
      }
      const CopiedItem copied = copy_item(item, out, std::string(name));
      note(std::string(name), out.finish());
      check_copies(std::string(name), {copied});
    }
  }

  void write_instead() {
    for (const WrittenInstead& file : options_.files) {
      SpanSource item(file.bytes);
      CopiedFile out(ports_.store, path_of(file.name), progress_);
      out.append(item);
      note(file.name, out.finish());
    }
  }

  /// Copies, byte for byte, the files next to the payload.
  void copy_beside() {
    const auto from = [this](const std::string& name) {
      return join_path(source_.location().directory, name);
    };
    for (const std::string& name : beside_.directories) {
      ports_.store.make_directory(path_of(name));
    }
    for (const auto& file : beside_.files) {
      WholeFile whole(source_.store(), from(file.name));
      CopiedFile out(ports_.store, path_of(file.name), progress_);
      out.append(whole);
      note(file.name, out.finish());
    }
    for (const std::string& name : beside_.directories) {
      ports_.store.sync_directory(path_of(name));
    }
    report_.carried = beside_.names();
    report_.left_out = beside_.left_out;
  }

  /// Throws the first error that was found when delivered data was compared with its checksums.
  /// Adds all other findings to the report.
  void judge_checksums() {
    readers_.open_rest();
    readers_.require_all_judged();
    for (Finding& finding : tally_.findings()) {
      if (finding.severity == Severity::kError) {
        throw Error(finding.code, finding.message,
                    {.key = finding.key, .file = finding.file, .offset = finding.offset});
      }
      report_.notes.push_back(std::move(finding));
    }
  }

  void commit() {
    content_.metadata = std::move(metadata_);
    content_.metadata.write_strides = options_.strides;
    content_.manifest = has_manifest(source_);
    auto steps = commit_protocol(ports_.store, target_, content_);
    const auto swap_in = std::ranges::find(steps, "swap_in", &ProtocolStep::name);
    CHECK(swap_in != steps.end());
    if (options_.judge) {
      swap_in->run = [this, swap = std::move(swap_in->run)] {
        options_.judge(target_.saving());
        swap();
      };
    }
    run_protocol(steps, phase::kCommit, ports_.trace);
    metadata_ = std::move(content_.metadata);
  }

  void count(const Catalog& old) {
    report_.tensors = old.tensors.size();
    report_.objects = old.objects.size();
    report_.files = metadata_.catalog.files.size();
    for (std::size_t t = 0; t < old.tensors.size(); ++t) {
      const auto& tensor = metadata_.catalog.tensors[t];
      report_.elements += static_cast<std::uint64_t>(volume(tensor.shape));
      report_.chunks_before += old.tensors[t].chunks.size();
      report_.chunks_after += tensor.chunks.size();
    }
  }

  const Checkpoint& opened_;
  Checkpoint& source_;
  CommitTarget target_;
  const ReshardOptions& options_;
  const ReshardPorts& ports_;
  const ReshardSeams& seams_;
  bool checks_;  ///< true if what is read is compared with its checksums
  Bytes staging_;
  ChecksumTally tally_;  ///< compares delivered data with checksums
  Readers readers_;
  ByteProgress progress_;
  BesidePayload beside_;
  Bytes new_common_;         ///< the common state that is written in the place of the stored one
  bool own_common_ = false;  ///< true if common.pt is a user's own file
  CommitContent content_ = {};
  Metadata metadata_;  ///< metadata of the new checkpoint
  ReshardReport report_;
};

}  // namespace

Metadata take_all(Metadata source) { return source; }

bool checksums_requested(const ReshardOptions& options) { return options.checksums; }

ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports) {
  return reshard(source, target, options, ports, {});
}

ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports, const ReshardSeams& seams) {
  require_apart(source);
  ChosenValues chosen = choose_values(source, options.ranks, ports.device, seams);
  for (const std::string& key : options.left_objects) {
    std::erase_if(chosen.metadata.catalog.objects,
                  [&](const StoredObject& object) { return object.key == key; });
  }
  Checkpoint written(source.store(), source.location(), seams.carried(std::move(chosen.metadata)));
  ReshardReport report = Resharder(source, written, target, options, ports, seams).run();
  report.ranks = written.metadata().ranks.size();
  report.dropped = std::move(chosen.dropped);
  report.of_first = std::move(chosen.of_first);
  return report;
}

}  // namespace reprise
