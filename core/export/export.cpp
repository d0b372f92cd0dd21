#include "core/export/export.hpp"

#include <algorithm>
#include <exception>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/byte_progress.hpp"
#include "core/checkpoint/piece_reader.hpp"
#include "core/export/output_writer.hpp"
#include "core/export/proof.hpp"
#include "core/geometry/convert.hpp"
#include "core/ports/whole_file.hpp"

namespace reprise {
namespace {

std::uint64_t elements_of(std::span<const Box> boxes) {
  std::uint64_t sum = 0;
  for (const Box& box : boxes) sum += static_cast<std::uint64_t>(box.elements());
  return sum;
}

class Exporter {
 public:
  Exporter(Checkpoint& source, const std::vector<MappedTensor>& tensors, ExportForm& form,
           CommitTarget target, const ExportOptions& options, const ExportPorts& ports)
      : source_(source),
        tensors_(tensors),
        form_(form),
        target_(std::move(target)),
        options_(options),
        ports_(ports),
        progress_(ports.progress),
        checksums_(source, ports.device) {}

  ExportReport run() {
    require_writable();
    if (tensors_.empty()) throw Error(Code::kUsage, "there is no tensor to export");
    files_ = form_.lay_out(tensors_);
    require_space();
    for (const OutputFile& file : files_) {
      report_.files.push_back(file.name);
      progress_.expect(2 * file.bytes);  // written, and read back
    }
    for (auto& name : form_.small_files()) report_.files.push_back(std::move(name));
    for (const auto& [name, text] : options_.beside) report_.files.push_back(name);
    for (int thread = 0; thread < ports_.tasks.threads(); ++thread) {
      readers_.push_back(std::make_unique<PieceReader>(source_, ports_.device));
    }
    try {
      form_.prepare(ports_.store, target_, report_.files);
      from_one_checkpoint([this] { write_and_prove(); }, [this] { require_in_place(); });
      if (options_.last_look) options_.last_look();
      report_.log = target_.claim.notes;
      form_.commit(ports_.store, target_);
    } catch (const std::exception&) {
      form_.abandon(ports_.store, target_);
      throw;
    }
    return std::move(report_);
  }

 private:
  const Catalog& catalog() const { return source_.catalog(); }

  void require_in_place() const {
    source_.require_in_place();
    for (const auto& reader : readers_) reader->require_in_place();
  }

  void require_writable() {
    std::set<std::string> keys;
    for (const auto& tensor : tensors_) {
      form_.require_holds(tensor);
      if (!keys.insert(tensor.key).second) {
        throw Error(Code::kUsage, "two tensors would have this key", {.key = tensor.key});
      }
      for (const auto& part : tensor.parts) {
        if (catalog().tensors[part.source].folded.empty()) continue;
        throw Error(
            Code::kUnsupported,
            "a tensor of more than " + std::to_string(kMaxNdim) + " dimensions is not exported",
            {.key = catalog().tensors[part.source].key});
      }
      const DType stored = tensor.stored;
      if (!can_convert(stored, tensor.dtype)) {
        throw Error(Code::kUsage,
                    std::string(name_of(stored)) + " isn't converted to " +
                        std::string(name_of(tensor.dtype)),
                    {.key = tensor.key});
      }
      if (stored != tensor.dtype) report_.converted.push_back({tensor.key, stored, tensor.dtype});
      if (!tensor.padded) CHECK(gaps(tensor.shape, targets(tensor)).empty(), tensor.key);
      report_.elements += static_cast<std::uint64_t>(volume(tensor.shape));
      report_.bytes += bytes_of(tensor);
    }
    report_.tensors = tensors_.size();
    report_.lost = lost_in(catalog(), tensors_);
  }

  void require_space() const {
    std::uint64_t needed = 0;
    for (const OutputFile& file : files_) needed += file.bytes;
    for (const auto& [name, text] : options_.beside) needed += text.size();
    reprise::require_space(ports_.store, target_, needed);
  }

  void write_and_prove() {
    std::vector<std::string> paths;
    for (const OutputFile& file : files_) paths.push_back(form_.path_of(target_, file.name));
    OutputWriter writer(tensors_, files_, readers_, progress_);
    writer.write(ports_.store, paths, ports_.tasks, ports_.background);
    writer.wait();  // before anything is read back, since reading beside a sync takes twice as long
    for (const auto& [name, text] : options_.beside) {
      write_durably(ports_.store, form_.path_of(target_, name), std::as_bytes(std::span(text)));
    }
    form_.complete(ports_.store, target_);
    const Checkpoint written = form_.opened(ports_.store, target_);
    written.require_sound();
    if (options_.checksums) {
      for (const auto& reader : readers_) reader->count_in(checksums_);
    }
    report_.proved =
        prove(source_, tensors_, written, readers_, {ports_.device, ports_.tasks, progress_});
    report_.notes = checksums_.judge();
  }

  Checkpoint& source_;
  const std::vector<MappedTensor>& tensors_;
  ExportForm& form_;
  CommitTarget target_;
  const ExportOptions& options_;
  const ExportPorts& ports_;
  ByteProgress progress_;
  std::vector<OutputFile> files_;
  SharedChecksums checksums_;                          ///< of the source
  std::vector<std::unique_ptr<PieceReader>> readers_;  ///< of the source, one for each thread
  ExportReport report_;
};

}  // namespace

std::vector<LostElements> lost_in(const Catalog& catalog,
                                  const std::vector<MappedTensor>& tensors) {
  std::vector<std::vector<Box>> used(catalog.tensors.size());
  for (const auto& tensor : tensors) {
    for (const auto& part : tensor.parts) used[part.source].push_back(part.box);
  }
  std::vector<LostElements> lost;
  for (std::size_t t = 0; t < used.size(); ++t) {
    const StoredTensor& stored = catalog.tensors[t];
    const auto rest = gaps(logical_shape(stored), std::move(used[t]));
    if (rest.empty()) continue;
    lost.push_back({stored.key, elements_of(rest),
                    static_cast<std::uint64_t>(volume(logical_shape(stored))),
                    *std::min_element(rest.begin(), rest.end())});
  }
  return lost;
}

ExportReport export_tensors(Checkpoint& source, const std::vector<MappedTensor>& tensors,
                            ExportForm& form, const CommitTarget& target,
                            const ExportOptions& options, const ExportPorts& ports) {
  return Exporter(source, tensors, form, target, options, ports).run();
}

}  // namespace reprise
