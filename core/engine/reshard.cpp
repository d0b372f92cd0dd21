#include "core/engine/reshard.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/engine/checksum_tally.hpp"
#include "core/engine/extents.hpp"
#include "core/engine/file_digest.hpp"
#include "core/engine/tensor_reader.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/bytes_item.hpp"
#include "core/format/common_state.hpp"
#include "core/format/integrity.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20U;
constexpr std::uint64_t kCopyBytes = std::uint64_t{1} << 20U;

/// Copies a slice into a file from `offset` on, in bounded steps.
void copy_slice(ItemSource& source, WriteFile& out, std::uint64_t offset) {
  Bytes buffer(static_cast<std::size_t>(std::min(kCopyBytes, source.size())));
  for (std::uint64_t at = 0; at < source.size(); at += kCopyBytes) {
    const auto size = static_cast<std::size_t>(std::min(kCopyBytes, source.size() - at));
    source.read_at(at, MutableByteSpan(buffer.data(), size));
    out.write_at(offset + at, ByteSpan(buffer.data(), size));
  }
}

/// Elements of the parts of one writer, read from the old chunks.
class PartSource final : public ContentSource {
 public:
  PartSource(const ReaderResources& resources, const std::vector<WriterShare::Part>& parts,
             Progress& progress, std::uint64_t& done, std::uint64_t total)
      : resources_(resources), parts_(parts), progress_(progress), done_(done), total_(total) {}

  void fill(std::size_t item, std::int64_t begin, std::int64_t end, MutableByteSpan out) override {
    const WriterShare::Part& part = parts_[item];
    const StoredTensor& tensor = resources_.checkpoint.catalog().tensors[part.tensor];
    if (!reader_ || tensor_ != part.tensor) {
      reader_.emplace(resources_, tensor);
      tensor_ = part.tensor;
    }
    reader_->read(pieces_of_range(part.box, begin, end), out.data());
    done_ += out.size();
    progress_.advance(tensor.key, done_, total_);
  }

  void settle() override {}

 private:
  ReaderResources resources_;
  const std::vector<WriterShare::Part>& parts_;
  Progress& progress_;
  std::uint64_t& done_;
  std::uint64_t total_;
  std::uint32_t tensor_ = 0;
  std::optional<TensorReader> reader_;
};

/// Everything once, so that a wrong checksum is found before it is replaced by a right one.
void check_content(Checkpoint& checkpoint, Progress& progress) {
  ChecksumTally tally;
  const Catalog& catalog = checkpoint.catalog();
  const std::uint64_t total = catalog.tensors.size() + catalog.objects.size();
  std::uint64_t done = 0;
  const auto add = [&](const std::string& key, FileIndex file, ByteRange range) {
    tally.add(*checkpoint.slice(key, file, range), key);
  };
  for (const auto& tensor : catalog.tensors) {
    for (const auto& chunk : tensor.chunks) add(tensor.key, chunk.file, chunk.range);
    progress.advance("checksums", ++done, total);
  }
  for (const auto& object : catalog.objects) {
    add(object.key, object.file, object.range);
    progress.advance("checksums", ++done, total);
  }
  for (const Finding& finding : tally.findings()) {
    if (finding.severity != Severity::kError) continue;
    throw Error(finding.code, finding.message,
                {.key = finding.key, .file = finding.file, .offset = finding.offset});
  }
}

class Resharder {
 public:
  Resharder(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
            const ReshardPorts& ports)
      : source_(source),
        target_(target),
        options_(options),
        ports_(ports),
        staging_(kStagingBytes),
        metadata_(source.metadata()) {}

  ReshardReport run() {
    const Catalog& old = source_.catalog();
    require_apart(source_);
    source_.require_common_if_megatron();
    const auto shares = plan_reshard(old, options_.rule, options_.writers);
    for (const auto& share : shares) total_ += share.bytes;
    if (options_.checksums) check_content(source_, ports_.progress);
    refuse_hostile_objects();
    prepare(ports_.store, target_);
    try {
      start_catalog();
      for (std::size_t w = 0; w < shares.size(); ++w) write_share(w, shares[w]);
    } catch (const Error&) {
      ports_.store.remove(target_.saving());
      throw;
    }
    commit();
    count(old);
    return report_;
  }

 private:
  /// Objects are copied as bytes; those with names that nobody may accept (os.system) are not
  /// handed on.
  void refuse_hostile_objects() {
    for (const auto& object : source_.catalog().objects) {
      read_bytes_item(*source_.slice(object.key, object.file, object.range));
    }
    static_cast<void>(source_.common());
  }

  /// The new catalog: the same keys, dtypes and logical shapes, without chunks yet.
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
                       .extent = part.box.extent});
    }
    ImageWriter writer(ports_.store, ports_.tasks, path_of(metadata_.catalog.files[file]),
                       std::move(items), options_.image);
    PartSource source({source_, ports_.device, staging_}, parts, ports_.progress, done_, total_);
    writer.stage(source);
    const WrittenFile written = writer.finish();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      metadata_.catalog.tensors[parts[i].tensor].chunks.push_back(
          {parts[i].box, file, written.ranges[i]});
    }
    report_.bytes += written.bytes;
  }

  void write_objects(const std::vector<std::uint32_t>& objects, FileIndex file) {
    const auto out = ports_.store.create(path_of(metadata_.catalog.files[file]));
    std::uint64_t offset = 0;
    for (const auto index : objects) {
      const StoredObject& object = source_.catalog().objects[index];
      copy_slice(*source_.slice(object.key, object.file, object.range), *out, offset);
      StoredObject& copy = metadata_.catalog.objects[index];
      copy.file = file;
      copy.range = {offset, object.range.size};
      offset += object.range.size;
      done_ += object.range.size;
      ports_.progress.advance(object.key, done_, total_);
    }
    out->sync();
    out->close();
    report_.bytes += offset;
  }

  /// common.pt and metadata.json as they are.
  void copy_file(std::string_view name, std::vector<FileDigest>& digests) {
    const std::string from = join_path(source_.location().directory, std::string(name));
    if (!source_.store().stat(from)) return;
    const Bytes content = read_all(source_.store(), from, kBytesItemMax);
    write_durably(ports_.store, path_of(std::string(name)), content);
    digests.push_back({std::string(name), sha256_of(content)});
  }

  void commit() {
    CommitContent content{.metadata = std::move(metadata_)};
    for (const auto name : {kCommonFile, kBackendFile}) copy_file(name, content.digests);
    const std::string manifest =
        join_path(source_.location().directory, std::string(kIntegrityFile));
    content.manifest = source_.store().stat(manifest).has_value();
    if (content.manifest) {
      for (const auto& name : content.metadata.catalog.files) {
        content.digests.push_back({name, digest_of_file(ports_.store, path_of(name))});
      }
    }
    run_protocol(commit_protocol(ports_.store, target_, content), phase::kCommit, ports_.trace);
    metadata_ = std::move(content.metadata);
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

  Checkpoint& source_;
  const CommitTarget& target_;
  const ReshardOptions& options_;
  const ReshardPorts& ports_;
  Bytes staging_;
  Metadata metadata_;  ///< of the new checkpoint
  std::uint64_t done_ = 0;
  std::uint64_t total_ = 0;
  ReshardReport report_;
};

}  // namespace

ReshardReport reshard(Checkpoint& source, const CommitTarget& target, const ReshardOptions& options,
                      const ReshardPorts& ports) {
  return Resharder(source, target, options, ports).run();
}

}  // namespace reprise
