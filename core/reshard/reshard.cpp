#include "core/reshard/reshard.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/batches.hpp"
#include "core/checkpoint/beside_payload.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/checksum_tally.hpp"
#include "core/checkpoint/copied_file.hpp"
#include "core/checkpoint/earliest_failure.hpp"
#include "core/checkpoint/extents.hpp"
#include "core/checkpoint/piece_reader.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/tasks_at_once.hpp"
#include "core/reshard/reshard_seamed.hpp"

namespace reprise {
namespace {

/// Size of the batches of a file that one thread reads and writes; they fit into its cache.
constexpr std::uint64_t kThreadBatchBytes = std::uint64_t{1} << 20U;
/// Estimated number of bytes written for each part besides its elements. Includes the part's share
/// of the small files.
constexpr std::uint64_t kAroundPart = 4096;

/// Thrown by the writer of a file that is not needed any more.
struct Stopped final : std::exception {};

/// Supplies the parts of one writer by reading the old chunks.
class PartSource final : public ContentSource {
 public:
  PartSource(PieceReader& reader, const Catalog& catalog,
             const std::vector<WriterShare::Part>& parts, ByteProgress& progress,
             const ReshardSeams& seams, std::function<void()> go_on)
      : reader_(reader),
        catalog_(catalog),
        parts_(parts),
        progress_(progress),
        seams_(seams),
        go_on_(std::move(go_on)) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    go_on_();
    const WriterShare::Part& part = parts_[item];
    crc_ = reader_.fill(part.tensor, seams_.read_from(part.box, begin, end), out);
    progress_.go(catalog_.tensors[part.tensor].key, out.size());
  }

  std::optional<std::uint32_t> filled_crc() const override { return crc_; }

  void drain() override {}

