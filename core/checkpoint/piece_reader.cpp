#include "core/checkpoint/piece_reader.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/format/zip/crc32.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20U;
constexpr std::size_t kSharedStagingBytes = std::size_t{64} << 10U;

}  // namespace

SharedChecksums::SharedChecksums(const Checkpoint& opened, Device& device)
    : checkpoint_(opened), device_(device), staging_(kSharedStagingBytes) {}

void SharedChecksums::tell(std::uint32_t tensor, TensorReader& reader) {
  const std::scoped_lock lock(taking_);
  const auto whole = open_.find(tensor);
  if (whole != open_.end()) reader.know_items_of(*whole->second);
}

void SharedChecksums::take(std::uint32_t tensor, TensorReader& reader) {
  const std::scoped_lock lock(taking_);
  auto& whole = open_[tensor];
  if (!whole) {
    whole = std::make_unique<TensorReader>(ReaderResources{checkpoint_, device_, staging_, &tally_},
                                           checkpoint_.catalog().tensors[tensor]);
  }
  whole->take(reader);
  if (!whole->complete()) return;
  whole->open_rest();
  open_.erase(tensor);
}

const ChecksumTally& SharedChecksums::counted() {
  if (tally_.mismatches() != 0 && is_of_torch_save(checkpoint_.metadata().form)) {
    for (FileIndex file = 0; file < checkpoint_.catalog().files.size(); ++file) {
      if (!tally_.has_elements_only(checkpoint_.display(file))) continue;
      count_small_records(checkpoint_, file, tally_);
    }
  }
  return tally_;
}

Findings SharedChecksums::judge() {
  CHECK(open_.empty(), open_.size());
  Findings notes;
  for (Finding& finding : counted().findings()) {
    if (finding.severity == Severity::kError) {
      throw Error(finding.code, finding.message,
                  {.key = finding.key, .file = finding.file, .offset = finding.offset});
    }
    notes.push_back(std::move(finding));
  }
  return notes;
}

PieceReader::PieceReader(const Checkpoint& opened, Device& device)
    : checkpoint_(opened), staging_(kStagingBytes), device_(device) {}

void PieceReader::count_in(SharedChecksums& checksums) {
  checksums_ = &checksums;
  reader_.reset();
}

void PieceReader::read(std::span<const PieceOf> pieces, std::byte* local) {
  for (const PieceOf& one : pieces) read(one.tensor, std::span(&one.piece, 1), local);
}

std::optional<std::uint32_t> PieceReader::fill(std::uint32_t tensor, std::span<const Piece> pieces,
                                               MutableByteSpan out) {
  FilledCrc32 filled(out);
  of(tensor).read(pieces, out.data(), &filled);
  return filled.value();
}

void PieceReader::hand_over() {
  if (checksums_ != nullptr && reader_) checksums_->take(of_, *reader_);
  reader_.reset();
}

TensorReader& PieceReader::of(std::uint32_t tensor) {
  if (reader_ && tensor == of_) return *reader_;
  hand_over();
  ChecksumTally* const tally = checksums_ == nullptr ? nullptr : &checksums_->tally_;
  reader_ = std::make_unique<TensorReader>(ReaderResources{checkpoint_, device_, staging_, tally},
                                           checkpoint_.catalog().tensors[tensor]);
  reader_->leave_checksums();
  if (checksums_ != nullptr) checksums_->tell(tensor, *reader_);
  of_ = tensor;
  return *reader_;
}

}  // namespace reprise