 private:
  std::optional<std::uint32_t> crc_;  ///< of what was read last
  PieceReader& reader_;
  const Catalog& catalog_;
  const std::vector<WriterShare::Part>& parts_;
  ByteProgress& progress_;
  const ReshardSeams& seams_;
  std::function<void()> go_on_;  ///< throws if this writer is to stop
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
        manifest_(has_manifest(source)),
        checksums_(source, ports.device),
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
            write_shares(shares);
            copy_common();
            write_instead();
            copy_beside();
          },
          [this] {
            opened_.require_in_place();
            source_.require_files_in_place();
            for (const auto& reader : readers_) {
              if (reader) reader->require_in_place();
            }
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

  /// A file with tensors.
  struct TensorFile {
    const std::vector<WriterShare::Part>* parts = nullptr;
    FileIndex file = kNoFile;
    WrittenFile written = {};
  };

  void write_shares(const std::vector<WriterShare>& shares) {
    std::vector<TensorFile> of_tensors;
    std::vector<std::pair<const std::vector<std::uint32_t>*, FileIndex>> of_objects;
    for (std::size_t w = 0; w < shares.size(); ++w) {
      int number = 0;
      if (!shares[w].parts.empty()) of_tensors.push_back({&shares[w].parts, new_file(w, number++)});
      if (!shares[w].objects.empty())
        of_objects.emplace_back(&shares[w].objects, new_file(w, number));
    }
    write_all_tensors(of_tensors);
    payload_.resize(metadata_.catalog.files.size());
    for (const TensorFile& one : of_tensors) note_tensors(one);
    for (const auto& [objects, file] : of_objects) write_objects(*objects, file);
    for (FileIndex file = 0; file < payload_.size(); ++file) {
      report_.bytes += payload_[file].bytes;
      note(metadata_.catalog.files[file], payload_[file]);
    }
  }

  /// Writes several files at a time, each by one thread; a single one by a thread that reads and
  /// one that writes.
  void write_all_tensors(std::vector<TensorFile>& files) {
    TasksAtOnce at_once;
    const bool several = ports_.tasks.threads() > 1 && files.size() > 1;
    Tasks& at_a_time = several ? ports_.tasks : static_cast<Tasks&>(at_once);
    Tasks& behind = several ? static_cast<Tasks&>(at_once) : ports_.tasks;
    ImageOptions image = options_.image;
    if (several) image.batch_bytes = image.staging_bytes_max = kThreadBatchBytes;
    image.checksums = manifest_ ? Checksums::kCrc32AndSha256 : Checksums::kCrc32;
    image.read_back = ReadBack::kAlways;
    readers_.resize(static_cast<std::size_t>(at_a_time.threads()));
    EarliestFailure failed;
    do_all(at_a_time, files.size(), [&](std::size_t thread) {
      auto& reader = readers_[thread];
      reader = std::make_unique<PieceReader>(source_, ports_.device);
      if (checks_) reader->count_in(checksums_);
      return [&](std::size_t i) {
        try {
          write_tensors(files[i], *reader, behind, image, [&failed, i] {
            if (failed.any_before(i)) throw Stopped();
          });
        } catch (...) {
          failed.note(i, std::current_exception());
          throw;
        }
      };
    });
    read_rest();
  }

  /// Opens the items of tensors without elements, so that damage in them is not passed over.
  void read_rest() {
    if (!checks_) return;
    PieceReader& reader =
        *readers_.emplace_back(std::make_unique<PieceReader>(source_, ports_.device));
    reader.count_in(checksums_);
    const auto& tensors = source_.catalog().tensors;
    for (std::uint32_t t = 0; t < tensors.size(); ++t) {
      if (volume(logical_shape(tensors[t])) == 0) reader.open(t);
    }
    reader.hand_over();
  }

  void write_tensors(TensorFile& file, PieceReader& reader, Tasks& tasks, const ImageOptions& image,
                     std::function<void()> go_on) {
    const std::vector<WriterShare::Part>& parts = *file.parts;
    const Catalog& old = source_.catalog();
    std::vector<ImageItem> items;
    for (const auto& part : parts) {
      items.push_back({.key = old.tensors[part.tensor].key,
                       .dtype = old.tensors[part.tensor].dtype,
                       .extent = part.box.extent,
                       .content = {},
                       .folded = old.tensors[part.tensor].folded});
    }
    ImageWriter writer(ports_.store, tasks, path_of(metadata_.catalog.files[file.file]),
                       std::move(items), image);
    PartSource source(reader, old, parts, progress_, seams_, std::move(go_on));
    writer.stage(source);
    reader.hand_over();
    file.written = writer.finish();
    progress_.go(path_of(metadata_.catalog.files[file.file]), 0);
  }

  void note_tensors(const TensorFile& one) {
    for (std::size_t i = 0; i < one.parts->size(); ++i) {
      const WriterShare::Part& part = (*one.parts)[i];
      metadata_.catalog.tensors[part.tensor].chunks.push_back(
          {part.box, one.file, one.written.ranges[i]});
    }
    payload_[one.file] = {one.written.bytes, one.written.sha256.value_or(Sha256Digest{})};
  }

  /// Records a written file, so that the manifest lists it and the commit checks that it exists.
  void note(const std::string& name, const WrittenContent& written) {
    content_.payload.push_back({name, written.bytes});
    if (manifest_ && name.find('/') == std::string::npos)
      content_.digests.push_back({name, written.sha256});
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
    payload_[file] = out.finish();
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
    checksums_.add(tally_);
    report_.notes = checksums_.judge();
  }

  void commit() {
    content_.metadata = std::move(metadata_);
    content_.metadata.write_strides = options_.strides;
    content_.manifest = manifest_;
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
  bool checks_;                ///< true if what is read is compared with its checksums
  bool manifest_;              ///< true if the source has one
  ChecksumTally tally_;        ///< of objects and the common state
  SharedChecksums checksums_;  ///< of tensors
  std::vector<std::unique_ptr<PieceReader>> readers_;
  ByteProgress progress_;
  BesidePayload beside_;
  Bytes new_common_;         ///< the common state that is written in the place of the stored one
  bool own_common_ = false;  ///< true if common.pt is a user's own file
  std::vector<WrittenContent> payload_;  ///< by file
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
